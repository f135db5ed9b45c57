"""What orders threads: each event moves vector clocks as formats/SPEC.md, "The order of threads", says.

A thread's time goes on whenever it has released something: what it did before and does behind is told apart by that
(Flanagan and Freund, *FastTrack: Efficient and Precise Dynamic Race Detection*).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED, take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.containers.kernels.parts import fill, size_of, split
from tracekit.formats.event_values import AtomicOrder
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.chains import take_chain
from tracekit.races.kernels.clocks import assign, covers, drop, join, join_part, new_clock, set_time, shared, time_of
from tracekit.races.kernels.epochs import close_epoch, open_epoch, stop_orders
from tracekit.races.kernels.state import (
    ALIVE,
    BY_FORK,
    BY_ROOM,
    CHAIN,
    CHAIN_SHIFT,
    CLOCK_FIRST,
    CLOCK_LENGTH,
    CREATOR_CHAIN,
    CREATOR_TIME,
    LAST_TIME,
    OLD_BARRIERS,
    OTHERS_FROM,
    OTHERS_TO,
    OWN,
    REORDERS,
    SIMD,
    SINGLE,
    SITUATION,
    STREAM,
    TASK,
    THREAD_ROLE,
    TIME_SHIFT,
    State,
)

LOAD = int(AtomicOrder.LOAD)
STORE = int(AtomicOrder.STORE)
ACQUIRE = int(AtomicOrder.ACQUIRE)
RELEASE = int(AtomicOrder.RELEASE)

FIRST_TASK = 1
ROUNDS = 8
"""Rounds of a barrier that are kept apart."""


# -- tasks -------------------------------------------------------------------------------------------


@kernel
def turn_to(state: State, stream: Any) -> None:
    """From now on events are those of `stream`."""
    now = state.now
    task = np.int64(state.streams.rows[row_of(state.streams, stream)].task)
    now[STREAM] = stream
    now[TASK] = task
    row = state.tasks.rows[task]
    if row.over != 0:  # a worker that has not yet left its team
        task = np.int64(0)
        row = state.tasks.rows[task]
        now[TASK] = task
    if task != 0 and (row.situation == 0 or row.stream != stream):
        row.stream = stream
        name_situation(state, task)
    clock = state.clocks.table.rows[row.clock]
    now[CLOCK_FIRST] = clock.first
    now[CLOCK_LENGTH] = clock.length
    now[CHAIN] = row.chain
    now[CREATOR_CHAIN] = row.creator_chain
    now[CREATOR_TIME] = row.creator_time
    now[OWN] = (row.chain << CHAIN_SHIFT) | (state.chains.rows[row.chain].time << TIME_SHIFT)
    now[SITUATION] = row.situation
    now[SIMD] = row.simd
    now[OTHERS_FROM], now[OTHERS_TO] = 0, 0
    if row.inside == SINGLE and row.single_chain == row.chain:
        now[OTHERS_FROM] = time_of(state.clocks, row.clock, row.chain)
        now[OTHERS_TO] = row.single_to
    elif row.inside > 0 and row.loop_chain == row.chain:
        now[OTHERS_FROM] = max(row.loop_from, time_of(state.clocks, row.clock, row.chain))
        now[OTHERS_TO] = row.loop_to


@kernel
def name_situation(state: State, task: Any) -> None:
    """What sites say of a task has changed: its role, its stream, its locks."""
    row = state.tasks.rows[task]
    key = (np.int64(row.role) << 44) | ((row.stream & 0x3FFF) << 30) | np.int64(row.locks)
    row.situation = row_of(state.situations, key)
    state.now[STREAM] = -1


@kernel
def role_of(state: State, kind: Any, creator: Any, context: Any, instruction: Any) -> Any:
    """The role of the tasks that are made at a place, by a creator that is known by the first of them."""
    place = np.int64(row_of(state.places, (context << 32) | instruction))
    number = np.int64(row_of(state.roles, (place << 2) | (kind & 3)))
    role = state.roles.rows[number]
    if role.kind == 0:
        role.kind, role.context, role.instruction = kind, context, instruction
        role.of, role.base = state.tasks.rows[creator].role, state.tasks.rows[creator].base
    return number


@kernel
def begin_thread(state: State, stream: Any) -> Any:
    """The task of a stream that is a thread's: made when it is first heard of. 0 if there are too many."""
    known = state.streams.rows[row_of(state.streams, stream)]
    if known.task != 0:
        return np.int64(known.task)
    task = np.int64(take(state.tasks, 1))
    if task == 0:
        return task
    row = state.tasks.rows[task]
    row.stream = stream
    row.role = row_of(state.roles, (stream << 2) | THREAD_ROLE)
    state.roles.rows[row.role].kind, state.roles.rows[row.role].stream = THREAD_ROLE, stream
    take_chain(state, task)
    known.task = task
    state.now[ALIVE] += 1
    state.now[STREAM] = -1
    return task


