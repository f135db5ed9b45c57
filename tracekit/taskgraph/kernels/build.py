"""Makes nodes and edges of steps, in the order of their tickets: an edge always leads to a later node.

`writer`, `first` and the other fields of an object name the last node of their chain when something was given up:
whoever gets it comes after that node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import SyncKind
from tracekit.formats.events import CODE
from tracekit.jit.kernel import kernel
from tracekit.taskgraph.kernels.atomics import acquire_object, operate, pass_fence, release_into_object
from tracekit.taskgraph.kernels.layouts import BARRIER, CREATE, JOIN, LOCK, SIGNAL, SYNC, TASK, Graph
from tracekit.taskgraph.kernels.nodes import add_edge, add_node, edge_from_others, edges_from_list, listed, running
from tracekit.taskgraph.kernels.openmp import openmp_step

THREAD_CREATE, THREAD_JOIN = CODE["thread_create"], CODE["thread_join"]
GET, GET_SHARED, GIVE_UP = CODE["lock"], CODE["lock_shared"], CODE["unlock"]
MUTEX_GET, MUTEX_GIVE_UP = CODE["mutex_acquired"], CODE["mutex_released"]
RELEASE, ACQUIRE = CODE["release"], CODE["acquire"]
BARRIER_INIT, BARRIER_ENTER, BARRIER_LEAVE = CODE["barrier_init"], CODE["barrier_enter"], CODE["barrier_leave"]
OLD_BARRIER = CODE["barrier"]
ATOMIC, FENCE = CODE["atomic"], CODE["fence"]
SEMAPHORE, DESCRIPTOR = int(SyncKind.SEMAPHORE), int(SyncKind.DESCRIPTOR)
OPENMP_KEY = 1 << 63
"""In the address of a lock of OpenMP's, which may be any number."""


@kernel
def build(graph: Graph, steps: Any, order: Any) -> None:
    """Add all steps (STEP), in this order."""
    for place in range(len(order)):
        row = order[place]
        step = steps[row]
        _begin(graph, step)
        if step.uses + step.loads + step.stores != 0:
            number = running(graph, step.stream)
            chain = graph.chains.rows[number]
            context = step.context
            if chain.via == CREATE and chain.created != 0:
                context = chain.created
            node = add_node(graph, number, step, TASK)
            graph.nodes.rows[node].step = row
            graph.nodes.rows[node].context = context


@kernel
def _begin(graph: Graph, step: Any) -> None:
    """The event that a step begins with."""
    number = running(graph, step.stream)
    code = step.code
    if code == THREAD_CREATE:
        _create(graph, number, step)
    elif code == THREAD_JOIN:
        last = graph.chains.rows[row_of(graph.chains, step.subject)].last
        add_edge(graph, last, add_node(graph, number, step, JOIN), JOIN)
    elif code == GET or code == GET_SHARED:
        _lock(graph, number, step, step.subject, code == GET_SHARED)
    elif code == GIVE_UP:
        _unlock(graph, number, step.subject)
    elif code == MUTEX_GET:
        _lock(graph, number, step, step.other ^ np.uint64(OPENMP_KEY), False)
    elif code == MUTEX_GIVE_UP:
        _unlock(graph, number, step.other ^ np.uint64(OPENMP_KEY))
    elif code == RELEASE:
        _release(graph, number, step)
    elif code == ACQUIRE:
        _acquire(graph, number, step)
    elif code == ATOMIC:
        operate(graph, number, step)
    elif code == FENCE:
        pass_fence(graph, number, step)
    elif code == BARRIER_INIT or code == BARRIER_ENTER or code == BARRIER_LEAVE or code == OLD_BARRIER:
        _barrier(graph, number, step)
    else:
        openmp_step(graph, number, step)


@kernel
def _create(graph: Graph, number: Any, step: Any) -> None:
    node = add_node(graph, number, step, CREATE)
    made = graph.chains.rows[row_of(graph.chains, step.subject)]
    made.last = node
    made.via = CREATE
    made.created = step.context


# -- locks ---------------------------------------------------------------------------------------------


