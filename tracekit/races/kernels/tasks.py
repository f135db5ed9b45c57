"""Logical tasks of OpenMP: what its runtime says of teams and tasks moves vector clocks (formats/SPEC.md, "Logical
tasks").

A task knows what its creator had done: it has the creator's clock in common with it, and beside it how far the creator
was. What it learns later makes a clock of its own. The first task of a team, and one that its creator waits for, go on
with the creator's chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import OpenmpMutex, SyncRegion, TaskFlag, TaskStatus
from tracekit.jit.kernel import kernel
from tracekit.races.kernels.chains import end_chain, end_task, forget_finished, may_retire, retire, take_chain
from tracekit.races.kernels.clocks import drop, new_clock, shared
from tracekit.races.kernels.dependences import acquire_dependences, end_dependences, forget_addresses, release_done
from tracekit.races.kernels.epochs import close_epoch, open_epoch, stop_orders
from tracekit.races.kernels.order import (
    acquire_clock,
    acquire_part,
    acquire_task,
    release_for_waiters,
    release_into,
    role_of,
    share_clock,
    tick,
)
from tracekit.races.kernels.state import (
    ALIVE,
    BY_TASK,
    REORDERS,
    STREAM,
    TASK_ROLE,
    TASKS,
    TEAM_ROLE,
    TEAMS,
    TIME_BITS,
    State,
    known_task,
)

LOCK = int(OpenmpMutex.LOCK)
NEST_LOCK = int(OpenmpMutex.NEST_LOCK)
CRITICAL = int(OpenmpMutex.CRITICAL)
UNDEFERRED = int(TaskFlag.UNDEFERRED)
COMPLETE = int(TaskStatus.COMPLETE)
CANCEL = int(TaskStatus.CANCEL)
EARLY_FULFILL = int(TaskStatus.EARLY_FULFILL)
LATE_FULFILL = int(TaskStatus.LATE_FULFILL)
TASKWAIT_COMPLETE = int(TaskStatus.TASKWAIT_COMPLETE)
TASKWAIT = int(SyncRegion.TASKWAIT)
TASKGROUP = int(SyncRegion.TASKGROUP)
REDUCTION = int(SyncRegion.REDUCTION)
WORKER = 2
"""A type of thread (OMPT): one that the runtime made for its teams."""
WHOLE_LINES = 1 << 14
"""So many lines of 64 bytes of one's own memory are known."""


@kernel
def put_on(state: State, stream: Any, task: Any) -> None:
    """A stream is in a task from now on."""
    state.streams.rows[row_of(state.streams, stream)].task = task
    state.tasks.rows[task].situation = 0
    state.now[STREAM] = -1


# -- teams ---------------------------------------------------------------------------------------------


@kernel
def know_thread(state: State, task: Any, kind: Any) -> None:
    """A thread is known to OpenMP's runtime: what its workers do is their teams'."""
    if kind == WORKER and task != 0 and state.tasks.rows[task].joined == 0:
        state.tasks.rows[task].joined = 1
        state.now[ALIVE] -= 1


@kernel
def begin_team(state: State, creator: Any, number: Any, context: Any, instruction: Any, threads: Any) -> None:
    """A task makes a team of so many threads: all of it knows what that task had done."""
    if creator == 0:
        return
    team = state.teams.rows[row_of(state.teams, number)]
    team.creator, team.alone = creator, threads == 1
    team.role = role_of(state, TEAM_ROLE, creator, context, instruction)
    team.clock = share_clock(state, creator)
    row = state.tasks.rows[creator]
    row.shown = 1
    team.creator_chain, team.creator_time = row.chain, state.chains.rows[row.chain].time
    state.now[TEAMS] += 1
    state.now[ALIVE] += 1
    tick(state, creator)


