"""Writes the grammar of a block, as kernels/expansion.py reads it."""

from __future__ import annotations

import numpy as np

from tracekit.containers.kernels.arena import USED, take
from tracekit.jit.kernel import kernel
from tracekit.whomp.kernels.sequitur import GUARD, LENGTH, Grammar, rule_of


@kernel
def write(grammar: Grammar) -> None:
    """Write the rules of the present block, if it has a symbol, the start first, as numbers from 0."""
    if grammar.control[LENGTH] == 0:
        return
    rules, nodes, count, symbols = grammar.rules.rows, grammar.nodes.rows, np.int64(0), np.int64(0)
    for rule in range(1, grammar.rules.control[USED]):
        if rule == 1 or rules[rule].uses > 0:
            rules[rule].number = count
            count += 1
            node = nodes[rules[rule].guard].next
            while nodes[node].symbol & GUARD == 0:
                symbols += 1
                node = nodes[node].next
    place = take(grammar.written, 1 + count + symbols)
    if place == 0:
        return
    out = grammar.written.rows
    out[place] = count
    place += 1
    for rule in range(1, grammar.rules.control[USED]):
        if rule == 1 or rules[rule].uses > 0:
            length = place
            place += 1
            node = nodes[rules[rule].guard].next
            while nodes[node].symbol & GUARD == 0:
                symbol = nodes[node].symbol
                if symbol & np.uint32(1):
                    symbol = np.uint32(2) * rules[rule_of(symbol)].number + np.uint32(1)
                out[place] = symbol
                place += 1
                node = nodes[node].next
            out[length] = place - length - 1