@kernel
def tick(state: State, task: Any) -> None:
    """Something was released: what the task does from now on is told apart from what it did."""
    row = state.tasks.rows[task]
    chain = state.chains.rows[row.chain]
    if chain.time < LAST_TIME:
        if state.now[REORDERS] != 0:
            close_epoch(state, task)
        chain.time += 1
        if state.now[REORDERS] != 0:
            open_epoch(state, task)
    else:  # that one is used up
        stop_orders(state, BY_ROOM)
        row.shown = 1
        make_own(state, task)
        set_time(state.clocks, row.clock, row.chain, LAST_TIME)
        take_chain(state, task)
    state.now[STREAM] = -1


@kernel
def make_own(state: State, task: Any) -> None:
    """The clock of a task is no other's, and holds what its creator did."""
    row, clocks = state.tasks.rows[task], state.clocks
    if row.clock == 0:
        row.clock = new_clock(clocks)
    elif clocks.table.rows[row.clock].users > 1:
        own = new_clock(clocks)
        join(clocks, own, row.clock)
        drop(clocks, row.clock)
        row.clock = own
    if row.creator_chain != 0:
        set_time(clocks, row.clock, row.creator_chain, row.creator_time)
        row.creator_chain, row.creator_time = 0, 0
    state.now[STREAM] = -1


@kernel
def acquire_clock(state: State, task: Any, clock: Any) -> None:
    """A task acquires what a clock knows."""
    row = state.tasks.rows[task]
    if clock == 0 or task == 0 or row.over != 0 or covers(state.clocks, row.clock, clock):
        return
    row.acquired = 1
    make_own(state, task)
    join(state.clocks, row.clock, clock)
    state.now[STREAM] = -1


@kernel
def acquire_part(state: State, task: Any, clock: Any, part: Any) -> None:
    """A task acquires what a clock knows of this run's order alone (`part` 0), or of what has to come before (1)."""
    row = state.tasks.rows[task]
    row.acquired = 1
    make_own(state, task)
    join_part(state.clocks, row.clock, clock, part)
    state.now[STREAM] = -1


@kernel
def release_into(state: State, task: Any, clock: Any) -> None:
    """A task releases what it knows into a clock: whoever acquires that comes behind it."""
    state.tasks.rows[task].shown = 1
    release_for_waiters(state, task, clock)


@kernel
def release_for_waiters(state: State, task: Any, clock: Any) -> None:
    """A task releases what it knows into a clock that nobody acquires but who waits for the task."""
    row, clocks = state.tasks.rows[task], state.clocks
    if row.clock != 0:
        join(clocks, clock, row.clock)
    if row.creator_chain != 0:
        set_time(clocks, clock, row.creator_chain, row.creator_time)
    if row.chain != 0:
        set_time(clocks, clock, row.chain, state.chains.rows[row.chain].time)


@kernel
def share_clock(state: State, task: Any) -> Any:
    """The clock of a task, for one user more; it holds what its creator did."""
    row = state.tasks.rows[task]
    if row.creator_chain != 0 or row.clock == 0:
        make_own(state, task)
    return shared(state.clocks, row.clock)


