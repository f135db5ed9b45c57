"""Parts of loops that OpenMP shares out: any thread of a team might have run them.

Which iterations one thread runs is decided by how many threads there are, by the schedule and by chance, so that its
iterations (of a loop with chunks, its chunks) are tasks beside one another, as those of two threads are. So is what it
does in a `single` region beside all that it did before, as far as no other thread has waited for that. A task's time
goes on with each iteration and with each such region; what it did itself at a time between that behind which it came to
the loop, or behind which a lock, say, has ordered it, and the beginning of the present iteration is another one's.

What is a thread's own cannot race that way: its local variables, blocks that it allocated inside a team, what is
thread-local. A thread that knows which one it is may have memory of its own anywhere, so its iterations are in order.
One that takes a lock, or counts atomically, outside of such loops may have drawn a number by that: then the iterations
of its team's loops behind that are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import Work
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.order import running
from tracekit.races.kernels.state import (
    CHAIN,
    LAST_TIME,
    OTHERS_FROM,
    OTHERS_TO,
    OWN,
    SINGLE,
    SPLIT_AT_ONCE,
    STREAM,
    TASK,
    TEAMS,
    TIME_SHIFT,
    State,
    chain_of,
    time_in,
)

SINGLE_EXECUTOR = int(Work.SINGLE_EXECUTOR)
SINGLE_OTHER = int(Work.SINGLE_OTHER)


@inlined
def is_in_team(state: Any, task: Any) -> Any:
    """Whether a task belongs to a team, other than that of an initial task."""
    return state.teams.rows[state.tasks.rows[task].team].creator != 0


# -- loops ---------------------------------------------------------------------------------------------


@kernel
def may_be_others(state: State, stream: Any, task: Any) -> Any:
    """Whether another thread may do what a task does now: it is one of a team of several threads, and has not learnt
    which one it is."""
    row = state.tasks.rows[task]
    if task == 0 or row.creator != 0 or not is_in_team(state, task) or state.teams.rows[row.team].alone != 0:
        return False
    tells = state.streams.rows[row_of(state.streams, stream)].tells
    return tells == 0 and row.drew == 0 and state.chains.rows[row.chain].time < LAST_TIME


@kernel
def begin_loop(state: State, stream: Any, loop: Any) -> None:
    """A thread comes to its part of a loop."""
    task = running(state, stream)
    row = state.tasks.rows[task]
    if not may_be_others(state, stream, task) or (row.inside != 0 and row.inside != loop + 1):
        return
    chain = state.chains.rows[row.chain]
    row.inside, row.shared_loop, row.loop_chain, row.loop_from = loop + 1, loop + 1, row.chain, chain.time
    chain.time += 1
    row.loop_to = chain.time
    state.now[STREAM] = -1


@kernel
def next_iteration(state: State, stream: Any, loop: Any) -> None:
    """Its next iteration or chunk."""
    row = state.tasks.rows[running(state, stream)]
    if row.inside != loop + 1 or row.loop_chain != row.chain or state.unsplit[loop] == 0:
        return
    chain = state.chains.rows[row.chain]
    if chain.time - row.loop_from >= SPLIT_AT_ONCE or chain.time == LAST_TIME:
        return
    state.unsplit[loop] -= 1
    chain.time += 1
    row.loop_to = chain.time
    state.now[OTHERS_TO] = chain.time
    state.now[OWN] += 1 << TIME_SHIFT


@kernel
def end_loop(state: State, stream: Any, loop: Any) -> None:
    """It is behind it. What comes behind all parts of a thread is in order, but for a `single` region."""
    row = state.tasks.rows[running(state, stream)]
    if row.inside != loop + 1:
        return
    chain = state.chains.rows[row.chain]
    row.inside = 0
    if row.loop_chain == row.chain and chain.time < LAST_TIME:
        chain.time += 1
        row.loop_to = chain.time
    else:
        row.loop_chain = 0
    state.now[STREAM] = -1


@kernel
def begin_single(state: State, stream: Any) -> None:
    """A thread begins with a `single` region."""
    task = running(state, stream)
    row = state.tasks.rows[task]
    if row.inside != 0 or not may_be_others(state, stream, task):
        return
    chain = state.chains.rows[row.chain]
    chain.time += 1
    row.inside, row.single_chain, row.single_to = SINGLE, row.chain, chain.time
    state.now[STREAM] = -1


@kernel
def end_single(state: State, stream: Any) -> None:
    """And ends it."""
    row = state.tasks.rows[running(state, stream)]
    if row.inside == SINGLE:
        row.inside = 0
        state.now[STREAM] = -1


@inlined
def part_of(state: Any, before: Any) -> Any:
    """The shared loop, plus 1, of which an access that races with the present one is another part by the same task,
    SINGLE if it lies in none, else 0; and whether the task is now in a `single` region."""
    row = state.tasks.rows[state.now[TASK]]
    loop, time = np.int64(0), time_in(before)
    if chain_of(before) == state.now[CHAIN] and state.now[OTHERS_TO] > 0:
        loop = np.int64(row.shared_loop)
        is_in_loop = row.loop_chain == row.chain and time > row.loop_from and time < row.loop_to
        if row.inside == SINGLE and not is_in_loop:
            loop = np.int64(SINGLE)
    return loop, np.int64(row.inside == SINGLE)


# -- what is a thread's own ----------------------------------------------------------------------------


@kernel
def learn_own_number(state: State) -> None:
    """The present thread may know which of its team it is."""
    task = state.now[TASK]
    if not is_in_team(state, task):
        return
    row = state.tasks.rows[task]
    state.streams.rows[row_of(state.streams, row.stream)].tells = 1
    row.inside = 0
    state.now[OTHERS_FROM], state.now[OTHERS_TO] = 0, 0


@kernel
def draw(state: State) -> None:
    """The present thread may find a number, or a place, that no other one of its team finds: behind a lock, by a
    counter."""
    task = state.now[TASK]
    row = state.tasks.rows[task]
    if row.inside == 0 and task != 0 and is_in_team(state, task):
        row.drew = 1


@inlined
def note_block(state: Any, stream: Any, address: Any) -> None:
    """A block was allocated."""
    if state.now[TEAMS] > 0:
        in_team = is_in_team(state, running(state, stream))
        state.born.rows[row_of(state.born, address)].stream = stream + 1 if in_team else 0


@inlined
def note_local(state: Any, stream: Any, address: Any, size: Any) -> None:
    """A local variable has begun."""
    if state.now[TEAMS] > 0:
        row = state.tasks.rows[running(state, stream)]
        first = np.int64(address)
        row.stack_from = min(row.stack_from, first) if row.stack_to != 0 else first
        row.stack_to = max(row.stack_to, first + np.int64(size))


@kernel
def is_of_thread(state: State, stream: Any, address: Any, offset: Any) -> Any:
    """Whether bytes are a local variable's of the present task, or a block's that its thread allocated in a team.

    `offset`: where they lie in it.
    """
    row, at = state.tasks.rows[state.now[TASK]], np.int64(address)
    if row.stack_from <= at and at < row.stack_to:
        return True
    block = np.uint64(at - np.int64(offset))
    return state.born.rows[row_of(state.born, block)].stream == stream + 1
