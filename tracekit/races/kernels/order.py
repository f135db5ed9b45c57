"""What orders threads: each event moves vector clocks as formats/SPEC.md, "The order of threads", says.

A thread's time goes on whenever it has released something: what it did before and does behind is told apart by that
(Flanagan and Freund, *FastTrack: Efficient and Precise Dynamic Race Detection*).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED, take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.events import AtomicOrder
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.clocks import assign, join, new_clock, set_time
from tracekit.races.kernels.state import (
    ALIVE,
    CLOCK_FIRST,
    CLOCK_LENGTH,
    LAST_TIME,
    MOST_HELD,
    MOST_THREADS,
    OLD_BARRIERS,
    OWN,
    SITUATION,
    STREAM,
    THREAD,
    THREAD_SHIFT,
    TIME_SHIFT,
    State,
)

LOAD = int(AtomicOrder.LOAD)
STORE = int(AtomicOrder.STORE)
ACQUIRE = int(AtomicOrder.ACQUIRE)
RELEASE = int(AtomicOrder.RELEASE)

FIRST_THREAD = 1
ROUNDS = 8
"""Rounds of a barrier that are kept apart."""


# -- threads -----------------------------------------------------------------------------------------


@kernel
def turn_to(state: State, stream: Any) -> None:
    """From now on events are those of `stream`."""
    now = state.now
    thread = np.int64(state.streams.rows[row_of(state.streams, stream)].thread)
    now[STREAM] = stream
    now[THREAD] = thread
    row = state.threads.rows[thread]
    clock = state.clocks.table.rows[row.clock]
    now[CLOCK_FIRST] = clock.first
    now[CLOCK_LENGTH] = clock.length
    now[OWN] = (thread << THREAD_SHIFT) | (row.time << TIME_SHIFT)
    now[SITUATION] = row.situation


@kernel
def begin_thread(state: State, stream: Any) -> Any:
    """The thread of a stream that is one's: made when it is first heard of. 0 if there are too many."""
    known = state.streams.rows[row_of(state.streams, stream)]
    if known.thread != 0:
        return np.int64(known.thread)
    thread = np.int64(take(state.threads, 1))
    if thread == 0 or thread >= MOST_THREADS:
        return np.int64(0)
    row = state.threads.rows[thread]
    row.stream = stream
    row.clock = new_clock(state.clocks)
    row.held = np.int64(take(state.held, MOST_HELD))
    row.time = 1
    row.situation = row_of(state.situations, thread << 32)
    set_time(state.clocks, row.clock, thread, 1)
    known.thread = thread
    state.now[ALIVE] += 1
    state.now[STREAM] = -1
    return thread


@kernel
def tick(state: State, thread: Any) -> None:
    """Something was released: what the thread does from now on is told apart from what it did."""
    row = state.threads.rows[thread]
    if row.time < LAST_TIME:
        row.time += 1
    set_time(state.clocks, row.clock, thread, row.time)
    state.now[STREAM] = -1


@kernel
def meet(state: State, thread: Any, clock: Any) -> None:
    """A thread acquires what a clock knows."""
    join(state.clocks, state.threads.rows[thread].clock, clock)
    state.now[STREAM] = -1


@inlined
def running(state: Any, stream: Any) -> Any:
    """The thread whose event this is, 0 if it is not known."""
    if state.now[STREAM] != stream:
        turn_to(state, stream)
    return state.now[THREAD]


@kernel
def start_program(state: State, stream: Any) -> None:
    """A process begins: with one thread, behind all that those of the process before did."""
    thread = begin_thread(state, stream)
    for other in range(FIRST_THREAD, state.threads.control[USED]):
        if state.threads.rows[other].clock != 0:
            state.threads.rows[other].joined = 1
            meet(state, thread, state.threads.rows[other].clock)
    state.threads.rows[thread].joined = 0
    state.now[ALIVE] = 1
    tick(state, thread)


@kernel
def create_thread(state: State, creator: Any, stream: Any, context: Any) -> None:
    """A thread makes another one."""
    thread = begin_thread(state, stream)
    if thread == 0 or creator == 0 or thread == creator:
        return
    row = state.threads.rows[thread]
    row.creator = creator
    row.context = context
    meet(state, thread, state.threads.rows[creator].clock)
    tick(state, creator)