@inlined
def running(state: Any, stream: Any) -> Any:
    """The task whose event this is, 0 if it is not known."""
    if state.now[STREAM] != stream:
        turn_to(state, stream)
    return state.now[TASK]


@kernel
def acquire_task(state: State, task: Any, other: Any) -> None:
    """A task acquires what another one has done."""
    if task == 0 or other == 0 or task == other:
        return
    row = state.tasks.rows[task]
    row.acquired = 1
    make_own(state, task)
    release_into(state, other, row.clock)
    state.now[STREAM] = -1


@kernel
def start_program(state: State, stream: Any) -> None:
    """A process begins: with one thread, behind all that those of the process before did."""
    task = begin_thread(state, stream)
    if state.tasks.control[USED] > FIRST_TASK + 1:
        stop_orders(state, BY_FORK)
    make_own(state, task)
    for chain in range(1, state.chains.control[USED]):
        set_time(state.clocks, state.tasks.rows[task].clock, chain, state.chains.rows[chain].time)
    for other in range(FIRST_TASK, state.tasks.control[USED]):
        state.tasks.rows[other].joined = 1
    state.tasks.rows[task].joined = 0
    state.now[ALIVE] = 1
    tick(state, task)


@kernel
def create_thread(state: State, creator: Any, stream: Any, context: Any) -> None:
    """A thread makes another one."""
    task = begin_thread(state, stream)
    if task == 0 or creator == 0 or task == creator:
        return
    row = state.tasks.rows[task]
    role = state.roles.rows[row.role]
    role.creator = state.tasks.rows[creator].stream + 1
    role.context = context
    acquire_task(state, task, creator)
    tick(state, creator)


@kernel
def join_thread(state: State, waiting: Any, stream: Any) -> None:
    """A thread waited for the end of another one."""
    task = np.int64(state.streams.rows[row_of(state.streams, stream)].task)
    if task == 0 or waiting == 0:
        return
    acquire_task(state, waiting, task)
    if state.tasks.rows[task].joined == 0:
        state.tasks.rows[task].joined = 1
        state.now[ALIVE] -= 1


# -- semaphores, once, barriers ------------------------------------------------------------------------


@inlined
def release_to(state: Any, task: Any, number: Any) -> None:
    """What a task knows, whoever acquires an object from now on knows."""
    known = state.objects.rows[number]
    if known.clock == 0:
        known.clock = new_clock(state.clocks)
    release_into(state, task, known.clock)


@kernel
def release_object(state: State, stream: Any, of: Any, address: Any) -> None:
    """The task of the stream `of` releases an object, perhaps in a handler, whose `stream` is then known to be its."""
    task = belonging(state, stream, of)
    if task != 0:
        release_to(state, task, np.int64(row_of(state.objects, address)))
        tick(state, task)


@kernel
def acquire_object(state: State, stream: Any, of: Any, address: Any) -> None:
    """It acquires it."""
    task = belonging(state, stream, of)
    clock = np.int64(state.objects.rows[row_of(state.objects, address)].clock)
    if task != 0 and clock != 0:
        acquire_clock(state, task, clock)


@kernel
def belonging(state: State, stream: Any, of: Any) -> Any:
    """The task that has the stream `of`; `stream` is a handler's of it, or the same."""
    task = np.int64(state.streams.rows[row_of(state.streams, of)].task)
    own = state.streams.rows[row_of(state.streams, stream)]
    if own.task == 0:
        own.task = task
        state.now[STREAM] = -1
    return task


@kernel
def make_barrier(state: State, address: Any, count: Any) -> None:
    """So many arrivals make a round from now on."""
    barrier = state.barriers.rows[row_of(state.barriers, address)]
    barrier.count = count
    barrier.arrivals = 0


