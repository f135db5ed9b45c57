"""Edges of atomic operations and fences, by the rules of C++20 (formats/SPEC.md, `atomic`), and of descriptors.

What an atomic object releases is a list of nodes: who acquires it comes after them. A pipe or a socket is such an
object to which each writer adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.containers.kernels.parts import fill, size_of, split
from tracekit.formats.event_values import AtomicOrder
from tracekit.jit.kernel import kernel
from tracekit.taskgraph.kernels.layouts import ATOMIC_KEY, SIGNAL, SYNC, Graph
from tracekit.taskgraph.kernels.nodes import add_node, edges_from_list, listed

LOAD, STORE = int(AtomicOrder.LOAD), int(AtomicOrder.STORE)
ACQUIRE, RELEASE = int(AtomicOrder.ACQUIRE), int(AtomicOrder.RELEASE)
LOOKED_AT = 64
"""A node takes the place of an earlier one of its chain if that is among so many of a list."""


@kernel
def operate(graph: Graph, number: Any, step: Any) -> None:
    """An atomic operation of chain `number`: the step's subject is the address, its other word the order.

    Each byte counts by itself: one load of two counts acquires what operations on either have released.
    """
    order = np.int64(step.other)
    begin = np.int64(step.subject ^ np.uint64(ATOMIC_KEY))
    end = begin + size_of(order)
    if graph.objects.rows[row_of(graph.objects, begin)].size != end - begin:
        _split_at(graph, begin)
        _split_at(graph, end)
        fill(graph.objects, begin, end)
    place, node = begin, np.int64(0)
    while order & LOAD and place < end:
        object_row = row_of(graph.objects, place)
        if order & ACQUIRE:
            node = acquire_object(graph, number, step, object_row, node)
        else:
            _unite_into_met(graph, number, graph.objects.rows[object_row].readers)
        place += max(int(graph.objects.rows[object_row].size), 1)
    place = begin
    while order & STORE and place < end:
        object_row = row_of(graph.objects, place)
        _store(graph, number, order, object_row)
        place += max(int(graph.objects.rows[object_row].size), 1)


@kernel
def _store(graph: Graph, number: Any, order: Any, object_row: Any) -> None:
    """What an atomic object (a row of `graph.objects`) releases from a store on."""
    atomic = graph.objects.rows[object_row]
    chain = graph.chains.rows[number]
    if not order & LOAD or (order & ACQUIRE and order & RELEASE):  # who releases now comes after all of it
        atomic.readers = 0
    if order & RELEASE:
        release_into_object(graph, number, object_row)
    elif chain.released != 0:
        atomic.readers = _with(graph, atomic.readers, graph.links.rows[chain.released].node)


@kernel
def _split_at(graph: Graph, place: Any) -> None:
    """Bytes on both sides of a place are of two objects, which release the same so far."""
    part, rest = split(graph.objects, place)
    if rest == 0:
        return
    row, last = np.int64(graph.objects.rows[part].readers), np.int64(0)
    while row != 0:  # a list of its own: one that grows is held by nobody else
        copy = listed(graph, graph.links.rows[row].node, 0)
        if last == 0:
            graph.objects.rows[rest].readers = copy
        else:
            graph.links.rows[last].next = copy
        last, row = np.int64(copy), np.int64(graph.links.rows[row].next)


@kernel
def acquire_object(graph: Graph, number: Any, step: Any, object_row: Any, node: Any) -> Any:
    """Come after all that an object (a row of `graph.objects`) releases: at `node`, or a new one. Which; 0: none."""
    given = graph.objects.rows[object_row].readers
    own = graph.held.rows[row_of(graph.held, object_row << np.uint64(32) | np.uint64(number))]
    if given == 0 or own.times == given:  # it waits in a loop, and comes after them already
        return np.int64(node)
    own.times = given
    return _acquire(graph, number, step, given, node)


@kernel
def release_into_object(graph: Graph, number: Any, object_row: Any) -> None:
    """An object (a row of `graph.objects`) releases what a chain did so far, too."""
    sync_object = graph.objects.rows[object_row]
    sync_object.readers = _with(graph, sync_object.readers, graph.chains.rows[number].last)


@kernel
def pass_fence(graph: Graph, number: Any, step: Any) -> None:
    """A fence: the step's subject is its order."""
    order = np.int64(step.subject)
    chain = graph.chains.rows[number]
    if order & ACQUIRE and chain.met != 0:
        met = chain.met
        chain.met = 0
        _acquire(graph, number, step, met, np.int64(0))
    if order & RELEASE:
        chain.released = listed(graph, chain.last, 0)


@kernel
def _acquire(graph: Graph, number: Any, step: Any, nodes: Any, own: Any) -> Any:
    """Come after the nodes of a list, if any of them is another chain's, at the node `own` or a new one. Which."""
    row = nodes
    while row != 0:
        node = graph.links.rows[row].node
        if node != 0 and graph.nodes.rows[node].chain != number:
            at = np.int64(own) if own != 0 else np.int64(add_node(graph, number, step, SYNC))
            edges_from_list(graph, nodes, at, SIGNAL)
            return at
        row = graph.links.rows[row].next
    return np.int64(own)


@kernel
def _unite_into_met(graph: Graph, number: Any, nodes: Any) -> None:
    row = nodes
    while row != 0:
        chain = graph.chains.rows[number]
        chain.met = _with(graph, chain.met, graph.links.rows[row].node)
        row = graph.links.rows[row].next


@kernel
def _with(graph: Graph, nodes: Any, node: Any) -> int:
    """A list, which nothing else holds, with a node in front and without an earlier one of the same chain."""
    if node == 0:
        return int(nodes)
    links, first = graph.links.rows, np.int64(nodes)
    row, before = np.int64(nodes), np.int64(0)
    for _ in range(LOOKED_AT):
        if row == 0:
            break
        following = np.int64(links[row].next)
        earlier = links[row].node
        if earlier <= node and graph.nodes.rows[earlier].chain == graph.nodes.rows[node].chain:  # a barrier is shared
            if before == 0:
                first = following
            else:
                links[before].next = following
            break
        before, row = row, following
    return int(listed(graph, node, first))