@kernel
def join_thread(state: State, waiting: Any, stream: Any) -> None:
    """A thread waited for the end of another one."""
    thread = np.int64(state.streams.rows[row_of(state.streams, stream)].thread)
    if thread == 0 or waiting == 0:
        return
    meet(state, waiting, state.threads.rows[thread].clock)
    if state.threads.rows[thread].joined == 0:
        state.threads.rows[thread].joined = 1
        state.now[ALIVE] -= 1


# -- locks -------------------------------------------------------------------------------------------


@kernel
def name_locks(state: State, thread: Any) -> None:
    """The set of locks that a thread holds has changed."""
    row = state.threads.rows[thread]
    locks = np.int64(0)
    for place in range(row.holds):
        held = state.held.rows[row.held + place]
        locks = np.int64(row_of(state.lock_sets, (locks << 32) | (held.object << 1) | held.shared))
    row.locks = locks
    row.situation = row_of(state.situations, (thread << 32) | locks)
    state.now[STREAM] = -1


@kernel
def holding(state: State, thread: Any, number: Any) -> Any:
    """Where a thread keeps that it holds an object, or how many it holds."""
    row = state.threads.rows[thread]
    place = np.int64(0)
    while place < row.holds and state.held.rows[row.held + place].object != number:
        place += 1
    return place


@kernel
def take_lock(state: State, thread: Any, address: Any, shared: Any, group: Any, offset: Any) -> None:
    """A lock was got, by a reader among others or alone; it lies at an offset in an object of a group."""
    if thread == 0:
        return
    number = np.int64(row_of(state.objects, address))
    lock = state.objects.rows[number]
    lock.group, lock.offset = group, offset
    if lock.clock != 0:
        meet(state, thread, lock.clock)
    if shared == 0 and lock.readers != 0:
        meet(state, thread, lock.readers)
    place = holding(state, thread, number)
    row = state.threads.rows[thread]
    held = state.held.rows[row.held + min(place, MOST_HELD - 1)]
    if place < row.holds:
        held.times += 1
    elif place < MOST_HELD:
        held.object, held.shared, held.times = number, shared, 1
        row.holds += 1
        name_locks(state, thread)


@kernel
def give_up_lock(state: State, thread: Any, address: Any) -> None:
    """A lock is given up; readers are no order for one another."""
    if thread == 0:
        return
    number = np.int64(row_of(state.objects, address))
    row = state.threads.rows[thread]
    place = holding(state, thread, number)
    shared = False
    if place < row.holds:
        held = state.held.rows[row.held + place]
        shared = held.shared != 0
        held.times -= 1
        if held.times == 0:
            row.holds -= 1
            for later in range(place, row.holds):
                state.held.rows[row.held + later] = state.held.rows[row.held + later + 1]
            name_locks(state, thread)
    lock = state.objects.rows[number]
    if shared:
        if lock.readers == 0:
            lock.readers = new_clock(state.clocks)
        join(state.clocks, lock.readers, row.clock)
    else:
        release_to(state, thread, number)
    tick(state, thread)


@kernel
def end_thread(state: State, stream: Any) -> None:
    """A thread ends: who gets a robust mutex that it held comes behind it."""
    thread = np.int64(state.streams.rows[row_of(state.streams, stream)].thread)
    row = state.threads.rows[thread]
    for place in range(row.holds):
        release_to(state, thread, state.held.rows[row.held + place].object)
    row.holds = 0


# -- semaphores, once, barriers ------------------------------------------------------------------------


@inlined
def release_to(state: Any, thread: Any, number: Any) -> None:
    """What a thread knows, whoever acquires an object from now on knows."""
    known = state.objects.rows[number]
    if known.clock == 0:
        known.clock = new_clock(state.clocks)
    join(state.clocks, known.clock, state.threads.rows[thread].clock)


@kernel
def release_object(state: State, stream: Any, thread: Any, address: Any) -> None:
    """A thread releases an object, perhaps in a handler, whose stream is then known to be the thread's."""
    thread = belonging(state, stream, thread)
    if thread != 0:
        release_to(state, thread, np.int64(row_of(state.objects, address)))
        tick(state, thread)