@kernel
def enter_barrier(state: State, task: Any, address: Any) -> None:
    """A task arrives. Without a count the round never ends: then whoever leaves knows of all who came."""
    if task == 0:
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
    release_into(state, task, of.clock)
    state.entered.rows[row_of(state.entered, (number << 32) | task)].round = round_number
    tick(state, task)


@kernel
def leave_barrier(state: State, task: Any, address: Any) -> None:
    """The round of a task is over."""
    if task == 0:
        return
    number = np.int64(row_of(state.barriers, address))
    round_number = state.entered.rows[row_of(state.entered, (number << 32) | task)].round
    clock = np.int64(state.rounds.rows[row_of(state.rounds, number * ROUNDS + round_number % ROUNDS)].clock)
    if clock != 0:
        acquire_clock(state, task, clock)


@kernel
def pass_barrier(state: State, task: Any, address: Any) -> None:
    """What older recorders said of a barrier."""
    state.now[OLD_BARRIERS] += 1
    enter_barrier(state, task, address)
    leave_barrier(state, task, address)


# -- atomic operations ---------------------------------------------------------------------------------


@kernel
def operate(state: State, task: Any, address: Any, order: Any) -> None:
    """An atomic operation: loads acquire, or meet what a fence will acquire; stores release by the rules of C++20."""
    if task == 0:
        return
    begin, size = np.int64(address), size_of(order)
    end = begin + size
    if state.atomics.rows[row_of(state.atomics, begin)].size != size:
        divide(state, begin, end)
    if order & LOAD:
        place = begin
        while place < end:
            place += load_part(state, task, place, order)
    if order & STORE:
        place = begin
        while place < end:
            place += store_part(state, task, place, order)
        if order & RELEASE:
            tick(state, task)


@kernel
def load_part(state: State, task: Any, place: Any, order: Any) -> int:
    """What the bytes that begin at `place`, and that atomic operations have in common, release; how many they are."""
    part = state.atomics.rows[row_of(state.atomics, place)]
    if part.clock != 0:
        if order & ACQUIRE:
            acquire_clock(state, task, part.clock)
        else:
            row = state.tasks.rows[task]
            if row.met == 0:
                row.met = new_clock(state.clocks)
            join(state.clocks, row.met, part.clock)
    return max(int(part.size), 1)


@kernel
def store_part(state: State, task: Any, place: Any, order: Any) -> int:
    """What those bytes release after an atomic store by a task; how many bytes they are."""
    part = state.atomics.rows[row_of(state.atomics, place)]
    row = state.tasks.rows[task]
    gives = order & RELEASE or row.released != 0
    if part.clock == 0 and gives:
        part.clock = new_clock(state.clocks)
    if not order & LOAD and part.clock != 0:
        assign(state.clocks, part.clock, 0)
    if order & RELEASE:
        release_into(state, task, part.clock)
    elif gives:
        join(state.clocks, part.clock, row.released)
    return max(int(part.size), 1)


@kernel
def divide(state: State, begin: Any, end: Any) -> None:
    """No row of `atomics` lies across the ends of some bytes, and each of these is of one."""
    split_at(state, begin)
    split_at(state, end)
    fill(state.atomics, begin, end)


@kernel
def split_at(state: State, place: Any) -> None:
    """Bytes on both sides of a place are of two rows, which release the same so far."""
    part, rest = split(state.atomics, place)
    if rest != 0 and state.atomics.rows[part].clock != 0:
        state.atomics.rows[rest].clock = new_clock(state.clocks)
        assign(state.clocks, state.atomics.rows[rest].clock, state.atomics.rows[part].clock)


@kernel
def pass_fence(state: State, task: Any, order: Any) -> None:
    """A fence."""
    if task == 0:
        return
    row = state.tasks.rows[task]
    if order & ACQUIRE and row.met != 0:
        acquire_clock(state, task, row.met)
    if order & RELEASE:
        if row.released == 0:
            row.released = new_clock(state.clocks)
        assign(state.clocks, row.released, 0)
        release_into(state, task, row.released)
        tick(state, task)