@kernel
def begin_implicit(
    state: State, stream: Any, running: Any, index: Any, number: Any, task_number: Any, context: Any
) -> None:
    """A stream begins with its task of a team. The initial task of a thread is the thread's."""
    team_row = row_of(state.teams, number)
    team = state.teams.rows[team_row]
    known = state.streams.rows[row_of(state.streams, stream)]
    if team.creator == 0:
        state.numbers.rows[row_of(state.numbers, task_number)].row = running
        state.tasks.rows[running].team = team_row
        known.implicit = running
        return
    task = np.int64(take(state.tasks, 1))
    row = state.tasks.rows[task]
    row.stream, row.role, row.team, row.base = stream, team.role, team_row, context
    creator = state.tasks.rows[team.creator]
    row.group = creator.group if index == 0 else 0
    row.clock = shared(state.clocks, team.clock)
    row.creator_chain, row.creator_time = team.creator_chain, team.creator_time
    row.next, team.first = team.first, task
    row.undeferred = index == 0
    if index == 0:
        row.chain = creator.chain
        close_epoch(state, np.int64(team.creator))
        open_epoch(state, task)
    else:
        take_chain(state, task)
    row.below, row.implicit_below = known.task, known.implicit
    known.implicit = task
    state.numbers.rows[row_of(state.numbers, task_number)].row = task
    put_on(state, stream, task)


@kernel
def end_implicit(state: State, stream: Any, number: Any) -> None:
    """And goes back to what it was in before."""
    task = known_task(state, number)
    known = state.streams.rows[row_of(state.streams, stream)]
    if task == 0 or known.implicit != task or state.tasks.rows[task].below == 0:
        return
    known.implicit = state.tasks.rows[task].implicit_below
    put_on(state, stream, state.tasks.rows[task].below)


@kernel
def end_team(state: State, number: Any) -> None:
    """All of a team is over, and its creator goes on."""
    team = state.teams.rows[row_of(state.teams, number)]
    if team.creator == 0 or team.over != 0:
        return
    team.over = 1
    state.now[ALIVE] -= 1
    creator, task = np.int64(team.creator), np.int64(team.first)
    while task != 0:
        row = state.tasks.rows[task]
        acquire_task(state, creator, task)
        if row.undeferred != 0:
            state.tasks.rows[creator].chain = row.chain
            row.chain = 0
        forget_finished(state, task)
        end_chain(state, task)
        end_task(state, task)
        task = np.int64(row.next)
    for clock in (team.even, team.odd):
        acquire_clock(state, creator, clock)
        drop(state.clocks, clock)
    drop(state.clocks, team.clock)
    drop(state.clocks, team.reduction)
    drop(state.clocks, team.singles)
    team.even, team.odd, team.clock, team.reduction, team.singles = 0, 0, 0, 0, 0
    tick(state, creator)


@kernel
def pass_single(state: State, task: Any) -> None:
    """A task comes to a `single` region: who is first runs it, also in other orders of locks."""
    team = state.teams.rows[state.tasks.rows[task].team]
    if task == 0 or team.creator == 0 or team.over != 0 or state.now[REORDERS] == 0:
        return
    if team.singles == 0:
        team.singles = new_clock(state.clocks)
    acquire_part(state, task, np.int64(team.singles), 1)
    release_for_waiters(state, task, np.int64(team.singles))
    tick(state, task)


@kernel
def round_clock(state: State, team_row: Any, rounds: Any) -> Any:
    """The clock of a team's barrier, of those with even numbers or the others."""
    team = state.teams.rows[team_row]
    if rounds & 1:
        if team.odd == 0:
            team.odd = new_clock(state.clocks)
        return np.int64(team.odd)
    if team.even == 0:
        team.even = new_clock(state.clocks)
    return np.int64(team.even)


# -- tasks ---------------------------------------------------------------------------------------------


