"""Logical tasks of OpenMP as chains of a graph, whichever thread runs them (formats/SPEC.md, "Logical tasks")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import SyncRegion, TaskDependence, TaskFlag, TaskStatus
from tracekit.formats.events import CODE
from tracekit.jit.kernel import kernel
from tracekit.taskgraph.kernels.layouts import BARRIER, CREATE, JOIN, SIGNAL, SYNC, TASK_KEY, Graph
from tracekit.taskgraph.kernels.nodes import add_edge, add_node, edges_from_list, listed

PARALLEL_BEGIN, PARALLEL_END = CODE["parallel_begin"], CODE["parallel_end"]
IMPLICIT_BEGIN, IMPLICIT_END = CODE["implicit_begin"], CODE["implicit_end"]
TASK_CREATE, TASK_SCHEDULE, TASK_DEPENDENCE = CODE["task_create"], CODE["task_schedule"], CODE["task_dependence"]
SYNC_BEGIN, SYNC_END = CODE["sync_begin"], CODE["sync_end"]
TASKWAIT, TASKGROUP, REDUCTION = int(SyncRegion.TASKWAIT), int(SyncRegion.TASKGROUP), int(SyncRegion.REDUCTION)
COMPLETE, CANCEL, LATE_FULFILL = int(TaskStatus.COMPLETE), int(TaskStatus.CANCEL), int(TaskStatus.LATE_FULFILL)
EARLY_FULFILL, TASKWAIT_COMPLETE = int(TaskStatus.EARLY_FULFILL), int(TaskStatus.TASKWAIT_COMPLETE)
UNDEFERRED = int(TaskFlag.UNDEFERRED)
IN, INOUTSET, MUTEXINOUTSET = int(TaskDependence.IN), int(TaskDependence.INOUTSET), int(TaskDependence.MUTEXINOUTSET)
SOURCE, SINK = int(TaskDependence.SOURCE), int(TaskDependence.SINK)
EXCLUSIVE = int(TaskDependence.INOUT)
ROUNDS_KEY = 1 << 62
STEPS_KEY = 1 << 63


@kernel
def openmp_step(graph: Graph, number: Any, step: Any) -> None:
    """What an event of OpenMP does; nothing for others. `number`: the chain that the stream is in."""
    code = step.code
    if code == PARALLEL_BEGIN:
        team = graph.teams.rows[row_of(graph.teams, step.subject)]
        team.node = add_node(graph, number, step, CREATE)
        team.created = step.context
    elif code == PARALLEL_END:
        _end_team(graph, number, step)
    elif code == IMPLICIT_BEGIN:
        _begin_implicit(graph, number, step)
    elif code == IMPLICIT_END:
        chain = np.int64(graph.tasks.rows[row_of(graph.tasks, step.subject)].chain)
        if chain == number and graph.chains.rows[chain].below != 0:
            _put_on(graph, step.stream, graph.chains.rows[chain].below)
    elif code == TASK_CREATE:
        _create_task(graph, number, step)
    elif code == TASK_SCHEDULE:
        _schedule(graph, step)
    elif code == TASK_DEPENDENCE:
        _depend(graph, number, step)
    elif code == SYNC_BEGIN:
        _begin_sync(graph, step)
    elif code == SYNC_END:
        _end_sync(graph, step)


@kernel
def _put_on(graph: Graph, stream: Any, chain: Any) -> None:
    graph.running.rows[row_of(graph.running, stream)].chain = chain


@kernel
def _chain_of(graph: Graph, task: Any) -> int:
    """The chain of a task by its number; 0: none is known."""
    if task == 0:
        return 0
    return int(np.int64(graph.tasks.rows[row_of(graph.tasks, task)].chain))


@kernel
def _new_chain(graph: Graph, task: Any, node: Any, created: Any) -> int:
    """The chain of a task that begins behind the node that created it."""
    number = row_of(graph.chains, np.uint64(TASK_KEY) | np.uint64(task))
    chain = graph.chains.rows[number]
    chain.last = node
    chain.via = CREATE
    chain.created = created
    graph.tasks.rows[row_of(graph.tasks, task)].chain = number
    return int(number)


# -- teams ---------------------------------------------------------------------------------------------


@kernel
def _begin_implicit(graph: Graph, number: Any, step: Any) -> None:
    """A stream begins with its task of a team. The initial task of a thread is the thread's."""
    place = row_of(graph.teams, step.other)
    team = graph.teams.rows[place]
    if team.node == 0:
        graph.tasks.rows[row_of(graph.tasks, step.third)].chain = number
        graph.chains.rows[number].team = place
        return
    made = _new_chain(graph, step.third, team.node, team.created)
    chain = graph.chains.rows[made]
    chain.team = place
    chain.below = number
    chain.next = team.first
    team.first = made
    _put_on(graph, step.stream, made)


@kernel
def _end_team(graph: Graph, number: Any, step: Any) -> None:
    """Whoever made the team goes on when all of it is over."""
    team = graph.teams.rows[row_of(graph.teams, step.subject)]
    node = add_node(graph, number, step, JOIN)
    task = np.int64(team.first)
    while task != 0:
        add_edge(graph, graph.chains.rows[task].last, node, JOIN)
        task = np.int64(graph.chains.rows[task].next)
    edges_from_list(graph, team.over, node, JOIN)
    team.over = 0


# -- explicit tasks ------------------------------------------------------------------------------------


@kernel
def _create_task(graph: Graph, number: Any, step: Any) -> None:
    node = add_node(graph, number, step, CREATE)
    chain = graph.chains.rows[_new_chain(graph, step.other, node, step.context)]
    parent = graph.chains.rows[number]
    chain.parent = number
    chain.team = parent.team
    chain.group = parent.group
    chain.undeferred = (np.int64(step.subject) & UNDEFERRED) != 0


