"""What is known of a dependence: how often, and how far apart its ends were in each loop that was open at both.

Rows are found by keys (keyed.py): an access (instruction, context), a dependence (kind, source, destination), the
dependence at a level, and a distance there. A destination's last dependences stand in ``recent``, in front of the map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.contexts import DEPTH, LEAF_LEVEL, STREAM_BITS
from tracekit.replay.kernels.keyed import Keyed, row_of
from tracekit.replay.kernels.levels import iteration_at, shared_levels

RAW, WAR, WAW = range(3)
RECENT = 4
"""Dependences of a destination that are found at once."""

ACCESS_FIELDS = [("depth", "<i4"), ("printed", "<u4")]  # depth of recursion; the access that a profile shows
DEPENDENCE_FIELDS = [
    ("execution", "<i8"),  # the last that had it
    ("count", "<i8"),
    ("mark", "<i8"),  # levels whose invocation began until this clock, and that are open still, are marked as intra
    ("node", "<i4"),  # of the level where it was carried last, and its row
    ("carried", "<u4"),
]
LEVEL_FIELDS = [
    ("intra", "<i4"), ("inter", "<i4"),
    ("least", "<i8"), ("greatest", "<i8"),  # distances
    ("stamp", "<i8"), ("iteration", "<i8"), ("invocation", "<i8"),  # that iteration ran at that clock
    ("execution", "<i8"),  # the last that was counted in the histogram
    ("distance", "<i8"), ("times", "<i8"),  # counted there `times` in sequence, not yet entered
]
DISTANCE_BITS = 40


class Relations(NamedTuple):
    """All dependences of a module. The key of a row: see ``access_of``, ``relate``, ``_level_row``, ``_count``."""

    accesses: Keyed
    dependences: Keyed
    levels: Keyed
    distances: Keyed
    recent: NDArray[np.uint64]  # [destination * RECENT + way]: kind, source, row


@inlined
def access_of(relations: Any, instruction: Any, context: Any, printed: Any, depth: Any) -> Any:
    """The number of an instruction in a context; `printed` is the context that a profile shows."""
    row = row_of(relations.accesses, ((instruction & 0xFFFFFFFF) << 32) | context)
    access = relations.accesses.rows[row]
    if access.printed == 0:
        access.depth = depth
        access.printed = row_of(relations.accesses, ((instruction & 0xFFFFFFFF) << 32) | printed)
    return np.int64(row)


@inlined
def relate(relations: Any, kind: Any, source: Any, destination: Any, execution: Any) -> Any:
    """The row of a dependence between two accesses, counted once for each execution of the destination."""
    wanted = np.uint64((kind << 30) | source)
    way = np.uint64(destination * RECENT + ((source ^ kind) & (RECENT - 1)))
    found = relations.recent[way]
    row = found & np.uint64(0xFFFFFFFF)
    if found >> np.uint64(32) != wanted or row == 0:
        row = np.uint64(row_of(relations.dependences, (kind << 60) | (source << 30) | destination))
        relations.recent[way] = (wanted << np.uint64(32)) | row
    dependence = relations.dependences.rows[row]
    if dependence.execution != execution:
        dependence.execution = execution
        dependence.count += 1
    return row


@inlined
def place(relations: Any, levels: Any, row: Any, stamp: Any, depth: Any, execution: Any, histogram: Any) -> None:
    """Say in which open loops the source, at clock `stamp` and recursion depth `depth`, was in the same iteration."""
    shared = np.int64(shared_levels(levels, stamp, depth))
    dependence = relations.dependences.rows[row]
    intra = shared >> 1
    if intra > 0:
        begun = levels.levels[intra - 1].invocation
        if dependence.mark < begun or (dependence.mark ^ begun) >> STREAM_BITS != 0:
            _mark(relations.dependences.rows, relations.levels, levels.levels, row, intra)
    if shared & 1:
        level = levels.levels[intra]
        if dependence.node != level.node + 1:
            dependence.node = level.node + 1
            dependence.carried = _level_row(relations.levels, row, level.node)
        carried = relations.levels.rows[dependence.carried]
        if intra == levels.control[LEAF_LEVEL]:
            distance = abs(levels.control[DEPTH] - depth)
        else:
            if carried.stamp != stamp or carried.invocation != level.invocation:
                carried.stamp = stamp
                carried.invocation = level.invocation
                carried.iteration = iteration_at(levels, intra, stamp)
            distance = level.iteration - carried.iteration
        if carried.inter == 0:
            carried.inter = 1
            carried.least = distance
        carried.least = min(carried.least, distance)
        carried.greatest = max(carried.greatest, distance)
        if histogram and carried.execution != execution:
            carried.execution = execution
            if carried.distance != distance:
                _count(relations.levels.rows, relations.distances, dependence.carried)
                carried.distance = distance
            carried.times += 1


@inlined
def _level_row(table: Any, dependence: Any, node: Any) -> Any:
    return row_of(table, (np.int64(dependence) << 32) | np.int64(node))


@kernel
def _mark(dependences: Any, table: Keyed, levels: Any, row: Any, intra: Any) -> None:
    """The outermost `intra` levels are in one iteration; those that were marked before are skipped."""
    mark, innermost = dependences[row].mark, levels[intra - 1].invocation
    if (mark ^ innermost) >> STREAM_BITS != 0:
        mark = 0
    for level in range(intra - 1, -1, -1):
        if levels[level].invocation <= mark:
            break
        table.rows[_level_row(table, row, levels[level].node)].intra = 1
    dependences[row].mark = innermost


@kernel
def _count(levels: Any, distances: Keyed, row: Any) -> None:
    """Enter what a level counted of one distance into the histogram."""
    level = levels[row]
    if level.times > 0:
        found = row_of(distances, (np.int64(row) << DISTANCE_BITS) | level.distance)
        distances.rows[found].times += level.times
        level.times = 0


@kernel
def count_all(relations: Relations, levels: Any) -> None:
    """Enter what all levels have counted so far."""
    for row in range(1, levels):
        _count(relations.levels.rows, relations.distances, row)
