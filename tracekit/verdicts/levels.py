"""The dependences that are valid at each level of a profile, and where each lies in the graph of the level's loop.

A profile may have thousands of levels with a handful of dependences each, so what is asked of many is found for all at
once, and a level's part is a slice of it. What is valid but not carried there is many times as much: it is looked for
by the sets of loops (``DependenceLevels``) that thousands of dependences share.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped, sorting_order
from tracekit.contexts.nodes import CALLS, ContextKind
from tracekit.dependence.profile import DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.jit.kernel import inlined, kernel

if TYPE_CHECKING:
    from tracekit.program.loop_graph import LoopGraphs

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[Any]

TOGETHER = 1 << 20
"""Rows that edges are sought for at once: it bounds the memory."""

ANY_CALL = -1
"""In place of a node of a loop's graph: some call of the loop, it is not known which."""


class LevelView(NamedTuple):
    """The dependences that are valid at one level, as parallel arrays."""

    node: int  # row of nodes
    dependences: Indices  # rows of the profile's dependences
    carried: Bools  # valid between iterations (inter)


class Levels:
    """What the levels of a profile carry, a row for each dependence at each, sorted by node; and what is valid there.

    Of the rows: `node`, `dependence`: rows of the profile; `sources`, `destinations`: the instructions.
    """

    def __init__(self, profile: DependenceProfile, graphs: LoopGraphs) -> None:
        self.profile = profile
        self.graphs = graphs
        carried, dependences = profile.levels.carried, profile.dependences
        order = sorting_order(carried["node"], carried["dependence"])
        self.node, self.dependence = (carried[name][order].astype(np.int64) for name in ("node", "dependence"))
        self.sources, self.destinations = (
            dependences[end][self.dependence].astype(np.int64) for end in ("source", "destination")
        )
        self._first = _firsts(self.node, len(profile.nodes))

    def rows(self, node: int) -> slice:
        """The rows of a node."""
        return slice(self._first[node], self._first[node + 1])

    def view(self, node: int) -> LevelView:
        """The dependences valid at `node`."""
        carried = self.dependence[self.rows(node)]
        sets = _part(self._sets_of, node)
        valid = np.unique(np.concatenate([carried, *(_part(self._alike, number) for number in sets)]))
        return LevelView(node, valid, np.isin(valid, carried, assume_unique=True))

    def ends(self, node: int) -> tuple[Indices, Indices]:
        """The nodes of the loop's graph, or ANY_CALL, at the two ends of each dependence of the view of `node`."""
        dependences = self.profile.dependences[self.view(node).dependences]
        levels = np.full(len(dependences), node)
        tails, heads = (
            self.places(dependences[end], dependences[f"{end}_node"], levels) for end in ("source", "destination")
        )
        return tails, heads

    def changing(self, node: int) -> list[int]:
        """The loop's own loads, and its calls (or ANY_CALL), that read what the same invocation had stored."""
        places, first = self._changing
        return places[first[node] : first[node + 1]]

    def valid(self, dependences: Bools, nodes: Bools) -> tuple[Indices, Indices]:
        """Of those chosen of the profile's dependences and nodes what is valid where: nodes, and dependences."""
        levels, chosen = self.profile.levels, np.flatnonzero(dependences)
        owners, around = levels.sets.of(levels.within[chosen])
        owners, around = owners[nodes[around]], around[nodes[around]]
        alone = dependences[self.dependence] & nodes[self.node] & ~self._is_around
        return (
            np.concatenate([around.astype(np.int64), self.node[alone]]),
            np.concatenate([chosen[owners], self.dependence[alone]]),
        )

    @cached_property
    def _is_around(self) -> Bools:
        """Per row: do both ends lie in one iteration of the level, too?"""
        sets = self.profile.levels.sets
        owners, nodes = sets.of(np.arange(len(sets.first) - 1))
        keys = owners.astype(np.int64) << 32 | nodes
        wanted = self.profile.levels.within[self.dependence] << 32 | self.node
        result: Bools = np.append(keys, -1)[np.searchsorted(keys, wanted)] == wanted
        return result

    @cached_property
    def carried_kinds(self) -> list[list[int]]:
        """For each node how many RAW, WAR and WAW dependences are carried there."""
        kinds = self.profile.dependences["kind"][self.dependence]
        shape = (len(self.profile.nodes), len(DependenceKind))
        counts = np.bincount(self.node * shape[1] + kinds, minlength=shape[0] * shape[1])
        lists: list[list[int]] = counts.reshape(shape).tolist()
        return lists

    @cached_property
    def _alike(self) -> tuple[Indices, Indices]:
        """The dependences by their sets of loops, and where those of each begin."""
        within, sets = self.profile.levels.within, self.profile.levels.sets
        order = sorting_order(within)
        return order, _firsts(within[order], len(sets.first) - 1)

    @cached_property
    def _sets_of(self) -> tuple[Indices, Indices]:
        """The sets of loops by the nodes that they have, and where those of each begin."""
        sets = self.profile.levels.sets
        owners, nodes = sets.of(np.arange(len(sets.first) - 1))
        order = sorting_order(nodes)
        return owners[order].astype(np.int64), _firsts(nodes[order], len(self.profile.nodes))

    @cached_property
    def _changing(self) -> tuple[list[int], list[int]]:
        """What changes at all nodes, and for each node where its part begins."""
        levels, rows = self.profile.levels, self.profile.dependences
        flows = rows["kind"] == DependenceKind.RAW
        loads = rows[flows]
        (within, instruction, context), _ = grouped(
            levels.within[flows], loads["destination"], loads["destination_node"]
        )
        owners, around = levels.sets.of(within)
        carried = np.flatnonzero(flows[self.dependence])
        loads = rows[self.dependence[carried]]
        nodes = np.concatenate([around.astype(np.int64), self.node[carried]])
        instruction = np.concatenate([instruction[owners], loads["destination"]])
        context = np.concatenate([context[owners], loads["destination_node"]])
        (nodes, places), _ = grouped(nodes, self.places(instruction, context, nodes))
        return places.tolist(), _firsts(nodes, len(self.profile.nodes)).tolist()

    def edges(self, nodes: Bools) -> Indices:
        """The different edges of the dependences valid at some nodes, sorted: shape (3, edges).

        They are the level, and of its loop's graph the nodes, or ANY_CALL, at both ends. What begins and ends at one
        node is left out, as most do: deep below a call of the loop.
        """
        levels = self.profile.levels
        carried = np.searchsorted(levels.carried["dependence"], np.arange(len(levels.within) + 1))
        rows = np.append(0, np.cumsum(levels.sets.sizes[levels.within] + np.diff(carried)))
        bounds = np.searchsorted(rows, np.arange(TOGETHER, rows[-1], TOGETHER))
        search = EdgeSearch(
            self.profile.dependences, levels.within, *levels.sets, levels.carried["node"], carried, nodes, self._tree
        )
        source, destination = (Path(*(np.full(len(self.profile.nodes), -1) for _ in range(2))) for _ in range(2))
        found, before = [np.zeros((3, 0), np.int64)], 0
        for end in [*bounds.tolist(), len(levels.within)]:
            part = np.empty((int(rows[end] - rows[before]), 3), np.int64)
            count = _find_edges(
                search, self.graphs.op_enter, self.graphs.nest, (before, end), source, destination, part
            )
            found.append(grouped(*part[:count].T)[0])
            before = end
        return grouped(*np.concatenate(found, axis=1))[0]

    def places(self, instructions: Rows, contexts: Rows, levels: Indices) -> Indices:
        """The node of the graph of the loop ``levels[i]`` in which the access (instruction, context) `i` happens.

        That is the outermost call site between the loop and the access, or the instruction itself; ANY_CALL
        if the profile does not know the context below the loop and the instruction stands elsewhere. A level that is
        no loop has no graph, and what is said of it means nothing.
        """
        places, graphs = np.empty(instructions.size, np.int64), self.graphs
        accesses = instructions.astype(np.int64), contexts.astype(np.int64)
        _place(*accesses, levels, self._tree, graphs.op_enter, graphs.nest, places)
        return places

    @cached_property
    def _tree(self) -> Tree:
        nodes = self.profile.nodes
        return Tree(
            parent=nodes["parent"].astype(np.int64),
            call=nodes["call"].astype(np.int64),
            is_call=np.isin(nodes["kind"], CALLS),
            is_recursive_loop=nodes["kind"] == ContextKind.RECURSIVE_LOOP,
            loop=np.where(nodes["loop"] == NONE, 0, nodes["loop"]).astype(np.int64),
        )


