"""What a written grammar says: its stream again, and how long and how frequent its rules are. Nothing recurs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import kernel

Int = Any


@kernel
def unpack(written: Any, place: Int, first: Any, symbols: Any) -> int:
    """The bodies of a block's rules, without their lengths, and where each begins; returns the place behind them.

    written u4: each rule as its length and its symbols, from `place` on; first (rules + 1) i8, symbols u4 are filled.
    """
    filled = 0
    for rule in range(first.size - 1):
        length = np.int64(written[place])
        place += 1
        first[rule] = filled
        for symbol in range(place, place + length):
            symbols[filled] = written[symbol]
            filled += 1
        place += length
    first[first.size - 1] = filled
    return int(place)


@kernel
def end_of_block(written: Any, place: Int) -> int:
    """The place behind the block that begins at `place` of `written` with the number of its rules."""
    rules, behind = np.int64(written[place]), np.int64(place + 1)
    for _ in range(rules):
        behind += 1 + np.int64(written[behind])
    return int(behind)


@kernel
def numbered(table: HashTable, values: Any, numbers: Any) -> None:
    """The rows of values in a table of them, which takes in those that are new; the first value is none."""
    for place in range(1, values.size):
        numbers[place] = row_of(table, values[place])


@kernel
def renumber(written: Any, numbers: Any, made: Any) -> None:
    """Blocks whose terminals have other numbers: terminal n becomes numbers[n].

    written u4: blocks one after another; made: as long, is filled. Symbols are 2 * terminal, or 2 * rule + 1.
    """
    place = np.int64(0)
    while place < written.size:
        rules = np.int64(written[place])
        made[place] = rules
        place += 1
        for _ in range(rules):
            length = np.int64(written[place])
            made[place] = length
            for symbol in range(place + 1, place + 1 + length):
                old = written[symbol]
                made[symbol] = old if old & np.uint32(1) else np.uint32(2) * numbers[old >> np.uint32(1)]
            place += 1 + length


@kernel
def expand(symbols: Any, first: Any, stack: Any, control: Any, values: Any, out: Any) -> int:
    """Write the next values of a block's stream to `out`; returns how many, fewer than there is room for at the end.

    symbols, first: the bodies of all rules one after the other, and where each begins (one more: the end). stack (n,
    2): open rules, position and end, with room for all rules; control[0] of them. At first stack[0] is the start.
    """
    filled, top = 0, control[0]
    while top > 0 and filled < out.size:
        position = stack[top - 1, 0]
        if position == stack[top - 1, 1]:
            top -= 1
            continue
        stack[top - 1, 0] = position + 1
        symbol = np.int64(symbols[position])
        if symbol & 1:
            stack[top, 0] = first[symbol >> 1]
            stack[top, 1] = first[(symbol >> 1) + 1]
            top += 1
        else:
            out[filled] = values[symbol >> 1]
            filled += 1
    control[0] = top
    return filled


@kernel
def measure(symbols: Any, first: Any, uses: Any, order: Any, lengths: Any, counts: Any) -> int:
    """Length of what each rule stands for, and how often that stands in the stream; returns how many rules are reached.

    uses: zeros; order: room, one for each rule; lengths and counts: zeros.
    """
    rules = first.size - 1
    for symbol in symbols:
        if symbol & 1:
            uses[symbol >> 1] += 1
    # the rules in an order in which each comes before those that it uses
    order[0] = 0
    counts[0] = 1
    known, done = 1, 0
    while done < known:
        rule = order[done]
        done += 1
        for place in range(first[rule], first[rule + 1]):
            symbol = np.int64(symbols[place])
            if symbol & 1:
                inner = symbol >> 1
                counts[inner] += counts[rule]
                uses[inner] -= 1
                if uses[inner] == 0 and known < rules:
                    order[known] = inner
                    known += 1
    for at in range(known - 1, -1, -1):
        rule, length = order[at], np.int64(0)
        for place in range(first[rule], first[rule + 1]):
            symbol = np.int64(symbols[place])
            length += lengths[symbol >> 1] if symbol & 1 else 1
        lengths[rule] = length
    return known