@kernel
def _lock(graph: Graph, number: Any, step: Any, address: Any, shared: Any) -> None:
    """A lock is got: after whoever held it alone, and, unless as one reader of several, after its readers."""
    node = add_node(graph, number, step, SYNC)
    object_row = row_of(graph.objects, address)
    lock = graph.objects.rows[object_row]
    edge_from_others(graph, lock.writer, node, LOCK)
    if shared:
        graph.held.rows[row_of(graph.held, object_row << np.uint64(32) | np.uint64(number))].times += 1
    else:
        edges_from_list(graph, lock.readers, node, LOCK)


@kernel
def _unlock(graph: Graph, number: Any, address: Any) -> None:
    object_row = row_of(graph.objects, address)
    lock = graph.objects.rows[object_row]
    held = graph.held.rows[row_of(graph.held, object_row << np.uint64(32) | np.uint64(number))]
    last = graph.chains.rows[number].last
    if held.times > 0:
        held.times -= 1
        lock.readers = listed(graph, last, lock.readers)
    else:
        lock.writer = last
        lock.readers = 0


# -- semaphores, once, descriptors ---------------------------------------------------------------------


@kernel
def _release(graph: Graph, number: Any, step: Any) -> None:
    """A post goes to whoever waits next and has none; what is done once, or written to a descriptor, to all."""
    object_row = row_of(graph.objects, step.subject)
    if step.other == DESCRIPTOR:
        release_into_object(graph, number, object_row)
        return
    sync_object = graph.objects.rows[object_row]
    last = graph.chains.rows[number].last
    if step.other != SEMAPHORE:
        sync_object.writer = last
        return
    row = listed(graph, last, 0)
    if sync_object.first == 0:
        sync_object.first = row
    else:
        graph.links.rows[sync_object.end].next = row
    sync_object.end = row


@kernel
def _acquire(graph: Graph, number: Any, step: Any) -> None:
    """A wait without a post took one of those that the semaphore had at first."""
    object_row = row_of(graph.objects, step.subject)
    sync_object = graph.objects.rows[object_row]
    if step.other == DESCRIPTOR:
        acquire_object(graph, number, step, object_row, np.int64(0))
    elif step.other == SEMAPHORE:
        node = add_node(graph, number, step, SYNC)
        if sync_object.first != 0:
            add_edge(graph, graph.links.rows[sync_object.first].node, node, SIGNAL)
            sync_object.first = graph.links.rows[sync_object.first].next
    elif sync_object.writer != 0 and graph.nodes.rows[sync_object.writer].chain != number:
        add_edge(graph, sync_object.writer, add_node(graph, number, step, SYNC), SIGNAL)


# -- barriers ------------------------------------------------------------------------------------------


@kernel
def _barrier(graph: Graph, number: Any, step: Any) -> None:
    """One node for each round, made when the first leaves: all have arrived by then."""
    object_row = row_of(graph.objects, step.subject)
    barrier = graph.objects.rows[object_row]
    if step.code == BARRIER_INIT:
        barrier.rounds += barrier.arrivals + 1
        barrier.count = step.other
        barrier.arrivals = 0
        return
    if barrier.count <= 0 or step.code == OLD_BARRIER:  # who else is in the round is not known
        if step.code != BARRIER_ENTER:
            add_node(graph, number, step, BARRIER)
        return
    chain = graph.chains.rows[number]
    place = row_of(graph.entered, object_row << np.uint64(32) | np.uint64(number))
    if step.code == BARRIER_ENTER:
        graph.entered.rows[place].round = barrier.rounds + barrier.arrivals // barrier.count
        barrier.arrivals += 1
    key = object_row << np.uint64(32) | np.uint64(graph.entered.rows[place].round)
    own = graph.rounds.rows[row_of(graph.rounds, key)]
    if step.code == BARRIER_ENTER:
        own.arrived = listed(graph, chain.last, own.arrived)
        return
    if own.node == 0:
        own.node = add_node(graph, number, step, BARRIER)
        edges_from_list(graph, own.arrived, own.node, BARRIER)
    chain.last = own.node
    chain.via = BARRIER
