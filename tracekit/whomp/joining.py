"""Grammars of consecutive stretches of a stream: those of the whole stream.

Blocks begin after a multiple of so many symbols of the whole, so those that lie in one stretch are what they are. Of
one in two stretches the second part is expanded, and goes on in the grammar of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracekit.containers.arena import check
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import USED
from tracekit.whomp.grammar import MOST_VALUES, Written
from tracekit.whomp.kernels.expansion import end_of_block, numbered, renumber
from tracekit.whomp.kernels.pending import append_all, flush
from tracekit.whomp.kernels.sequitur import LENGTH, TOTAL, Grammar, begin
from tracekit.whomp.kernels.writing import write


def joined(grammars: Sequence[Grammar]) -> Written:
    """The grammars of the whole stream, which is at its end."""
    if len(grammars) == 1:
        return Written.of(grammars[0])
    for grammar in grammars:
        flush(grammar)
    total = sum(int(grammar.control[TOTAL]) for grammar in grammars)
    parts: list[Written] = []
    live, skipped = grammars[0], 0
    for then in grammars[1:]:
        if live.control[LENGTH] == 0:
            parts.append(_closed(live, skipped))
            live, skipped = then, 0
            continue
        has_end = int(then.written.control[USED]) > 1  # the present block's
        if not has_end:
            write(then)
        head = _closed(then, 0)
        end = int(end_of_block(head.written, 0)) if len(head.written) else 0
        for values in Written(head.written[:end], head.values, 0).expanded():
            append_all(live, values)
        check(live.nodes, live.rules, live.values)
        if has_end:
            write(live)
            begin(live)
            parts.append(_closed(live, skipped))
            live, skipped = then, end
    write(live)
    parts.append(_closed(live, skipped))
    return _as_one(parts, total)


def _closed(grammar: Grammar, skipped: int) -> Written:
    """The blocks that have been written, but for so many numbers of the first one."""
    values = used_rows(grammar.values)["key"].astype(np.int64)
    return Written(grammar.written.rows[1 + skipped : grammar.written.control[USED]], values, 0)


def _as_one(parts: Sequence[Written], length: int) -> Written:
    """Blocks whose terminals are numbered in the order in which their values come first."""
    table = hash_table([], MOST_VALUES)
    written = []
    for part in parts:
        numbers = np.zeros(len(part.values), np.uint32)
        numbered(table, part.values, numbers)
        check(table)
        made = np.empty_like(part.written)
        renumber(part.written, numbers, made)
        written.append(made)
    return Written(np.concatenate(written), used_rows(table)["key"].astype(np.int64), length)
