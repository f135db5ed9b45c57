"""Sets of loops as a profile has them: by their nodes, each set once.

Of a dependence deep in a call tree both ends lie in one iteration of dozens of loops, but of millions of dependences in
few thousand different sets of them. While a set is made it is a row of a table of `ways`: the row of the set without
its greatest node, and that node, are its key. The row, and the number, of the empty set is EMPTY.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import Indices, grouped
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.dependence.kernels.loop_sets import EMPTY
from tracekit.jit.kernel import inlined, kernel

UPPER = np.uint64(32)
LOW = np.uint64(0xFFFF_FFFF)


class LoopSets(NamedTuple):
    """Sets of loops; number 0 is empty, the others differ."""

    first: Indices  # of each set the place of its first node in `nodes`, and behind the last
    nodes: NDArray[np.uint32]  # rows of nodes, ascending in a set

    @property
    def sizes(self) -> Indices:
        """How many nodes each set has."""
        return np.diff(self.first)

    def of(self, numbers: Indices) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The nodes of some sets, one set behind the other: the place in `numbers` of each one's set, and the nodes."""
        count = int(self.sizes[numbers].sum())
        owners, nodes = np.empty(count, np.uint32), np.empty(count, np.uint32)
        _expand(self, numbers, owners, nodes)
        return owners, nodes

    def renamed(self, node_of: Indices) -> tuple[Indices, LoopSets]:
        """Which set each becomes with new numbers of nodes, -1: left out; and these sets."""
        owners, nodes = self.of(np.arange(len(self.first) - 1))
        new = node_of[nodes]
        (owners, nodes), _ = grouped(owners[new >= 0], new[new >= 0])
        ways, rows = hash_table([]), np.zeros(len(self.first) - 1, np.int64)
        append_nodes(ways, rows, owners, nodes)
        return numbered(ways, rows)


@kernel
def _expand(sets: LoopSets, numbers: Indices, owners: NDArray[np.uint32], nodes: NDArray[np.uint32]) -> None:
    """Fill `owners` and `nodes`, without numpy's arrays of as many places."""
    at = 0
    for owner in range(numbers.size):
        for place in range(sets.first[numbers[owner]], sets.first[numbers[owner] + 1]):
            owners[at], nodes[at] = owner, sets.nodes[place]
            at += 1


@inlined
def with_next(ways: Any, row: Any, node: Any) -> Any:
    """The row in `ways` of a set with a node more, which is greater than its others: so there is one way to each."""
    return np.int64(row_of(ways, (np.uint64(row) << UPPER) | np.uint64(node)))


@kernel
def append_nodes(ways: HashTable, rows: Indices, owners: Indices, nodes: Indices) -> None:
    """Put each node into the set of its owner, ascending for each; rows[owner]: the row of what it has."""
    for place in range(owners.size):
        rows[owners[place]] = with_next(ways, rows[owners[place]], nodes[place])


def numbered(ways: HashTable, rows: Indices) -> tuple[Indices, LoopSets]:
    """The number of the set of each of some rows in `ways`, in the order of the first of each; and these sets."""
    different, first, number = np.unique(np.append(EMPTY, rows), return_index=True, return_inverse=True)
    order = np.argsort(first)
    new = np.empty_like(order)
    new[order] = np.arange(len(order))
    firsts = np.zeros(len(order) + 1, np.int64)
    _measure(used_rows(ways), different[order], firsts)
    sets = LoopSets(firsts, np.empty(int(firsts[-1]), np.uint32))
    _list(used_rows(ways), different[order], sets)
    return new[number.reshape(-1)[1:]], sets


@kernel
def _measure(ways: NDArray[Any], rows: Indices, first: Indices) -> None:
    """Fill `first`, zeros, as :class:`LoopSets` says."""
    for number in range(rows.size):
        row = rows[number]
        first[number + 1] = first[number]
        while row != EMPTY:
            first[number + 1] += 1
            row = np.int64(ways[row].key >> UPPER)


@kernel
def _list(ways: NDArray[Any], rows: Indices, sets: LoopSets) -> None:
    """Fill ``sets.nodes``."""
    for number in range(rows.size):
        row, place = rows[number], sets.first[number + 1]
        while row != EMPTY:
            place -= 1
            sets.nodes[place] = ways[row].key & LOW
            row = np.int64(ways[row].key >> UPPER)