def _firsts(numbers: Rows, count: int) -> Indices:
    """For each of `count` numbers, and behind the last, where its rows begin among the sorted `numbers`."""
    return np.searchsorted(numbers, np.arange(count + 1, dtype=numbers.dtype))


def _part(table: tuple[Indices, Indices], number: int) -> Indices:
    """The rows of a number."""
    rows, first = table
    return rows[first[number] : first[number + 1]]


class Tree(NamedTuple):
    """Columns of a profile's nodes; the parent of a root is no node."""

    parent: Indices
    call: Indices
    is_call: Bools
    is_recursive_loop: Bools
    loop: Indices  # 0 where there is none


SELF = -1
"""In place of a call between a level and an access: there is none, the instruction itself stands in the loop's text."""


class EdgeSearch(NamedTuple):
    """Where edges are sought: columns of a profile."""

    dependences: Rows
    within: Indices
    first: Indices  # of the sets of loops
    nodes: Rows
    carried: Rows  # nodes that carry dependences, by dependence
    first_carried: Indices  # of each dependence, and behind the last
    chosen: Bools  # per node
    tree: Tree


class Path(NamedTuple):
    """The nodes around the context of an access, and the outermost call between each and the access, or SELF."""

    by: Indices  # per node the last context that it is around
    call: Indices


