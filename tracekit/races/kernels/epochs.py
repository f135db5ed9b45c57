"""What tasks do between points of order, as long as other orders of locks are looked for (kernels/lock_orders.py).

An *epoch* of a chain lasts from one of its times to another, or up to the taking of a lock, and begins with the taking
or giving up of a lock if there is one of these between. When it ends, what has to come before it is written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED, take
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.clocks import must_time_of
from tracekit.races.kernels.state import BY_ROOM, MOST_REORDERED, REORDERS, STOPPED, State


@inlined
def stop_orders(state: Any, why: Any) -> None:
    """From now on other orders of locks are not looked for."""
    if state.now[REORDERS] != 0:
        state.now[REORDERS] = 0
        state.now[STOPPED] = why


@kernel
def open_epoch(state: State, task: Any) -> None:
    """An epoch of a task's chain begins now."""
    if state.now[REORDERS] == 0 or task == 0:
        return
    chain = np.int64(state.tasks.rows[task].chain)
    if state.epochs.control[USED] >= state.epochs.rows.size or chain >= MOST_REORDERED:
        stop_orders(state, BY_ROOM)
        return
    number = np.int64(take(state.epochs, 1))
    of, row = state.chains.rows[chain], state.epochs.rows[number]
    row.chain, row.time, row.task, row.previous = chain, of.time, task, of.epoch
    row.locks = state.tasks.rows[task].locks
    if of.epoch != 0:
        state.epochs.rows[of.epoch].next = number
    of.epoch = number


@inlined
def present_epoch(state: Any, task: Any) -> Any:
    """The epoch of a task's chain that lasts, 0 if there is none: if other orders are not looked for, say."""
    return np.int64(state.chains.rows[state.tasks.rows[task].chain].epoch) if state.now[REORDERS] != 0 else np.int64(0)


@kernel
def close_epoch(state: State, task: Any) -> None:
    """The present epoch of a task's chain ends: no more has to come before it than the task knows now."""
    row = state.tasks.rows[task]
    number = present_epoch(state, task)
    if number == 0 or state.epochs.rows[number].first != 0:
        return
    length = max(state.clocks.table.rows[row.clock].length >> 1, row.creator_chain + 1)
    if length > MOST_REORDERED or state.needed.control[USED] + length > state.needed.rows.size:
        stop_orders(state, BY_ROOM)
        return
    first = np.int64(take(state.needed, length))
    state.epochs.rows[number].first, state.epochs.rows[number].length = first, length
    for chain in range(length):
        state.needed.rows[first + chain] = known_to(state, task, np.int64(chain))


@inlined
def known_to(state: Any, task: Any, chain: Any) -> Any:
    """Up to which time of a chain all has to come before what a task does now."""
    row = state.tasks.rows[task]
    time = must_time_of(state.clocks, row.clock, chain)
    return max(time, np.int64(row.creator_time)) if chain == row.creator_chain and chain != 0 else time


@inlined
def needed_by(state: Any, epoch: Any, chain: Any) -> Any:
    """Up to which time of a chain all has to come before an epoch, or before its end."""
    row = state.epochs.rows[epoch]
    if row.first == 0:
        return known_to(state, np.int64(row.task), chain)
    return np.int64(state.needed.rows[row.first + chain]) if chain < row.length else np.int64(0)


@kernel
def begin_section(state: State, task: Any, lock: Any) -> None:
    """The epoch of a task that has just begun does so by taking a lock."""
    number = present_epoch(state, task)
    if number == 0:
        return
    row, of = state.epochs.rows[number], state.objects.rows[lock]
    row.lock, row.prior = lock, of.epoch
    if of.epoch != 0 and state.epochs.rows[of.epoch].mate == 0:
        of.kept = 1  # somebody had it, and the trace does not say when that ended
    of.epoch = number


@kernel
def end_section(state: State, task: Any, lock: Any) -> None:
    """And by giving it up."""
    number = present_epoch(state, task)
    if number == 0:
        return
    row, of = state.epochs.rows[number], state.objects.rows[lock]
    taken = state.epochs.rows[of.epoch]
    if of.epoch == 0 or taken.mate != 0 or taken.chain != row.chain:
        of.kept = 1
        return
    row.lock, row.mate, taken.mate = -lock, of.epoch, number
