"""Leaves out of a batch what lies outside a window on the trace (tracekit/replay/window.py), in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel

# What becomes of an event; 0: it is dropped, for nobody requested it.
ALWAYS = 1  # it passes, for it keeps the state right
INSIDE = 2  # it passes if it is inside the window

# Elements of `open`: what is open on the stream.
FUNCTIONS = 0  # activations of the window's functions
LOOPS = 1  # the window's loops

# Elements of `place`.
ACCESSES = 0  # loads and stores so far
FIRST = 1  # the number of the first that the window has
LAST = 2  # one past the number of the last
INSIDE_SO_FAR = 3  # how many it had

LOAD = CODE["load"]
STORE = CODE["store"]
FUNCTION_ENTRY = CODE["function_entry"]
FUNCTION_EXIT = CODE["function_exit"]
LOOP_INVOCATION = CODE["loop_invocation"]
LOOP_EXIT = CODE["loop_exit"]


@kernel
def select(
    keep: NDArray[np.uint8],
    functions: Any,
    loops: Any,
    open: NDArray[np.int64],
    place: NDArray[np.int64],
    here: int,
    kind: NDArray[np.uint8],
    subject: Any,
    address: Any,
    size: Any,
    value: Any,
    inside: NDArray[np.uint8],
    rows: Any,
) -> int:
    """Move the events that pass to the front of the columns and mark those that are inside; returns how many pass.

    `keep` [256] tells what becomes of each code; `functions`, `loops`: 1 for each row that belongs to the window, None
    if any does; `here`: whether the window has this stream; `rows`: takes the former rows of those that pass. Columns
    and `rows` may be None.
    """
    passed = np.int64(0)
    accesses, counted, first, last = place[ACCESSES], place[INSIDE_SO_FAR], place[FIRST], place[LAST]
    for event in range(kind.size):
        code = kind[event]
        if functions is not None and code == FUNCTION_ENTRY:
            open[FUNCTIONS] += _member(functions, subject[event])
        if loops is not None and code == LOOP_INVOCATION:
            open[LOOPS] += _member(loops, subject[event])
        # No branches on what events are: they could not be foreseen. What does not pass is overwritten by the next.
        within = np.int64(here) & np.int64(accesses >= first) & np.int64(accesses < last)
        if functions is not None:
            within &= np.int64(open[FUNCTIONS] > 0)
        if loops is not None:
            within &= np.int64(open[LOOPS] > 0)
        if functions is not None and code == FUNCTION_EXIT:
            open[FUNCTIONS] -= min(_member(functions, subject[event]), open[FUNCTIONS])
        if loops is not None and code == LOOP_EXIT:
            open[LOOPS] -= min(_member(loops, subject[event]), open[LOOPS])
        access = np.int64(code == LOAD) | np.int64(code == STORE)
        accesses += access
        counted += access & within
        kind[passed] = code
        _move(subject, passed, event)
        _move(address, passed, event)
        _move(size, passed, event)
        _move(value, passed, event)
        inside[passed] = within
        if rows is not None:
            rows[passed] = event
        passed += np.int64(keep[code] == ALWAYS) | (np.int64(keep[code] == INSIDE) & within)
    place[ACCESSES], place[INSIDE_SO_FAR] = accesses, counted
    return int(passed)


@inlined
def _member(rows: Any, row: Any) -> Any:
    """1 if a row belongs to the window; a damaged trace may name one that there is not."""
    if np.int64(row) < rows.size:
        return np.int64(rows[row])
    return np.int64(0)


@inlined
def _move(column: Any, to: Any, event: Any) -> None:
    if column is not None:
        column[to] = column[event]