@kernel
def create_task(state: State, creator: Any, number: Any, flags: Any, context: Any, instruction: Any) -> None:
    """A task makes another one."""
    if creator == 0:
        return
    task = np.int64(take(state.tasks, 1))
    row, parent = state.tasks.rows[task], state.tasks.rows[creator]
    row.role = role_of(state, TASK_ROLE, creator, context, instruction)
    row.creator, row.group, row.team = creator, parent.group, parent.team
    row.undeferred = flags & UNDEFERRED != 0
    state.numbers.rows[row_of(state.numbers, number)].row = task
    state.now[TASKS] += 1
    stop_orders(state, BY_TASK)
    if row.undeferred != 0:
        return
    if state.teams.rows[row.team].creator == 0:
        state.now[ALIVE] += 1  # outside of a team nothing says when it ends
    row.clock = share_clock(state, creator)
    row.creator_chain, row.creator_time = parent.chain, state.chains.rows[parent.chain].time
    parent.open += 1
    tick(state, creator)


@kernel
def start_task(state: State, task: Any, context: Any) -> None:
    """A task runs for the first time, in whatever context its thread had something to wait for."""
    row = state.tasks.rows[task]
    if row.chain != 0 or row.over != 0:
        return
    row.base = context
    if row.undeferred != 0:
        parent = state.tasks.rows[row.creator]
        row.chain, row.clock = parent.chain, shared(state.clocks, parent.clock)
        row.creator_chain, row.creator_time = parent.creator_chain, parent.creator_time
    acquire_dependences(state, task, task)
    if row.chain == 0:
        take_chain(state, task)


@kernel
def complete_task(state: State, stream: Any, task: Any) -> None:
    """A task is over: those who wait for it know what it did."""
    row = state.tasks.rows[task]
    if task == 0 or row.over != 0 or row.creator == 0:
        return
    if row.fulfilled != 0:
        acquire_clock(state, task, row.fulfilled)
    parent = state.tasks.rows[row.creator]
    retires = False
    end_dependences(state, task, task)
    if row.undeferred != 0:
        if row.chain != 0:
            drop(state.clocks, parent.clock)
            parent.clock, parent.chain = shared(state.clocks, row.clock), row.chain
            parent.creator_chain, parent.creator_time = row.creator_chain, row.creator_time
            parent.acquired = max(parent.acquired, row.acquired)
            parent.shown, parent.open = max(parent.shown, row.shown), parent.open + row.open
            row.chain = 0
    else:
        retires = may_retire(state, task)
        if retires:
            parent.open -= 1
            row.next_finished, parent.finished = parent.finished, task
        if parent.over == 0 and (row.acquired != 0 or not retires):
            if parent.children == 0:
                parent.children = new_clock(state.clocks)
            release_done(state, task, parent.children)
        if row.group != 0:
            release_done(state, task, state.groups.rows[row.group].clock)
        if row.team != 0 and state.teams.rows[row.team].over == 0:
            implicit = np.int64(state.streams.rows[row_of(state.streams, stream)].implicit)
            release_done(state, task, round_clock(state, row.team, state.tasks.rows[implicit].rounds))
    forget_addresses(state, task)
    forget_finished(state, task)
    if not retires:
        end_chain(state, task)
    end_task(state, task)
    state.now[STREAM] = -1


@kernel
def schedule(state: State, stream: Any, running: Any, status: Any, following: Any, number: Any, context: Any) -> None:
    """A stream leaves a task for another one, or something is said of a task."""
    task, after = known_task(state, number), known_task(state, following)
    row = state.tasks.rows[task]
    if status == TASKWAIT_COMPLETE:
        acquire_dependences(state, running, task)
        end_dependences(state, task, running)
        row.over = 1
        tick(state, running)
        return
    if (status == EARLY_FULFILL or status == LATE_FULFILL) and task != 0:
        if row.over == 0:
            if row.fulfilled == 0:
                row.fulfilled = new_clock(state.clocks)
            release_into(state, running, row.fulfilled)
            tick(state, running)
        if status == LATE_FULFILL:
            complete_task(state, stream, task)
        return
    if status == COMPLETE or status == CANCEL:
        complete_task(state, stream, task)
    if after != 0:
        start_task(state, after, context)
        put_on(state, stream, after)


