"""Symbols are appended half a million at a time, so that one grammar after the other has the processor's caches.

What a symbol needs lies all over memory: the cell and the row of its value, the bucket of its digram. Those of
different symbols do not depend on one another, so each of these is asked for (prefetched) for the next symbols, one
loop for each kind, before any is appended: the processor waits for many at once. What a rule needs that is about to be
made or to grow is asked for by sequitur.py and arrival.py, together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import expect_cell, expect_row, row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.whomp.kernels.arrival import add
from tracekit.whomp.kernels.digrams import expect
from tracekit.whomp.kernels.following import close_all
from tracekit.whomp.kernels.sequitur import PENDING, Grammar, begin
from tracekit.whomp.kernels.writing import write

AT_ONCE = 1 << 11
"""Symbols for which this is done: what they need fits a second-level cache."""
CLOSED_EACH = 1 << 16
"""Symbols after which no rule is followed any more: how rules are numbered does not depend on how many wait."""


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
        if end % CLOSED_EACH == 0 or end == count:
            close_all(grammar)


@kernel
def _prepare(grammar: Grammar, start: int, end: int) -> None:
    """The rows of values that wait, in their place; and have what their digrams need read."""
    pending, values = grammar.pending, grammar.values
    for place in range(start, end):
        expect_cell(values, pending[place])
    for place in range(start, end):
        expect_row(values, pending[place])
    for place in range(start, end):
        pending[place] = row_of(values, pending[place])
    for place in range(start + 1, end):
        expect(grammar.digrams, pending[place - 1] << np.uint64(1), pending[place] << np.uint64(1))


@kernel
def _add(grammar: Grammar, start: int, end: int) -> None:
    """Append values by the numbers of their rows."""
    pending = grammar.pending
    for place in range(start, end):
        add(grammar, pending[place], pending[place + 1] if place + 1 < end else np.uint64(0))