@kernel
def _find_edges(
    search: EdgeSearch,
    op_enter: Indices,
    nest: tuple[Indices, Indices],
    dependences: tuple[int, int],
    source: Path,
    destination: Path,
    edges: Indices,
) -> int:
    """Fill `edges` with those of the dependences from the first to before the last; how many they are."""
    count = 0
    for number in range(*dependences):
        row = search.dependences[number]
        if number == dependences[0] or row.source_node != search.dependences[number - 1].source_node:
            _climb(source, search.tree, np.int64(row.source_node))
        if number == dependences[0] or row.destination_node != search.dependences[number - 1].destination_node:
            _climb(destination, search.tree, np.int64(row.destination_node))
        first = search.first[search.within[number]]
        around = search.first[search.within[number] + 1] - first
        carried = search.first_carried[number]
        for place in range(around + search.first_carried[number + 1] - carried):
            if place < around:
                node = np.int64(search.nodes[first + place])
            else:
                node = np.int64(search.carried[carried + place - around])
            if search.chosen[node]:
                tail = _placed(_call_at(source, row.source_node, node), row.source, node, search.tree, op_enter, nest)
                head = _placed(
                    _call_at(destination, row.destination_node, node),
                    row.destination,
                    node,
                    search.tree,
                    op_enter,
                    nest,
                )
                if tail != head or tail == ANY_CALL:
                    edges[count, 0], edges[count, 1], edges[count, 2] = node, tail, head
                    count += 1
    return count


@inlined
def _climb(path: Any, tree: Any, context: Any) -> None:
    """Turn to the nodes around `context`, itself included."""
    at, call = context, np.int64(SELF)
    while at < tree.parent.size:
        path.by[at], path.call[at] = context, call
        if tree.is_call[at]:
            call = tree.call[at]
        at = tree.parent[at]


@inlined
def _call_at(path: Any, context: Any, node: Any) -> Any:
    """The outermost call between a node and the access, or SELF, also if the node is not around the context."""
    return path.call[node] if path.by[node] == context else np.int64(SELF)


@inlined
def _placed(call: Any, instruction: Any, level: Any, tree: Any, op_enter: Any, nest: Any) -> Any:
    """The node of the level's graph that stands for an access below `call`, or for the instruction if that is SELF."""
    enter, leave = nest
    found = np.int64(instruction) if call == SELF else np.int64(call)
    # What is below the loop may have been called by it when recursion had come back to it, inside another call.
    inside = enter.size > 0 and (found == instruction or not tree.is_recursive_loop[level])
    if inside:
        here, loop = op_enter[min(found, op_enter.size - 1)], tree.loop[level]
        inside = enter[loop] <= here < leave[loop]
    return found if inside else np.int64(ANY_CALL)


@kernel
def _place(
    instructions: Indices,
    contexts: Indices,
    levels: Indices,
    tree: Tree,
    op_enter: Indices,
    nest: tuple[Indices, Indices],
    places: Indices,
) -> None:
    """Fill `places` as :meth:`Levels.places` says; `op_enter`, `nest`: of :class:`LoopGraphs`."""
    for row in range(instructions.size):
        level, at, call = levels[row], contexts[row], np.int64(SELF)
        while at < tree.parent.size and at != level:
            if tree.is_call[at]:
                call = tree.call[at]
            at = tree.parent[at]
        if at != level:
            call = np.int64(SELF)
        places[row] = _placed(call, instructions[row], level, tree, op_enter, nest)
