"""Levels of dependences that fall together, as one: where contexts are taken away, runs are merged, or a loop shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.dependence.profile import LEVEL, DependenceLevels
from tracekit.jit.kernel import kernel

Rows = npt.NDArray[Any]


class Renamed(NamedTuple):
    """Levels, and the new numbers of their dependences and nodes; -1: left out."""

    levels: DependenceLevels
    dependence: Indices
    node: Indices


def united_levels(parts: Sequence[Renamed]) -> tuple[Rows, Indices]:
    """Unite the levels of dependences that have one number, at nodes that have one.

    Returns the rows of the union (LEVEL), sorted by both, and for each row of ``carried`` of the parts, one behind the
    other, its row there, or -1.
    """
    around, carried = [_around(part) for part in parts], [_carried(part) for part in parts]
    dependence, node = (np.concatenate(columns) for columns in zip(*around, *carried))
    behind = sum(len(nodes) for _, nodes in around)
    place = np.full(node.size, -1, np.int64)
    chosen = np.flatnonzero((dependence >= 0) & (node >= 0))
    (dependences, nodes), place[chosen] = grouped(dependence[chosen], node[chosen])
    union = np.zeros(dependences.size, LEVEL)
    union["dependence"], union["node"] = dependences, nodes
    union["intra"][place[:behind]] = True
    _unite(np.concatenate([part.levels.carried for part in parts]), place[behind:], union)
    return union, place[behind:]


def _around(part: Renamed) -> tuple[Indices, Indices]:
    """The loops around both ends of the dependences of each number: of those that have one set of loops once.

    These are few where many dependences fall together.
    """
    number_of, sets = part.levels.sets.renamed(part.node)
    chosen = part.dependence >= 0
    (dependence, within), _ = grouped(part.dependence[chosen], number_of[part.levels.within[chosen]])
    owners, nodes = sets.of(within)
    return dependence[owners], nodes.astype(np.int64)


def _carried(part: Renamed) -> tuple[Indices, Indices]:
    """The numbers of what is carried, and where."""
    carried = part.levels.carried
    return part.dependence[carried["dependence"]], part.node[carried["node"]]


@kernel
def _unite(carried: Rows, place: Indices, union: Rows) -> None:
    """Enter in `union` (LEVEL) the extremes of distances, the sums of what levels carry; place: -1 of what is left out.

    numpy takes ten times as long, for the rows of the tables are not aligned.
    """
    for number in range(carried.size):
        if place[number] >= 0:
            level, united = carried[np.uint64(number)], union[np.uint64(place[number])]
            united.carried += level.carried
            if not united.inter or level.min_distance < united.min_distance:
                united.min_distance = level.min_distance
            united.max_distance = max(united.max_distance, level.max_distance)
            united.inter = True
