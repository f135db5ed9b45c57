"""Locks: who takes one comes behind who gave it up, readers of a read-write lock aside.

A lock that is *kept* is always taken in the order of this run, because not all who take it are known to wait for it
alone (kernels/lock_orders.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.clocks import new_clock
from tracekit.races.kernels.epochs import begin_section, close_epoch, end_section, open_epoch, stop_orders
from tracekit.races.kernels.order import (
    acquire_clock,
    acquire_part,
    name_situation,
    release_into,
    release_to,
    running,
    tick,
)
from tracekit.races.kernels.state import (
    ALIVE,
    BY_TRY,
    CALLS_BACK,
    FREE_HELD,
    MOST_HELD,
    OUTSIDE,
    REORDERS,
    TAKES,
    TRIES_LOCK,
    WAITS,
    State,
)

WAITING = -1
"""What a thread takes that calls a function to wait for a condition, instead of the address of a lock."""


@inlined
def note_call(state: Any, stream: Any, known_of: Any, address: Any) -> None:
    """A thread calls a function that takes a lock, or one that waits for a condition, which gives up and takes one."""
    if known_of & (TAKES | WAITS):
        state.streams.rows[row_of(state.streams, stream)].taking = address if known_of & TAKES else WAITING


@inlined
def takes_plainly(state: Any, stream: Any, address: Any) -> Any:
    """Whether a lock was got by such a function."""
    known = state.streams.rows[row_of(state.streams, stream)]
    is_plain = known.taking == np.int64(address)
    known.taking = 0
    return is_plain


@inlined
def is_waiting(state: Any, stream: Any) -> Any:
    """Whether a lock is given up to wait for a condition."""
    known = state.streams.rows[row_of(state.streams, stream)]
    waits = known.taking == WAITING
    known.taking = 0
    return waits


@kernel
def name_locks(state: State, task: Any) -> None:
    """The set of locks that a task holds has changed."""
    row = state.tasks.rows[task]
    locks = np.int64(0)
    for place in range(row.holds):
        held = state.held.rows[row.held + place]
        locks = np.int64(row_of(state.lock_sets, (locks << 32) | (held.object << 1) | held.shared))
    row.locks = locks
    name_situation(state, task)


@kernel
def holding(state: State, task: Any, number: Any) -> Any:
    """Where a task keeps that it holds an object, or how many it holds."""
    row = state.tasks.rows[task]
    place = np.int64(0)
    while place < row.holds and state.held.rows[row.held + place].object != number:
        place += 1
    return place


@kernel
def make_held(state: State, task: Any) -> None:
    """A task gets room for the locks that it holds."""
    now, row = state.now, state.tasks.rows[task]
    if now[FREE_HELD] != 0:
        row.held = now[FREE_HELD]
        now[FREE_HELD] = state.held.rows[row.held].object
    else:
        row.held = np.int64(take(state.held, MOST_HELD))


@kernel
def take_lock(state: State, task: Any, address: Any, is_shared: Any, is_plain: Any, group: Any, offset: Any) -> None:
    """A lock was got, by a reader among others or alone; it lies at an offset in an object of a group.

    `is_plain`: its taker waited for nothing but it, so that another one could have been first.
    """
    if task == 0:
        return
    number = np.int64(row_of(state.objects, address))
    lock = state.objects.rows[number]
    lock.group, lock.offset = group, offset
    is_free = is_plain and is_shared == 0 and lock.kept == 0 and state.now[REORDERS] != 0
    if not is_free:
        lock.kept = 1
    if lock.clock != 0:
        if is_free:
            acquire_part(state, task, lock.clock, 0)
        else:
            acquire_clock(state, task, lock.clock)
    if is_shared == 0 and lock.readers != 0:
        acquire_clock(state, task, lock.readers)
    row = state.tasks.rows[task]
    if row.held == 0:
        make_held(state, task)
    place = holding(state, task, number)
    held = state.held.rows[row.held + min(place, MOST_HELD - 1)]
    if place < row.holds:
        held.times += 1
    elif place < MOST_HELD:
        held.object, held.shared, held.times = number, is_shared, 1
        row.holds += 1
        name_locks(state, task)
        if is_free:
            close_epoch(state, task)
            open_epoch(state, task)
            begin_section(state, task, number)
    else:
        lock.kept = 1


@kernel
def give_up_lock(state: State, task: Any, address: Any, to_wait: Any) -> None:
    """A lock is given up; readers are no order for one another. `to_wait`: for a condition."""
    if task == 0:
        return
    number = np.int64(row_of(state.objects, address))
    row = state.tasks.rows[task]
    place = holding(state, task, number)
    is_shared, is_last = False, False
    lock = state.objects.rows[number]
    if to_wait or place >= row.holds:
        lock.kept = 1
    if place < row.holds:
        held = state.held.rows[row.held + place]
        is_shared = held.shared != 0
        held.times -= 1
        is_last = held.times == 0
        if is_last:
            row.holds -= 1
            for later in range(place, row.holds):
                state.held.rows[row.held + later] = state.held.rows[row.held + later + 1]
            name_locks(state, task)
    if is_shared:
        if lock.readers == 0:
            lock.readers = new_clock(state.clocks)
        release_into(state, task, lock.readers)
    else:
        release_to(state, task, number)
    tick(state, task)
    if is_last and lock.kept == 0:
        end_section(state, task, number)


@inlined
def call_outside(state: Any, stream: Any, known_of: Any) -> None:
    """A thread called what is not in the trace: what it and others do there under a lock may hang together."""
    if known_of != 0 and state.now[REORDERS] != 0 and state.now[ALIVE] > 1:
        if known_of & (OUTSIDE | CALLS_BACK):
            keep_locks(state, running(state, stream))
        if known_of & TRIES_LOCK and (known_of & TAKES == 0 or is_refused(state, stream)):
            stop_orders(state, BY_TRY)


@inlined
def is_refused(state: Any, stream: Any) -> Any:
    """Whether a thread has tried a lock and not got it: to get it at once is to wait for it not long."""
    return state.streams.rows[row_of(state.streams, stream)].taking != 0


@kernel
def keep_locks(state: State, task: Any) -> None:
    """The locks that a task holds are taken in the order of the run."""
    row = state.tasks.rows[task]
    for place in range(row.holds):
        state.objects.rows[state.held.rows[row.held + place].object].kept = 1


@kernel
def end_thread(state: State, stream: Any) -> None:
    """A thread ends: who gets a robust mutex that it held comes behind it."""
    task = np.int64(state.streams.rows[row_of(state.streams, stream)].task)
    row = state.tasks.rows[task]
    for place in range(row.holds):
        number = state.held.rows[row.held + place].object
        state.objects.rows[number].kept = 1
        release_to(state, task, number)
    row.holds = 0
