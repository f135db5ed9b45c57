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
from tracekit.whomp.kernels.digrams import BUCKETS, key_of, line_of
from tracekit.whomp.kernels.following import close_all
from tracekit.whomp.kernels.sequitur import PENDING, Grammar, begin
from tracekit.whomp.kernels.writing import write

AT_ONCE = 1 << 11
"""Symbols whose places are read before they are appended: what these need fits a second-level cache."""


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
    count = grammar.control[PENDING]
    grammar.control[PENDING] = 0
    for start in range(0, count, AT_ONCE):
        end = min(start + AT_ONCE, count)
        _prepare(grammar, start, end)
        _add(grammar, start, end)
    close_all(grammar)


@kernel
def _prepare(grammar: Grammar, start: int, end: int) -> int:
    """The rows of values that wait, in their place; and read what their digrams need.

    What is returned keeps the compiler from leaving that out.
    """
    pending, digrams = grammar.pending, grammar.digrams
    for place in range(start, end):
        pending[place] = row_of(grammar.values, pending[place])
    seen = np.uint64(0)
    for place in range(start + 1, end):
        key = key_of(pending[place - 1] << np.uint64(1), pending[place] << np.uint64(1))
        seen ^= digrams.keys[line_of(key, digrams.control[BUCKETS])]
    return int(seen)


@kernel
def _add(grammar: Grammar, start: int, end: int) -> None:
    """Append values by the numbers of their rows."""
    for place in range(start, end):
        add(grammar, grammar.pending[place])
