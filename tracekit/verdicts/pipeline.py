"""The stages of a pipeline: the strongly connected components of a loop's dependence graph, put in order.

A component is *sequential* if its own iterations depend on each other: a carried memory dependence or a recurrence of
the loop lies inside, or the decision to leave, or calls whose unseen effects keep their order. All others are
*parallel*: several workers may take their iterations (PS-DSWP). Sequential components are stages of their own, parallel
ones that can stand side by side are one stage, unless an iteration of one needs what an earlier iteration of the other
did. Recipes are not applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import PARTLY_BELOW, ContextKind
from tracekit.formats.image import PhiKind
from tracekit.verdicts.levels import ANY_CALL
from tracekit.verdicts.verdicts import Judge
from tracekit.verdicts.whole_graph import Dependences, WholeGraph, whole_graph, working_components

if TYPE_CHECKING:
    from tracekit.program.loop_graph import LoopGraph
    from tracekit.verdicts.levels import LevelView

Indices = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Stage(NamedTuple):
    """One stage; operations and phis by their rows, ascending."""

    parallel: bool
    operations: tuple[int, ...]  # memory accesses and calls
    recurrences: tuple[int, ...]  # rows of phis: the values that its iterations hand on
    accesses: int  # loads and stores, those below its calls included, as far as they are known to be its own


def stages(judge: Judge, node: int) -> list[Stage]:
    """The stages of the loop at `node` in an order in which values flow; [] if less than two do any work."""
    view = judge.levels.view(node)
    graph = judge.graphs[int(judge.profile.nodes["loop"][node])]
    tails, heads = judge.levels.ends(view.node)
    dependences = Dependences(tails, heads, judge.tied_calls(node))
    if working_components([(graph, dependences)])[0] < 2:
        return []
    whole = whole_graph(graph, dependences)
    recurrences = judge.graphs.header_phis(int(judge.profile.nodes["loop"][node]), PhiKind.RECURRENCE)
    carried = _carried(judge, view, graph, whole)
    ordered = _sequential(judge, view, graph, whole, recurrences, carried)
    weight = _weights(judge, node, graph, whole)
    useful = np.zeros(whole.labels.max() + 1, np.bool_)
    useful[whole.labels[: graph.nodes.size][graph.works]] = True
    useful[whole.labels[_positions(graph, recurrences + judge.graphs.first_phi_node)]] = True
    made = []
    for members in _groups(whole, carried, ordered, useful):
        inside = graph.nodes[np.isin(whole.labels[: graph.nodes.size], members)]
        phis = np.intersect1d(inside - judge.graphs.first_phi_node, recurrences)
        works = graph.nodes[graph.works & np.isin(whole.labels[: graph.nodes.size], members)]
        made.append(
            Stage(not ordered[members[0]], tuple(works.tolist()), tuple(phis.tolist()), int(weight[members].sum()))
        )
    return made


def heaviest_in_order(pipeline: Sequence[Stage]) -> int:
    """The accesses of the heaviest stage whose iterations run one after another; 0 if there is none."""
    return max((stage.accesses for stage in pipeline if not stage.parallel), default=0)


def _positions(graph: LoopGraph, nodes: Indices) -> Indices:
    return np.searchsorted(graph.nodes, nodes)


def _carried(judge: Judge, view: LevelView, graph: LoopGraph, whole: WholeGraph) -> Indices:
    """The components at both ends of memory dependences from an iteration to a later one: shape (2, dependences)."""
    ends = [np.where(end == ANY_CALL, whole.some_call, _positions(graph, end)) for end in judge.levels.ends(view.node)]
    return np.stack([whole.labels[end[view.carried]] for end in ends])


def _sequential(
    judge: Judge, view: LevelView, graph: LoopGraph, whole: WholeGraph, recurrences: Indices, carried: Indices
) -> Bools:
    """Per component: must its iterations run one after another?"""
    result = np.zeros(whole.labels.max() + 1, np.bool_)
    result[whole.labels[_positions(graph, recurrences + judge.graphs.first_phi_node)]] = True
    result[whole.labels[graph.exits]] = True
    result[whole.labels[_positions(graph, judge.tied_calls(view.node))]] = True
    result[carried[0][carried[0] == carried[1]]] = True
    return result


def _weights(judge: Judge, node: int, graph: LoopGraph, whole: WholeGraph) -> Indices:
    """Per component how many accesses were made in it, as far as that is known.

    Inside a recursion the profile has one context for all that is called: accesses of the loop's own text are known by
    their place, and all others of the loop were made below its calls, which are one component or not known apart.
    """
    nodes, accesses = judge.profile.nodes, judge.profile.accesses
    is_below = (node <= accesses["node"]) & (accesses["node"] < judge.subtree_ends[node])
    recursive = nodes["kind"][node] in PARTLY_BELOW
    if nodes["kind"][node] == ContextKind.RECURSION_LOOP:
        is_below |= accesses["node"] == nodes["parent"][node]
    inside = accesses[is_below]
    places = judge.levels.places(inside["instruction"], inside["node"], np.full(len(inside), node))
    known = places != ANY_CALL
    weight = np.zeros(whole.labels.max() + 1, np.int64)
    np.add.at(weight, whole.labels[_positions(graph, places[known])], inside["count"][known].astype(np.int64))
    rest = int(nodes["accesses"][node]) - int(weight.sum())
    if recursive and rest > 0:
        entering = [op for op in graph.calls.tolist() if judge.program.call_callees(judge.program.ops["base"][op]).size]
        components = np.unique(whole.labels[_positions(graph, np.array(entering, np.int64))])
        if components.size == 1:
            weight[components] += rest
    return weight


def _groups(whole: WholeGraph, carried: Indices, ordered: Bools, useful: Bools) -> list[list[int]]:
    """Components in topological order, neighbouring parallel ones together that no carried dependence leads between.

    Of those that can be next the one of the same kind as the last that can join it, of the same kind, or of any, and
    of these the one whose first node has the smallest number.
    """
    count = whole.labels.max() + 1
    first = np.full(count, whole.labels.size)
    np.minimum.at(first, whole.labels, np.arange(whole.labels.size))
    following, missing = _followers(np.stack([whole.labels[whole.tails], whole.labels[whole.heads]]), count)
    later, _ = _followers(carried, count)
    apart_from = [-1] * count  # component: the last group that it waits for an earlier iteration of
    ready: tuple[list[tuple[int, int]], ...] = ([], [], [])  # heaps: of parallel, of sequential ones, of no use
    for component in np.flatnonzero(missing == 0).tolist():
        heappush(ready[_kind(component, ordered, useful)], (int(first[component]), component))
    apart: list[tuple[int, int]] = []  # parallel ones that are ready, and cannot join the last group
    groups: list[list[int]] = []
    while any(ready) or apart:
        parallel = bool(groups) and not ordered[groups[-1][0]]
        if parallel and not ready[2]:
            while ready[0] and apart_from[ready[0][0][1]] == len(groups) - 1:
                apart.append(heappop(ready[0]))
            if not ready[0]:  # the first of them begins a group
                ready[0].extend(apart)
                heapify(ready[0])
                apart.clear()
        heap = next(ready[kind] for kind in ((2, 0, 1) if parallel else (2, 1, 0)) if ready[kind])
        chosen = heappop(heap)[1]
        if useful[chosen]:
            if parallel and not ordered[chosen] and apart_from[chosen] != len(groups) - 1:
                groups[-1].append(chosen)
            else:
                groups.append([chosen])
            for head in later[chosen]:
                apart_from[head] = len(groups) - 1
        for head in following[chosen]:
            missing[head] -= 1
            if not missing[head]:
                heappush(ready[_kind(head, ordered, useful)], (int(first[head]), head))
    return groups


def _followers(edges: Indices, count: int) -> tuple[list[list[int]], Indices]:
    """Of components, given the two ends of edges: which follow each, and how many each follows on."""
    between = np.unique(edges[:, edges[0] != edges[1]], axis=1)
    following: list[list[int]] = [[] for _ in range(count)]
    for tail, head in between.T.tolist():
        following[tail].append(head)
    return following, np.bincount(between[1], minlength=count)


def _kind(component: int, ordered: Bools, useful: Bools) -> int:
    """The heap in which a component waits."""
    return int(ordered[component]) if useful[component] else 2
