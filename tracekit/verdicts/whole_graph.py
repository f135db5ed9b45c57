"""A loop's dependence graph: what the program says (:class:`LoopGraph`) together with the run's memory dependences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tracekit.containers.grouping import Indices
from tracekit.program.components import components
from tracekit.program.loop_graph import LoopGraph
from tracekit.verdicts.levels import ANY_CALL

HELPERS = 3
"""Nodes of a whole graph behind those of the loop: "some call", "may go on", what calls with unseen effects share."""

TOGETHER = 1 << 20
"""Edges of graphs whose components are found at once: it bounds the memory."""


class Dependences(NamedTuple):
    """The memory dependences of a loop in a context; nodes of the loop's graph, or ANY_CALL."""

    tails: Indices
    heads: Indices
    tied: Indices  # the calls whose unseen effects keep their order


class WholeGraph(NamedTuple):
    """A loop's graph with its memory dependences: nodes by position in ``LoopGraph.nodes``, then helpers."""

    tails: Indices
    heads: Indices
    labels: Indices  # per node the strongly connected component; a component's successors have smaller numbers
    some_call: int  # the helper that stands for "some call": it is in the component of all calls, if it has edges


def whole_graph(graph: LoopGraph, dependences: Dependences) -> WholeGraph:
    """Add the memory dependences, all of which the graph can place."""
    tails, heads = _edges(graph, dependences)
    return WholeGraph(tails, heads, components(graph.nodes.size + HELPERS, tails, heads), graph.nodes.size)


def working_components(graphs: Sequence[tuple[LoopGraph, Dependences]]) -> list[int]:
    """How many strongly connected components of each graph contain a memory access or a call.

    0 if the graph of the loop can place an access nowhere.
    """
    counts = np.zeros(len(graphs), np.int64)
    for numbers in _parts(graphs):
        parts = [graphs[number][0] for number in numbers]
        sizes = np.array([graph.nodes.size + HELPERS for graph in parts])
        firsts = np.cumsum(sizes) - sizes
        edges = [_edges(*graphs[number]) for number in numbers]
        shift = np.repeat(firsts, [tails.size for tails, _ in edges])
        tails, heads = (np.concatenate(ends) + shift for ends in zip(*edges))
        labels = components(int(sizes.sum()), tails, heads)
        number_of = np.zeros(labels.max() + 1, np.int64)
        number_of[labels] = np.repeat(numbers, sizes)
        works = np.zeros(number_of.size, np.bool_)
        works[labels[np.concatenate([np.append(graph.works, _HELPERS_WORK) for graph in parts])]] = True
        counts += np.bincount(number_of[works], minlength=counts.size)
    return counts.tolist()


_HELPERS_WORK = np.zeros(HELPERS, np.bool_)


def _parts(graphs: Sequence[tuple[LoopGraph, Dependences]]) -> Iterator[list[int]]:
    """The numbers of graphs that can place their dependences, in parts of about TOGETHER edges."""
    part: list[int] = []
    edges = 0
    for number, (graph, dependences) in enumerate(graphs):
        if not graph.calls.size and _is_of_a_call(dependences):
            continue
        part.append(number)
        edges += graph.bound[0].size + dependences.tails.size
        if edges >= TOGETHER:
            yield part
            part, edges = [], 0
    if part:
        yield part


def _is_of_a_call(dependences: Dependences) -> bool:
    """Is an end of a dependence below some call, it is not known which?"""
    return bool((dependences.tails == ANY_CALL).any() or (dependences.heads == ANY_CALL).any())


def _edges(graph: LoopGraph, dependences: Dependences) -> tuple[Indices, Indices]:
    """All edges of a loop's whole graph, by the positions of nodes."""
    some_call, tied = graph.nodes.size, graph.nodes.size + 2
    edges = [
        graph.bound,
        tuple(np.where(end == ANY_CALL, some_call, np.searchsorted(graph.nodes, end)) for end in dependences[:2]),
    ]
    if _is_of_a_call(dependences):
        edges += _both_ways(some_call, np.searchsorted(graph.nodes, graph.calls))
    # What unseen effects do to each other is unknown: they stay together, in order.
    if dependences.tied.size:
        edges += _both_ways(tied, np.searchsorted(graph.nodes, dependences.tied))
    tails, heads = (np.concatenate(ends) for ends in zip(*edges))
    return tails, heads


def _both_ways(hub: int, spokes: Indices) -> list[tuple[Indices, Indices]]:
    """Edges that put all spokes into one component."""
    centre = np.full(spokes.size, hub)
    return [(centre, spokes), (spokes, centre)]