# -- what is waited for --------------------------------------------------------------------------------


@kernel
def begin_sync(state: State, kind: Any, number: Any) -> None:
    """A task comes to a barrier, or begins a taskgroup."""
    task = known_task(state, number)
    row = state.tasks.rows[task]
    if task == 0 or row.over != 0 or kind == TASKWAIT or kind == REDUCTION:
        return
    if kind == TASKGROUP:
        group = np.int64(take(state.groups, 1))
        state.groups.rows[group].clock = new_clock(state.clocks)
        state.groups.rows[group].outer = row.group
        row.group = group
    elif state.teams.rows[row.team].over == 0:
        row.waits = 1
        release_into(state, task, round_clock(state, row.team, row.rounds))
        tick(state, task)


@kernel
def end_waiting(state: State, kind: Any, number: Any) -> None:
    """The tasks of a taskgroup are over."""
    task = known_task(state, number)
    if task != 0 and kind == TASKGROUP:
        acquire_clock(state, task, state.groups.rows[state.tasks.rows[task].group].clock)


@kernel
def retire_finished(state: State, task: Any, group: Any) -> None:
    """A task has waited for children: for those of a taskgroup, or for all, -1."""
    row = state.tasks.rows[task]
    child = np.int64(row.finished)
    if child == 0:
        return
    row.finished = 0
    tick(state, task)
    into = (row.chain << TIME_BITS) | state.chains.rows[row.chain].time
    while child != 0:
        of = state.tasks.rows[child]
        following = np.int64(of.next_finished)
        if group == -1 or of.group == group:
            retire(state, child, into)
        else:
            of.next_finished, row.finished = row.finished, child
        child = following


@kernel
def end_sync(state: State, kind: Any, number: Any) -> None:
    """What a task waited for is there."""
    task = known_task(state, number)
    row = state.tasks.rows[task]
    if task == 0 or row.over != 0 or kind == REDUCTION:
        return
    if kind == TASKWAIT:
        acquire_clock(state, task, row.children)
        drop(state.clocks, row.children)
        row.children = 0
        retire_finished(state, task, np.int64(-1))
    elif kind == TASKGROUP:
        retire_finished(state, task, np.int64(row.group))
        group = state.groups.rows[row.group]
        acquire_clock(state, task, group.clock)
        drop(state.clocks, group.clock)
        group.clock = 0
        row.group = group.outer
    else:
        if state.teams.rows[row.team].over == 0:
            acquire_clock(state, task, round_clock(state, row.team, row.rounds))
        forget_finished(state, task)
        row.waits = 0
        row.rounds += 1


@kernel
def begin_reduction(state: State, number: Any) -> None:
    """A task combines what others reduced: one after another, in a barrier behind all who came."""
    task = known_task(state, number)
    row = state.tasks.rows[task]
    if task == 0 or row.over != 0:
        return
    acquire_clock(state, task, state.teams.rows[row.team].reduction)
    if row.waits != 0:
        acquire_clock(state, task, round_clock(state, row.team, row.rounds))


@kernel
def end_reduction(state: State, number: Any) -> None:
    """It has."""
    task = known_task(state, number)
    row = state.tasks.rows[task]
    if task == 0 or row.over != 0:
        return
    team = state.teams.rows[row.team]
    if team.reduction == 0:
        team.reduction = new_clock(state.clocks)
    release_into(state, task, team.reduction)
    tick(state, task)


@kernel
def own_bytes(state: State, stream: Any, address: Any, size: Any) -> None:
    """Bytes are a stream's own: what it does to them is in order."""
    if size > 0:
        line, last = address >> 6, (address + size - 1) >> 6
        for number in range(min(last - line + 1, WHOLE_LINES)):
            state.own_lines.rows[row_of(state.own_lines, line + number)].stream = stream + 1
