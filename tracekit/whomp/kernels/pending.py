"""Symbols are appended some thousand at a time, so that one grammar after the other has the processor's caches.

What a symbol needs lies all over memory: the cell and the row of its value, the cell of its digram, the node where that
digram was before. Those of different symbols do not depend on one another, so each of these places is read for all
symbols that wait, one loop for each kind, before any is appended: the processor waits for many at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.whomp.kernels.arrival import add
from tracekit.whomp.kernels.following import close_all
from tracekit.whomp.kernels.sequitur import CELLS, NODE_BITS, PENDING, Grammar, begin, hash_of
from tracekit.whomp.kernels.writing import write


@inlined
def append(grammar: Any, value: Any, closes: Any) -> None:
    """The next symbol of the stream; if it `closes` a block, the grammar is written and the next one begun."""
    waiting = grammar.control[PENDING]
    grammar.pending[waiting] = value
    grammar.control[PENDING] = waiting + 1
    if closes or waiting + 1 == grammar.pending.size:
        flush(grammar)
        if closes:
            write(grammar)
            begin(grammar)


@kernel
def append_all(grammar: Grammar, values: Any) -> None:
    """The next symbols of the stream, which close no block."""
    for value in values:
        append(grammar, value, False)
    flush(grammar)


@kernel
def flush(grammar: Grammar) -> None:
    """Append what waits."""
    pending, count = grammar.pending, grammar.control[PENDING]
    grammar.control[PENDING] = 0
    for place in range(count):
        pending[place] = row_of(grammar.values, pending[place])
    _touch(grammar, count)
    for place in range(count):
        add(grammar, pending[place])
    close_all(grammar)


@kernel
def _touch(grammar: Any, count: Any) -> int:
    """Read what the digrams of symbols that wait need. What is returned keeps the compiler from leaving it out."""
    pending, cells, nodes = grammar.pending, grammar.cells, grammar.nodes.rows
    first = np.uint64(grammar.control[CELLS])
    seen = np.uint64(0)
    for place in range(1, count):
        mixed = hash_of(pending[place - 1] << np.uint64(1), pending[place] << np.uint64(1))
        found = cells[first + (mixed & (first - np.uint64(1)))]
        seen ^= nodes[found & NODE_BITS].symbol
    return int(seen)