@kernel
def acquire_object(state: State, stream: Any, thread: Any, address: Any) -> None:
    """A thread acquires it."""
    thread = belonging(state, stream, thread)
    clock = np.int64(state.objects.rows[row_of(state.objects, address)].clock)
    if thread != 0 and clock != 0:
        meet(state, thread, clock)


@kernel
def belonging(state: State, stream: Any, of: Any) -> Any:
    """The thread that has the stream `of`; `stream` is a handler's of it, or the same."""
    thread = np.int64(state.streams.rows[row_of(state.streams, of)].thread)
    own = state.streams.rows[row_of(state.streams, stream)]
    if own.thread == 0:
        own.thread = thread
        state.now[STREAM] = -1
    return thread


@kernel
def make_barrier(state: State, address: Any, count: Any) -> None:
    """So many arrivals make a round from now on."""
    barrier = state.barriers.rows[row_of(state.barriers, address)]
    barrier.count = count
    barrier.arrivals = 0


@kernel
def enter_barrier(state: State, thread: Any, address: Any) -> None:
    """A thread arrives. Without a count the round never ends: then whoever leaves knows of all who came."""
    if thread == 0:
        return
    number = np.int64(row_of(state.barriers, address))
    barrier = state.barriers.rows[number]
    round_number, place = np.int64(0), barrier.arrivals
    if barrier.count > 0:
        round_number, place = barrier.arrivals // barrier.count, barrier.arrivals % barrier.count
    barrier.arrivals += 1
    of = state.rounds.rows[row_of(state.rounds, number * ROUNDS + round_number % ROUNDS)]
    if of.clock == 0:
        of.clock = new_clock(state.clocks)
    if place == 0:
        assign(state.clocks, of.clock, 0)
    join(state.clocks, of.clock, state.threads.rows[thread].clock)
    state.entered.rows[row_of(state.entered, (number << 16) | thread)].round = round_number
    tick(state, thread)


@kernel
def leave_barrier(state: State, thread: Any, address: Any) -> None:
    """The round of a thread is over."""
    if thread == 0:
        return
    number = np.int64(row_of(state.barriers, address))
    round_number = state.entered.rows[row_of(state.entered, (number << 16) | thread)].round
    clock = np.int64(state.rounds.rows[row_of(state.rounds, number * ROUNDS + round_number % ROUNDS)].clock)
    if clock != 0:
        meet(state, thread, clock)


@kernel
def pass_barrier(state: State, thread: Any, address: Any) -> None:
    """What older recorders said of a barrier."""
    state.now[OLD_BARRIERS] += 1
    enter_barrier(state, thread, address)
    leave_barrier(state, thread, address)


# -- atomic operations ---------------------------------------------------------------------------------


@kernel
def operate(state: State, thread: Any, address: Any, order: Any) -> None:
    """An atomic operation: loads acquire, or meet what a fence will acquire; stores release by the rules of C++20."""
    if thread == 0:
        return
    atomic = state.atomics.rows[row_of(state.atomics, address)]
    row = state.threads.rows[thread]
    if order & LOAD and atomic.clock != 0:
        if order & ACQUIRE:
            meet(state, thread, atomic.clock)
        else:
            if row.met == 0:
                row.met = new_clock(state.clocks)
            join(state.clocks, row.met, atomic.clock)
    if order & STORE:
        given = row.clock if order & RELEASE else row.released
        if atomic.clock == 0 and given != 0:
            atomic.clock = new_clock(state.clocks)
        if not order & LOAD and atomic.clock != 0:
            assign(state.clocks, atomic.clock, 0)
        if given != 0:
            join(state.clocks, atomic.clock, given)
        if order & RELEASE:
            tick(state, thread)


@kernel
def pass_fence(state: State, thread: Any, order: Any) -> None:
    """A fence."""
    if thread == 0:
        return
    row = state.threads.rows[thread]
    if order & ACQUIRE and row.met != 0:
        meet(state, thread, row.met)
    if order & RELEASE:
        if row.released == 0:
            row.released = new_clock(state.clocks)
        assign(state.clocks, row.released, row.clock)
        tick(state, thread)
