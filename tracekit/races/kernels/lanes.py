"""Lanes of SIMD loops: iterations that the source lets run at once are tasks beside one another.

So many consecutive iterations as there may be lanes come behind what the task that runs the loop did before, and
that goes on behind all of them; then the next ones begin. Each stream keeps the tasks of its lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.chains import end_chain, end_task, knows, take_chain
from tracekit.races.kernels.clocks import drop, set_time, shared
from tracekit.races.kernels.epochs import stop_orders
from tracekit.races.kernels.order import acquire_clock, make_own, role_of, running, share_clock, tick
from tracekit.races.kernels.state import ALIVE, BY_LANES, LANE_ROLE, STREAM, State


@inlined
def lanes_of(state: Any, loop: Any) -> Any:
    """How many iterations of a loop run at once; below 2: one after another."""
    return np.int64(state.lanes_of[np.uint64(loop)])


@kernel
def put_in_lane(state: State, stream: Any) -> None:
    """A stream goes on with the iteration of its SIMD loop's present lane."""
    known = state.streams.rows[row_of(state.streams, stream)]
    loop = state.simd_loops.rows[known.simd]
    if loop.lanes[loop.lane] == 0:
        loop.lanes[loop.lane] = np.int64(take(state.tasks, 1))
    task = np.int64(loop.lanes[loop.lane])
    row, of = state.tasks.rows[task], state.tasks.rows[loop.task]
    row.simd, loop.call = known.simd, -1
    row.stream, row.role, row.locks, row.team, row.group = stream, loop.role, of.locks, of.team, of.group
    row.base = of.base
    row.clock, row.creator_chain, row.creator_time = shared(state.clocks, loop.clock), loop.chain, loop.time
    row.acquired, row.over, row.situation, row.shown = 0, 0, 0, 0
    if row.chain == 0:
        take_chain(state, task)
    else:
        tick(state, task)
    chain = state.chains.rows[row.chain]
    chain.lane, chain.lane_from = loop.lane, chain.time
    known.task = task
    state.now[STREAM] = -1


@inlined
def note_call(state: Any, stream: Any, call: Any) -> None:
    """A function is entered, by an instruction of a SIMD loop, say: what it does stands there in the loop's text."""
    if state.lexical[np.uint64(min(call, np.int64(state.lexical.size - 1)))].loop != 0:
        call_in_lane(state, stream, call)


@kernel
def call_in_lane(state: State, stream: Any, call: Any) -> None:
    """And it is one of the loop that the stream is in."""
    loop = state.simd_loops.rows[state.streams.rows[row_of(state.streams, stream)].simd]
    if loop.task != 0 and state.lexical[call].loop == loop.loop + 1:
        loop.call = call


@kernel
def begin_lanes(state: State, stream: Any) -> None:
    """The task comes to the first of some iterations that run at once."""
    loop = state.simd_loops.rows[state.streams.rows[row_of(state.streams, stream)].simd]
    row = state.tasks.rows[loop.task]
    loop.clock, loop.lane = share_clock(state, np.int64(loop.task)), 0
    loop.chain, loop.time = row.chain, state.chains.rows[row.chain].time
    tick(state, np.int64(loop.task))
    put_in_lane(state, stream)


@kernel
def end_lanes(state: State, simd: Any) -> None:
    """All of them are over: the task knows what they did."""
    loop = state.simd_loops.rows[simd]
    of = np.int64(loop.task)
    for lane in range(loop.lane + 1):
        row = state.tasks.rows[loop.lanes[lane]]
        if row.acquired != 0:
            acquire_clock(state, of, row.clock)
        state.tasks.rows[of].shown |= row.shown
        drop(state.clocks, row.clock)
        row.clock = 0
    drop(state.clocks, loop.clock)
    make_own(state, of)
    state.tasks.rows[of].acquired = 1
    clock = np.int64(state.tasks.rows[of].clock)
    for lane in range(loop.lane + 1):
        task = np.int64(loop.lanes[lane])
        chain = np.int64(state.tasks.rows[task].chain)
        set_time(state.clocks, clock, chain, state.chains.rows[chain].time)
    state.now[STREAM] = -1


@kernel
def keep_chains(state: State, simd: Any) -> None:
    """Lanes go on with their chains if the task that comes to the loop knows what was done there in the last one."""
    loop = state.simd_loops.rows[simd]
    for lane in range(loop.length):
        task = np.int64(loop.lanes[lane])
        if task != 0:
            row = state.tasks.rows[task]
            chain = np.int64(row.chain)
            if chain != 0 and not knows(state, loop.task, chain, state.chains.rows[chain].time):
                end_chain(state, task)
                end_task(state, task)
                row.chain = 0


@kernel
def begin_loop(state: State, stream: Any, loop: Any, context: Any) -> None:
    """A stream begins with a SIMD loop, or with one that runs inside of another one's iteration and is part of it."""
    task = running(state, stream)
    known = state.streams.rows[row_of(state.streams, stream)]
    if task == 0:
        return
    if known.simd == 0:
        known.simd = np.int64(take(state.simd_loops, 1))
    row = state.simd_loops.rows[known.simd]
    if row.task != 0:
        row.inside += 1
        return
    row.role = role_of(state, LANE_ROLE, task, context, loop)
    row.task, row.loop, row.length = task, loop, lanes_of(state, loop)
    keep_chains(state, known.simd)
    state.now[ALIVE] += 1
    stop_orders(state, BY_LANES)
    begin_lanes(state, stream)


@kernel
def next_iteration(state: State, stream: Any, loop: Any) -> None:
    """The next lane's, or behind all lanes the first one's again."""
    simd = np.int64(state.streams.rows[row_of(state.streams, stream)].simd)
    row = state.simd_loops.rows[simd]
    if row.task == 0 or row.inside != 0 or row.loop != loop:
        return
    if row.lane + 1 < row.length:
        row.lane += 1
        put_in_lane(state, stream)
        return
    end_lanes(state, simd)
    begin_lanes(state, stream)


@kernel
def end_loop(state: State, stream: Any) -> None:
    """A stream is behind its SIMD loop."""
    known = state.streams.rows[row_of(state.streams, stream)]
    row = state.simd_loops.rows[known.simd]
    if row.task == 0:
        return
    if row.inside != 0:
        row.inside -= 1
        return
    end_lanes(state, np.int64(known.simd))
    known.task, row.task = row.task, 0
    state.tasks.rows[known.task].situation = 0
    state.now[ALIVE] -= 1
    state.now[STREAM] = -1
