"""Vector clocks: of each chain of tasks the time up to which what was done on it is known to have happened before.

A clock is named by a number; 0 is one that knows of nothing and is never written. Its elements stand in an arena, two
of each chain: up to when what was done there happened before in this run, and up to when it has to come before in any
order of locks (kernels/lock_orders.py). Those behind its length are 0. (Mattern, *Virtual Time and Global States of
Distributed Systems*.) Several may have one in common: who writes makes a copy, and the last one gives it back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.arena import Arena, take
from tracekit.jit.kernel import inlined, kernel

CLOCK = np.dtype([("first", "<i8"), ("length", "<i4"), ("room", "<i4"), ("users", "<i4"), ("next", "<i4")])
"""Where its elements begin in ``values``, how many it has, how many there is room for; the next one that is free."""

BLOCK = 256
"""Elements of clocks that are compared at once."""


class Clocks(NamedTuple):
    """All vector clocks."""

    table: Arena  # CLOCK
    values: Arena  # u4
    free: Any  # int64 (1): the first clock that nobody uses


@inlined
def new_clock(clocks: Any) -> Any:
    """A clock that knows of nothing, with one user."""
    clock = clocks.free[0]
    if clock != 0:
        clocks.free[0] = clocks.table.rows[clock].next
    else:
        clock = np.int64(take(clocks.table, 1))
    row = clocks.table.rows[clock]
    row.length, row.users = 0, 1
    return clock


@inlined
def shared(clocks: Any, clock: Any) -> Any:
    """The clock, for one user more."""
    if clock != 0:
        clocks.table.rows[clock].users += 1
    return clock


@inlined
def drop(clocks: Any, clock: Any) -> None:
    """One user less."""
    if clock != 0:
        row = clocks.table.rows[clock]
        row.users -= 1
        if row.users == 0:
            row.next = clocks.free[0]
            clocks.free[0] = clock


@inlined
def time_of(clocks: Any, clock: Any, chain: Any) -> Any:
    """The time of a chain up to which a clock knows what was done."""
    row = clocks.table.rows[clock]
    if 2 * chain >= row.length:
        return np.int64(0)
    return np.int64(clocks.values.rows[row.first + 2 * chain])


@inlined
def must_time_of(clocks: Any, clock: Any, chain: Any) -> Any:
    """The time of a chain up to which what was done has to come before in any order of locks."""
    row = clocks.table.rows[clock]
    if 2 * chain >= row.length:
        return np.int64(0)
    return np.int64(clocks.values.rows[row.first + 2 * chain + 1])


@kernel
def lengthen(clocks: Clocks, clock: Any, length: Any) -> None:
    """Give a clock at least `length` elements."""
    row = clocks.table.rows[clock]
    if length > row.room:
        room = max(2 * row.room, length + 3 & ~3)
        first = np.int64(take(clocks.values, room))
        into = clocks.values.rows[first : first + row.length]
        known = clocks.values.rows[row.first : row.first + row.length]
        for chain in range(row.length):
            into[chain] = known[chain]
        row.first = first
        row.room = room
    for chain in range(row.length, length):
        clocks.values.rows[row.first + chain] = 0
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
    mine, theirs = clocks.values.rows[first : first + length], clocks.values.rows[source : source + length]
    for chain in range(length):
        mine[chain] = theirs[chain] if theirs[chain] > mine[chain] else mine[chain]


@kernel
def covers(clocks: Clocks, clock: Any, other: Any) -> Any:
    """Whether `clock` knows all that `other` does. Long clocks are compared in blocks, each without a branch."""
    row, source = clocks.table.rows[clock], clocks.table.rows[other]
    both = min(row.length, source.length)
    mine = clocks.values.rows[row.first : row.first + both]
    theirs = clocks.values.rows[source.first : source.first + source.length]
    begin = 0
    while begin < both:
        end = min(begin + BLOCK, both)
        later = np.int32(0)
        for chain in range(begin, end):
            later |= np.int32(theirs[np.uint64(chain)] > mine[np.uint64(chain)])
        if later != 0:
            return False
        begin = end
    known = np.uint32(0)
    for chain in range(both, source.length):
        known |= theirs[np.uint64(chain)]
    return known == 0


@kernel
def assign(clocks: Clocks, clock: Any, other: Any) -> None:
    """`clock` knows what `other` knows, and nothing else."""
    clocks.table.rows[clock].length = 0
    join(clocks, clock, other)


@inlined
def set_time(clocks: Any, clock: Any, chain: Any, time: Any) -> None:
    """What was done on a chain up to a time is known, in any order of locks."""
    if 2 * chain >= clocks.table.rows[clock].length:
        lengthen(clocks, clock, 2 * chain + 2)
    place = clocks.table.rows[clock].first + 2 * chain
    clocks.values.rows[place] = max(np.int64(clocks.values.rows[place]), time)
    clocks.values.rows[place + 1] = max(np.int64(clocks.values.rows[place + 1]), time)


@inlined
def set_must_time(clocks: Any, clock: Any, chain: Any, time: Any) -> None:
    """What was done on a chain up to a time has to come before."""
    if 2 * chain >= clocks.table.rows[clock].length:
        lengthen(clocks, clock, 2 * chain + 2)
    place = clocks.table.rows[clock].first + 2 * chain + 1
    clocks.values.rows[place] = max(np.int64(clocks.values.rows[place]), time)


@kernel
def join_part(clocks: Clocks, clock: Any, other: Any, part: Any) -> bool:
    """What `other` knows of this run's order (`part` 0), or of what has to come before (1), `clock` knows, too. Whether
    that is anything new."""
    length = clocks.table.rows[other].length
    if length > clocks.table.rows[clock].length:
        lengthen(clocks, clock, length)
    first, source = clocks.table.rows[clock].first, clocks.table.rows[other].first
    mine, theirs = clocks.values.rows[first : first + length], clocks.values.rows[source : source + length]
    is_new = False
    for place in range(part, length, 2):
        if theirs[place] > mine[place]:
            mine[place] = theirs[place]
            is_new = True
    return is_new
