"""Chains, by which vector clocks count, and who may go on with one.

A task that begins takes the chain of one that is over and that it knows. Where tasks make tasks and wait for them,
hardly any knows another's end, and each would need a chain of its own. There a task *retires*: it is over, nobody can
know of it but by way of its creator, which has waited for it, and so each of its times stands at the time of its
creator behind that wait. Whoever knows that time knows the task, and nobody else does. Clocks need not count by its
chain any more, and any task may go on with it; what stood there before is looked up. When the creator retires, too, its
times stand at those of its own creator: a tree of disjoint sets with paths compressed (after SP-bags, Feng and
Leiserson, *Efficient Detection of Determinacy Races in Cilk Programs*, SPAA 1997).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED, take
from tracekit.containers.kernels.hash_table import CELLS, cell_of, row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.clocks import drop, must_time_of, time_of
from tracekit.races.kernels.epochs import close_epoch, open_epoch
from tracekit.races.kernels.state import (
    ENDED,
    FIRST_ENDED,
    FREE_HELD,
    LAST_TIME,
    MINGLED,
    MOST_CHAINS,
    REORDERS,
    TIME_BITS,
    State,
)

LOOKS = 4
"""At each end of the chains that are over so many are looked at."""


@inlined
def knows(state: Any, task: Any, chain: Any, time: Any) -> Any:
    """Whether a task knows what was done on a chain up to a time, by those that have not retired."""
    row = state.tasks.rows[task]
    if chain == row.creator_chain and time <= row.creator_time:
        return True
    if state.now[REORDERS] != 0 and time > must_time_of(state.clocks, row.clock, chain):
        return False  # another order of locks could have the two at once
    return time <= time_of(state.clocks, row.clock, chain)


# -- chains that are free ------------------------------------------------------------------------------


@kernel
def take_ended(state: State, number: Any) -> Any:
    """The chain at a place of the ring of those that are over, and no longer there."""
    now, ring = state.now, state.ended
    place, first = (now[FIRST_ENDED] + number) % MOST_CHAINS, now[FIRST_ENDED]
    chain = ring[place]
    if number < LOOKS:
        ring[place] = ring[first]
        now[FIRST_ENDED] = (first + 1) % MOST_CHAINS
    else:
        ring[place] = ring[(first + now[ENDED] - 1) % MOST_CHAINS]
    now[ENDED] -= 1
    return chain


@kernel
def take_chain(state: State, task: Any) -> None:
    """A task begins: on the chain of one that is over and that it knows or that has retired, else on a new one."""
    now, row = state.now, state.tasks.rows[task]
    chain = np.int64(0)
    for look in range(min(2 * LOOKS, now[ENDED])):
        number = look >> 1 if look & 1 == 0 else now[ENDED] - 1 - (look >> 1)
        if chain == 0:
            one = state.ended[(now[FIRST_ENDED] + number) % MOST_CHAINS]
            if knows(state, task, one, state.chains.rows[one].known):
                chain = take_ended(state, number)
    if chain == 0 and state.chains.control[USED] == MOST_CHAINS and now[ENDED] > 0:
        chain = take_ended(state, 0)
        now[MINGLED] += 1
    if chain == 0:
        chain = np.int64(take(state.chains, 1))
    row.chain = chain
    state.chains.rows[chain].time = min(state.chains.rows[chain].time + 1, LAST_TIME)
    row.first_time = state.chains.rows[chain].time
    open_epoch(state, task)


@kernel
def give_back(state: State, chain: Any) -> None:
    """Another task may go on with a chain."""
    if chain != 0 and state.chains.rows[chain].time < LAST_TIME:
        state.ended[(state.now[FIRST_ENDED] + state.now[ENDED]) % MOST_CHAINS] = chain
        state.now[ENDED] += 1


@kernel
def end_chain(state: State, task: Any) -> None:
    """A task will not retire: who goes on with its chain has to know of it."""
    chain = np.int64(state.tasks.rows[task].chain)
    state.chains.rows[chain].known = state.chains.rows[chain].time
    give_back(state, chain)


@kernel
def end_task(state: State, task: Any) -> None:
    """A task is over, and holds nothing. Its chain is not yet given back."""
    now, row = state.now, state.tasks.rows[task]
    row.over = 1
    if row.chain != 0:
        close_epoch(state, task)
    if row.held != 0:
        state.held.rows[row.held].object = now[FREE_HELD]
        now[FREE_HELD] = row.held
        row.held, row.holds = 0, 0
    drop(state.clocks, row.clock)
    drop(state.clocks, row.children)
    drop(state.clocks, row.fulfilled)
    row.clock, row.children, row.fulfilled = 0, 0, 0


# -- tasks that retire ---------------------------------------------------------------------------------


@inlined
def may_retire(state: Any, task: Any) -> Any:
    """Whether nobody can know of a task that is over but by way of its creator's wait. What a team's barrier and a
    taskgroup tell of it, they tell of the creator, too: they wait for it."""
    row = state.tasks.rows[task]
    return row.shown == 0 and row.open == 0 and state.tasks.rows[row.creator].over == 0


@kernel
def retire(state: State, task: Any, into: Any) -> None:
    """The times of a task that is over stand at `into`, a chain and a time."""
    row = state.tasks.rows[task]
    chain = state.chains.rows[row.chain]
    for time in range(row.first_time, chain.time + 1):
        state.retired.rows[row_of(state.retired, (np.int64(row.chain) << TIME_BITS) | time)].into = into
    chain.retired = chain.time
    give_back(state, np.int64(row.chain))


@kernel
def forget_finished(state: State, task: Any) -> None:
    """Children of a task that are over will not retire: it did not wait for them before others could know of them."""
    child = np.int64(state.tasks.rows[task].finished)
    state.tasks.rows[task].finished = 0
    while child != 0:
        end_chain(state, child)
        child = np.int64(state.tasks.rows[child].next_finished)


@inlined
def retired_row(state: Any, at: Any) -> Any:
    """The row of `retired` of a chain and a time, 0 if its task has not retired."""
    table = state.retired
    return np.int64(table.cells[cell_of(table.rows, table.cells, table.control[CELLS], np.uint64(at))])


@kernel
def standing(state: State, at: Any) -> Any:
    """Where a chain and a time stand: themselves, or those of a task that has not retired and waited for theirs."""
    end, row = at, retired_row(state, at)
    while row != 0:
        end = np.int64(state.retired.rows[row].into)
        row = retired_row(state, end)
    row = retired_row(state, at)
    while row != 0:
        following = np.int64(state.retired.rows[row].into)
        state.retired.rows[row].into = end
        row = retired_row(state, following)
    return end
