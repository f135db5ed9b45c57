"""Levels of dependences that fall together, as one: where contexts are taken away, runs are merged, or a loop shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.dependence.profile import LEVEL
from tracekit.jit.kernel import kernel

Rows = npt.NDArray[Any]


def united_levels(levels: Rows, dependence: Indices, node: Indices) -> tuple[Rows, Indices]:
    """Unite the rows of `levels` (LEVEL) that have one `dependence` and one `node`, given for each row, -1: left out.

    Returns the rows of the union (LEVEL), sorted by both, and for each row of `levels` its row there, or -1.
    """
    place = np.full(levels.size, -1, np.int64)
    chosen = np.flatnonzero(node >= 0)
    if chosen.size < levels.size:
        dependence, node = dependence[chosen], node[chosen]
    (dependences, nodes), place[chosen] = grouped(dependence, node)
    union = np.zeros(dependences.size, LEVEL)
    union["dependence"], union["node"] = dependences, nodes
    _unite(levels, place, union)
    return union, place


@kernel
def _unite(levels: Rows, place: Indices, union: Rows) -> None:
    """Fill `union` (zeros but for its keys): or flags, extremes of distances, sums of what levels carry.

    numpy takes ten times as long, for the rows of the tables are not aligned.
    """
    for number in range(levels.size):
        if place[number] < 0:
            continue
        level, united = levels[np.uint64(number)], union[np.uint64(place[number])]
        united.carried += level.carried
        united.intra |= level.intra
        if level.inter:
            if not united.inter or level.min_distance < united.min_distance:
                united.min_distance = level.min_distance
            united.max_distance = max(united.max_distance, level.max_distance)
            united.inter = True
