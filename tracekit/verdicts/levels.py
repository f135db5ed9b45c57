"""The dependences that are valid at each level of a profile, and where each lies in the graph of the level's loop.

A profile may have thousands of levels with a handful of dependences each, so all is found for all levels at once, and
a level's part is a slice of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.nodes import CALLS, ContextKind
from tracekit.dependence.profile import DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.jit.kernel import kernel

if TYPE_CHECKING:
    from tracekit.program.loop_graph import LoopGraphs

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[Any]

ANY_CALL = -1
"""In place of a node of a loop's graph: some call of the loop, it is not known which."""


class LevelView(NamedTuple):
    """The dependences that are valid at one level, as parallel arrays."""

    node: int  # row of nodes
    dependences: Indices  # rows of the profile's dependences
    carried: Bools  # valid between iterations (inter)


class Levels:
    """The dependences that are valid at the levels of a profile, a row for each at each, sorted by node.

    `node`, `dependence`: rows of the profile; `carried`; `sources` and `destinations`: the instructions.
    """

    def __init__(self, profile: DependenceProfile, graphs: LoopGraphs) -> None:
        self.profile = profile
        self.graphs = graphs
        rows, dependences = profile.levels, profile.dependences
        sources, destinations = (dependences[end].astype(np.int64) for end in ("source", "destination"))
        self._first = np.zeros(len(profile.nodes) + 1, np.int64)
        _count(rows, self._first)
        valid = int(self._first[-1])
        self.dependence, self.sources, self.destinations = (np.empty(valid, np.int64) for _ in range(3))
        self.carried = np.empty(valid, np.bool_)
        columns = self.dependence, self.carried, self.sources, self.destinations
        _sort_by_node(rows, sources, destinations, self._first.copy(), columns)
        self.node = np.repeat(np.arange(len(profile.nodes)), np.diff(self._first))

    def rows(self, node: int) -> slice:
        """The rows of a node."""
        return slice(self._first[node], self._first[node + 1])

    def view(self, node: int) -> LevelView:
        """The dependences valid at `node`."""
        rows = self.rows(node)
        return LevelView(node, self.dependence[rows], self.carried[rows])

    def ends(self, node: int) -> tuple[Indices, Indices]:
        """The nodes of the loop's graph, or ANY_CALL, at the two ends of each dependence of the view of `node`."""
        rows = self.rows(node)
        return self.tails[rows], self.heads[rows]

    def changing(self, node: int) -> list[int]:
        """The loop's own loads, and its calls (or ANY_CALL), that read what the same invocation had stored."""
        places, first = self._changing
        return places[first[node] : first[node + 1]]

    @cached_property
    def carried_kinds(self) -> list[list[int]]:
        """For each node how many RAW, WAR and WAW dependences are carried there."""
        kinds = self.profile.dependences["kind"][self.dependence[self.carried]]
        shape = (len(self.profile.nodes), len(DependenceKind))
        counts = np.bincount(self.node[self.carried] * shape[1] + kinds, minlength=shape[0] * shape[1])
        lists: list[list[int]] = counts.reshape(shape).tolist()
        return lists

    @cached_property
    def tails(self) -> Indices:
        """For each row the source's node of the graph of the row's loop, or ANY_CALL."""
        return self._end("source")

    @cached_property
    def heads(self) -> Indices:
        """The destination's."""
        return self._end("destination")

    def _end(self, end: str) -> Indices:
        contexts = self.profile.dependences[f"{end}_node"][self.dependence]
        return self.places(self.sources if end == "source" else self.destinations, contexts, self.node)

    @cached_property
    def _changing(self) -> tuple[list[int], list[int]]:
        """What changes at all nodes, and for each node where its part begins."""
        flows = self.profile.dependences["kind"][self.dependence] == DependenceKind.RAW
        (nodes, places), _ = grouped(self.node[flows], self.heads[flows])
        return places.tolist(), _firsts(nodes, len(self.profile.nodes)).tolist()

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


def _firsts(sorted_nodes: Indices, nodes: int) -> Indices:
    """For each of `nodes`, and behind the last, where the rows of `sorted_nodes` that are its own begin."""
    return np.searchsorted(sorted_nodes, np.arange(nodes + 1))


class Tree(NamedTuple):
    """Columns of a profile's nodes; the parent of a root is no node."""

    parent: Indices
    call: Indices
    is_call: Bools
    is_recursive_loop: Bools
    loop: Indices  # 0 where there is none


@kernel
def _count(levels: Rows, first: Indices) -> None:
    """Fill `first`, zeros: where the levels (LEVEL) that are valid at each node begin in their order, and end."""
    for row in levels:
        if row.intra or row.inter:
            first[np.uint64(row.node) + np.uint64(1)] += 1
    for node in range(1, first.size):
        first[node] += first[node - 1]


@kernel
def _sort_by_node(
    levels: Rows,
    sources: Indices,
    destinations: Indices,
    place: Indices,
    columns: tuple[Indices, Bools, Indices, Indices],
) -> None:
    """Fill `columns`: dependence, carried, source and destination of the levels that are valid, by node.

    `sources`, `destinations`: of the dependences; `place`: of :func:`_count`, used up.
    """
    dependence, carried, source, destination = columns
    for row in levels:
        if row.intra or row.inter:
            at, found = np.uint64(place[np.uint64(row.node)]), np.uint64(row.dependence)
            place[np.uint64(row.node)] += 1
            dependence[at], carried[at] = found, row.inter
            source[at], destination[at] = sources[found], destinations[found]


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
    enter, leave = nest
    for row in range(instructions.size):
        instruction, level = instructions[row], levels[row]
        found, at = instruction, contexts[row]
        while at < tree.parent.size and at != level:
            if tree.is_call[at]:
                found = tree.call[at]
            at = tree.parent[at]
        found = found if at == level else instruction
        # What is below the loop may have been called by it when recursion had come back to it, inside another call.
        inside = enter.size > 0 and (found == instruction or not tree.is_recursive_loop[level])
        if inside:
            here, loop = op_enter[min(found, op_enter.size - 1)], tree.loop[level]
            inside = enter[loop] <= here < leave[loop]
        places[row] = found if inside else ANY_CALL
