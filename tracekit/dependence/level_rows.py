"""The levels of a profile's dependences, from what the kernels found or from a row for each.

A dependence deep in a call tree has dozens of levels, of which few carry it: at the others both ends lie in one
iteration. Rows for these would be nine in ten of all, and many times the rest of the profile. As a set of loops they
are a number for each dependence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import Indices, sorting_order
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.dependence.kernels.loop_sets import EMPTY
from tracekit.dependence.loop_sets import LOW, UPPER, LoopSets, append_nodes, numbered, with_next
from tracekit.dependence.profile import CARRIED, DependenceLevels
from tracekit.jit.kernel import inlined, kernel

if TYPE_CHECKING:
    from tracekit.dependence.reduce import Findings

Rows = NDArray[Any]

# -- from what the kernels found -------------------------------------------------------------------


def levels_found(findings: Findings, new_dependence: Indices, node_of: Indices) -> tuple[DependenceLevels, Indices]:
    """The levels of the findings' dependences, and which row of ``carried`` each of ``findings.levels`` is, -1: row 0.

    new_dependence: for each of the findings' dependences but row 0 its row in the profile; `node_of`: the node of each
    context.
    """
    key = findings.levels["key"][1:]
    dependence, node = new_dependence[(key >> UPPER) - np.uint64(1)], node_of[key & LOW]
    order = sorting_order(dependence, node)
    found = findings.levels[1:][order]
    carried = np.empty(len(found), CARRIED)
    carried["dependence"], carried["node"] = dependence[order], node[order]
    carried["min_distance"], carried["max_distance"] = found["least"], found["greatest"]
    carried["carried"] = found["carried"]
    row_of = np.full(len(findings.levels), -1, np.int64)
    row_of[order + 1] = np.arange(len(order))
    return DependenceLevels(carried, *_within(findings, new_dependence, node_of)), row_of


def _within(findings: Findings, new_dependence: Indices, node_of: Indices) -> tuple[Indices, LoopSets]:
    """For each dependence of the profile the number of its set of loops; and these."""
    marks = Marks(np.zeros(len(new_dependence) + 1, np.int64), np.empty(len(findings.within) - 1, np.int64))
    _sort_marks(findings.within, new_dependence, marks)
    ways, within = hash_table([]), np.zeros(len(new_dependence), np.int64)
    seen = Seen(
        np.zeros(len(findings.loop_sets), np.int64),
        np.full(len(findings.loop_sets), -1, np.int64),
        np.zeros(int(node_of.max(initial=0)) + 1, np.int64),
        np.empty(int(node_of.max(initial=0)) + 1, np.int64),
    )
    _unite(findings.loop_sets, marks, node_of, seen, ways, within)
    return numbered(ways, within)


class Marks(NamedTuple):
    """The marks of kernels/loop_sets.py by dependence of the profile."""

    first: Indices  # of each dependence, and behind the last, the place in `sets`
    sets: Indices


class Seen(NamedTuple):
    """What was met before."""

    by: Indices  # per set of the findings the last dependence, plus 1, that was marked with it
    alone: Indices  # and what a dependence with no other mark has, -1: not known
    node_by: Indices  # per node the last dependence, plus 1
    nodes: Indices  # those of the present dependence


@kernel
def _sort_marks(within: Rows, new_dependence: Indices, marks: Marks) -> None:
    """Fill `marks`, whose `first` is zeros."""
    first = marks.first
    for row in range(1, within.size):
        first[new_dependence[(within[row].key >> UPPER) - np.uint64(1)]] += 1
    for dependence in range(1, first.size):
        first[dependence] += first[dependence - 1]
    for row in range(1, within.size):
        dependence = new_dependence[(within[row].key >> UPPER) - np.uint64(1)]
        first[dependence] -= 1
        marks.sets[first[dependence]] = np.int64(within[row].key & LOW)


@kernel
def _unite(steps: Rows, marks: Marks, node_of: Indices, seen: Seen, ways: HashTable, within: Indices) -> None:
    """Fill `within`: for each dependence the row in `ways` of the union of its sets."""
    for dependence in range(within.size):
        first, end = marks.first[dependence], marks.first[dependence + 1]
        if end - first == 1 and seen.alone[marks.sets[first]] >= 0:
            within[dependence] = seen.alone[marks.sets[first]]
        elif end > first:
            count = np.int64(0)
            for place in range(first, end):
                count = _collect(steps, marks.sets[place], node_of, seen, dependence + 1, count)
            _sort_few(seen.nodes, count)
            for place in range(count):
                within[dependence] = with_next(ways, within[dependence], seen.nodes[place])
            if end - first == 1:
                seen.alone[marks.sets[first]] = within[dependence]


@inlined
def _collect(steps: Any, loops: Any, node_of: Any, seen: Any, by: Any, count: Any) -> Any:
    """Append to the `count` of ``seen.nodes`` those of a set that were not yet met by `by`; how many they are then."""
    while loops != EMPTY and seen.by[loops] != by:
        seen.by[loops] = by
        key = steps[loops].key
        node = node_of[key & LOW]
        if seen.node_by[node] != by:
            seen.node_by[node] = by
            seen.nodes[count] = node
            count += 1
        loops = np.int64(key >> UPPER)
    return count


@inlined
def _sort_few(numbers: Any, count: Any) -> None:
    """Sort the first `count`, which are few, and nearly in reverse: what lies deeper in the tree comes first."""
    for place in range(count // 2):
        numbers[place], numbers[count - 1 - place] = numbers[count - 1 - place], numbers[place]
    for place in range(1, count):
        number, before = numbers[place], place - 1
        while before >= 0 and numbers[before] > number:
            numbers[before + 1] = numbers[before]
            before -= 1
        numbers[before + 1] = number


# -- rows of all levels ----------------------------------------------------------------------------


def levels_of(rows: Rows, dependences: int) -> DependenceLevels:
    """The levels of so many dependences, from a row (LEVEL) for each at each node, in any order."""
    rows = rows[sorting_order(rows["dependence"], rows["node"])]
    inter = rows[rows["inter"]]
    carried = np.empty(len(inter), CARRIED)
    for name in CARRIED.names or ():
        carried[name] = inter[name]
    ways, within = hash_table([]), np.zeros(dependences, np.int64)
    around = rows[rows["intra"]]
    append_nodes(ways, within, around["dependence"].astype(np.int64), around["node"].astype(np.int64))
    return DependenceLevels(carried, *numbered(ways, within))
