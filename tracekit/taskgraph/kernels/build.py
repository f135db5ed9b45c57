"""Makes nodes and edges of steps, in the order of their tickets: an edge always leads to a later node.

`writer`, `first` and the other fields of an object name the last node of their stream when something was given up:
whoever gets it comes after that node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.events import CODE, SyncKind
from tracekit.jit.kernel import kernel
from tracekit.taskgraph.kernels.layouts import BARRIER, CONTINUE, CREATE, JOIN, LOCK, SIGNAL, SYNC, TASK, Graph

THREAD_CREATE, THREAD_JOIN = CODE["thread_create"], CODE["thread_join"]
GET, GET_SHARED, GIVE_UP = CODE["lock"], CODE["lock_shared"], CODE["unlock"]
RELEASE, ACQUIRE = CODE["release"], CODE["acquire"]
BARRIER_INIT, BARRIER_ENTER, BARRIER_LEAVE = CODE["barrier_init"], CODE["barrier_enter"], CODE["barrier_leave"]
OLD_BARRIER = CODE["barrier"]
SEMAPHORE = int(SyncKind.SEMAPHORE)


@kernel
def build(graph: Graph, steps: Any, order: Any) -> None:
    """Add all steps (STEP), in this order."""
    for place in range(len(order)):
        row = order[place]
        step = steps[row]
        chain = graph.chains.rows[row_of(graph.chains, step.stream)]
        code = step.code
        if code == THREAD_CREATE:
            _create(graph, chain, step)
        elif code == THREAD_JOIN:
            node = _node(graph, chain, step, JOIN)
            _edge(graph, graph.chains.rows[row_of(graph.chains, step.subject)].last, node, JOIN)
        elif code == GET or code == GET_SHARED:
            _lock(graph, chain, step)
        elif code == GIVE_UP:
            _unlock(graph, chain, step)
        elif code == RELEASE:
            _release(graph, chain, step)
        elif code == ACQUIRE:
            _acquire(graph, chain, step)
        elif code == BARRIER_INIT or code == BARRIER_ENTER or code == BARRIER_LEAVE or code == OLD_BARRIER:
            _barrier(graph, chain, step)
        if step.uses + step.loads + step.stores != 0:
            context = step.context
            if chain.via == CREATE:
                context = chain.created
            node = _node(graph, chain, step, TASK)
            graph.nodes.rows[node].step = row
            graph.nodes.rows[node].context = context


@kernel
def _node(graph: Graph, chain: Any, step: Any, kind: Any) -> int:
    """A node behind the last one of its chain."""
    number = take(graph.nodes, 1)
    node = graph.nodes.rows[number]
    node.kind = kind
    node.stream = step.stream
    node.context = step.context
    node.created = chain.created
    _edge(graph, chain.last, number, chain.via)
    chain.last = number
    chain.via = CONTINUE
    return int(number)


@kernel
def _edge(graph: Graph, source: Any, destination: Any, kind: Any) -> None:
    if source != 0 and destination != 0:
        edge = graph.edges.rows[take(graph.edges, 1)]
        edge.source = source
        edge.destination = destination
        edge.kind = kind


@kernel
def _listed(graph: Graph, node: Any, following: Any) -> int:
    """A list that begins with a node."""
    row = take(graph.links, 1)
    graph.links.rows[row].node = node
    graph.links.rows[row].next = following
    return int(row)


@kernel
def _create(graph: Graph, chain: Any, step: Any) -> None:
    node = _node(graph, chain, step, CREATE)
    made = graph.chains.rows[row_of(graph.chains, step.subject)]
    made.last = node
    made.via = CREATE
    made.created = step.context


# -- locks ---------------------------------------------------------------------------------------------


@kernel
def _lock(graph: Graph, chain: Any, step: Any) -> None:
    """A lock is got: after whoever held it alone, and, unless as one reader of several, after its readers."""
    node = _node(graph, chain, step, SYNC)
    number = row_of(graph.objects, step.subject)
    lock = graph.objects.rows[number]
    _from_others(graph, lock.writer, node, LOCK)
    if step.code == GET_SHARED:
        graph.held.rows[row_of(graph.held, number << np.uint64(32) | step.stream)].times += 1
        return
    reader = lock.readers
    while reader != 0:
        _from_others(graph, graph.links.rows[reader].node, node, LOCK)
        reader = graph.links.rows[reader].next


@kernel
def _from_others(graph: Graph, source: Any, destination: Any, kind: Any) -> None:
    """An edge, unless it would lead from a thread to itself."""
    if graph.nodes.rows[source].stream != graph.nodes.rows[destination].stream:
        _edge(graph, source, destination, kind)


@kernel
def _unlock(graph: Graph, chain: Any, step: Any) -> None:
    number = row_of(graph.objects, step.subject)
    lock = graph.objects.rows[number]
    held = graph.held.rows[row_of(graph.held, number << np.uint64(32) | step.stream)]
    if held.times > 0:
        held.times -= 1
        lock.readers = _listed(graph, chain.last, lock.readers)
    else:
        lock.writer = chain.last
        lock.readers = 0


# -- semaphores, once ----------------------------------------------------------------------------------


@kernel
def _release(graph: Graph, chain: Any, step: Any) -> None:
    """A post goes to whoever waits next and has none; what is done once, to all."""
    thing = graph.objects.rows[row_of(graph.objects, step.subject)]
    if step.other != SEMAPHORE:
        thing.writer = chain.last
        return
    row = _listed(graph, chain.last, 0)
    if thing.first == 0:
        thing.first = row
    else:
        graph.links.rows[thing.end].next = row
    thing.end = row


@kernel
def _acquire(graph: Graph, chain: Any, step: Any) -> None:
    """A wait without a post took one of those that the semaphore had at first."""
    thing = graph.objects.rows[row_of(graph.objects, step.subject)]
    if step.other == SEMAPHORE:
        node = _node(graph, chain, step, SYNC)
        if thing.first != 0:
            _edge(graph, graph.links.rows[thing.first].node, node, SIGNAL)
            thing.first = graph.links.rows[thing.first].next
    elif thing.writer != 0 and graph.nodes.rows[thing.writer].stream != step.stream:
        _edge(graph, thing.writer, _node(graph, chain, step, SYNC), SIGNAL)


# -- barriers ------------------------------------------------------------------------------------------


@kernel
def _barrier(graph: Graph, chain: Any, step: Any) -> None:
    """One node for each round, made when the first leaves: all have arrived by then."""
    number = row_of(graph.objects, step.subject)
    barrier = graph.objects.rows[number]
    if step.code == BARRIER_INIT:
        barrier.rounds += barrier.arrivals + 1
        barrier.count = step.other
        barrier.arrivals = 0
        return
    if barrier.count <= 0 or step.code == OLD_BARRIER:  # who else is in the round is not known
        if step.code != BARRIER_ENTER:
            _node(graph, chain, step, BARRIER)
        return
    place = row_of(graph.entered, number << np.uint64(32) | step.stream)
    if step.code == BARRIER_ENTER:
        graph.entered.rows[place].round = barrier.rounds + barrier.arrivals // barrier.count
        barrier.arrivals += 1
    key = number << np.uint64(32) | np.uint64(graph.entered.rows[place].round)
    own = graph.rounds.rows[row_of(graph.rounds, key)]
    if step.code == BARRIER_ENTER:
        own.arrived = _listed(graph, chain.last, own.arrived)
        return
    if own.node == 0:
        own.node = _node(graph, chain, step, BARRIER)
        arrived = own.arrived
        while arrived != 0:
            _from_others(graph, graph.links.rows[arrived].node, own.node, BARRIER)
            arrived = graph.links.rows[arrived].next
    chain.last = own.node
    chain.via = BARRIER