@kernel
def _schedule(graph: Graph, step: Any) -> None:
    """A stream leaves a task for another one, or a task is over."""
    status = np.int64(step.subject)
    task, following = _chain_of(graph, step.third), _chain_of(graph, step.other)
    if status == EARLY_FULFILL or status == TASKWAIT_COMPLETE:
        return
    if (status == COMPLETE or status == CANCEL or status == LATE_FULFILL) and task != 0:
        _complete(graph, task, step)
    if status != LATE_FULFILL and following != 0:
        _put_on(graph, step.stream, following)
        chain = graph.chains.rows[following]
        if chain.started == 0 and chain.parent != 0:
            chain.started = 1
            if chain.needs != 0:
                _meet_needs(graph, following, step)


@kernel
def _meet_needs(graph: Graph, number: Any, step: Any) -> None:
    """A task begins, behind those that it depends on."""
    node = add_node(graph, number, step, SYNC)
    need = np.int64(graph.chains.rows[number].needs)
    while need != 0:
        add_edge(graph, graph.chains.rows[graph.links.rows[need].node].last, node, SIGNAL)
        need = np.int64(graph.links.rows[need].next)


@kernel
def _complete(graph: Graph, task: Any, step: Any) -> None:
    """A task is over: for who created it, for its taskgroup, for its team's next barrier."""
    chain = graph.chains.rows[task]
    if chain.parent == 0:
        return
    parent = graph.chains.rows[chain.parent]
    if chain.undeferred != 0:
        add_edge(graph, chain.last, add_node(graph, chain.parent, step, JOIN), JOIN)
        return
    parent.children = listed(graph, chain.last, parent.children)
    if chain.group != 0:
        group = graph.groups.rows[chain.group]
        group.over = listed(graph, chain.last, group.over)
    team = graph.teams.rows[chain.team]
    team.over = listed(graph, chain.last, team.over)


@kernel
def _depend(graph: Graph, number: Any, step: Any) -> None:
    """A task that was made just before depends on an address; or a step of a doacross loop."""
    kind = np.int64(step.subject)
    if kind == SOURCE or kind == SINK:
        team = np.uint64(graph.chains.rows[number].team)
        at = graph.objects.rows[row_of(graph.objects, np.uint64(STEPS_KEY) | (team << np.uint64(40)) ^ step.other)]
        if kind == SOURCE:
            at.writer = graph.chains.rows[number].last
        else:
            add_edge(graph, at.writer, add_node(graph, number, step, SYNC), SIGNAL)
        return
    task = _chain_of(graph, step.third)
    if task == 0 or graph.chains.rows[task].parent == 0:
        return
    if kind != IN and kind != INOUTSET and kind != MUTEXINOUTSET:
        kind = np.int64(EXCLUSIVE)
    key = np.uint64(graph.chains.rows[task].parent) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(step.other)
    at = graph.depends.rows[row_of(graph.depends, key)]
    if at.kind != kind or kind == EXCLUSIVE:
        at.before = at.present
        at.present = 0
        at.kind = kind
    before = np.int64(at.before)
    while before != 0:
        chain = graph.chains.rows[task]
        chain.needs = listed(graph, graph.links.rows[before].node, chain.needs)
        before = np.int64(graph.links.rows[before].next)
    at.present = listed(graph, task, at.present)


# -- what is waited for --------------------------------------------------------------------------------


@kernel
def _round_of(graph: Graph, chain: Any) -> int:
    """The row of `rounds` of the barrier that a task of a team comes to, or is in."""
    key = np.uint64(ROUNDS_KEY) | (np.uint64(chain.team) << np.uint64(32)) | np.uint64(chain.rounds)
    return int(row_of(graph.rounds, key))


@kernel
def _begin_sync(graph: Graph, step: Any) -> None:
    """A task comes to a barrier, or begins a taskgroup."""
    kind, task = np.int64(step.subject), _chain_of(graph, step.third)
    if task == 0 or kind == TASKWAIT or kind == REDUCTION:
        return
    chain = graph.chains.rows[task]
    if kind == TASKGROUP:
        group = take(graph.groups, 1)
        graph.groups.rows[group].outer = chain.group
        chain.group = group
    else:
        own = graph.rounds.rows[_round_of(graph, chain)]
        own.arrived = listed(graph, chain.last, own.arrived)


@kernel
def _end_sync(graph: Graph, step: Any) -> None:
    """What a task waited for is there."""
    kind, task = np.int64(step.subject), _chain_of(graph, step.third)
    if task == 0 or kind == REDUCTION:
        return
    chain = graph.chains.rows[task]
    if kind == TASKWAIT:
        if chain.children != 0:
            edges_from_list(graph, chain.children, add_node(graph, task, step, JOIN), JOIN)
        chain.children = 0
    elif kind == TASKGROUP:
        if chain.group != 0:
            group = graph.groups.rows[chain.group]
            if group.over != 0:
                edges_from_list(graph, group.over, add_node(graph, task, step, JOIN), JOIN)
            chain.group = group.outer
    else:
        own = graph.rounds.rows[_round_of(graph, chain)]
        if own.node == 0:
            own.node = add_node(graph, task, step, BARRIER)
            edges_from_list(graph, own.arrived, own.node, BARRIER)
            team = graph.teams.rows[chain.team]
            edges_from_list(graph, team.over, own.node, BARRIER)
            team.over = 0
        chain.last = own.node
        chain.via = BARRIER
        chain.rounds += 1
