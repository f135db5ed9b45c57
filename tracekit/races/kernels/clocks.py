"""Vector clocks: of each thread the time up to which what it did is known to have happened before.

A clock is named by a number; 0 is one that knows of nothing and is never written. Its elements stand in an arena, by
thread; those behind its length are 0. (Mattern, *Virtual Time and Global States of Distributed Systems*.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.arena import Arena, take
from tracekit.jit.kernel import inlined, kernel

CLOCK = np.dtype([("first", "<i8"), ("length", "<i4"), ("room", "<i4")])
"""Where its elements begin in ``values``, how many it has, how many there is room for."""


class Clocks(NamedTuple):
    """All vector clocks."""

    table: Arena  # CLOCK
    values: Arena  # u4


@inlined
def new_clock(clocks: Any) -> Any:
    """A clock that knows of nothing."""
    return np.int64(take(clocks.table, 1))


@inlined
def time_of(clocks: Any, clock: Any, thread: Any) -> Any:
    """The time of a thread up to which a clock knows what it did."""
    row = clocks.table.rows[clock]
    if thread >= row.length:
        return np.int64(0)
    return np.int64(clocks.values.rows[row.first + thread])


@kernel
def lengthen(clocks: Clocks, clock: Any, length: Any) -> None:
    """Give a clock at least `length` elements."""
    row = clocks.table.rows[clock]
    if length > row.room:
        room = max(2 * row.room, length + 3 & ~3)
        first = np.int64(take(clocks.values, room))
        for thread in range(row.length):
            clocks.values.rows[first + thread] = clocks.values.rows[row.first + thread]
        row.first = first
        row.room = room
    for thread in range(row.length, length):
        clocks.values.rows[row.first + thread] = 0
    row.length = max(row.length, length)


@kernel
def join(clocks: Clocks, clock: Any, other: Any) -> None:
    """What `other` knows, `clock` knows, too."""
    length = clocks.table.rows[other].length
    if clock == 0 or length == 0:
        return
    if length > clocks.table.rows[clock].length:
        lengthen(clocks, clock, length)
    first, source = clocks.table.rows[clock].first, clocks.table.rows[other].first
    for thread in range(length):
        time = clocks.values.rows[source + thread]
        if time > clocks.values.rows[first + thread]:
            clocks.values.rows[first + thread] = time


@kernel
def assign(clocks: Clocks, clock: Any, other: Any) -> None:
    """`clock` knows what `other` knows, and nothing else."""
    clocks.table.rows[clock].length = 0
    join(clocks, clock, other)


@inlined
def set_time(clocks: Any, clock: Any, thread: Any, time: Any) -> None:
    """What a thread did up to a time is known."""
    if thread >= clocks.table.rows[clock].length:
        lengthen(clocks, clock, thread + 1)
    clocks.values.rows[clocks.table.rows[clock].first + thread] = time
