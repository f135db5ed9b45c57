"""What ``camp`` and ``lamp`` find, as plain structured arrays: their row layouts and :class:`DependenceProfile`.

Verdicts, JSON and text are made from these arrays elsewhere. Importing this module does not import Numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import Indices
from tracekit.dependence.loop_sets import LoopSets


class DependenceKind(IntEnum):
    """Field ``kind`` of ``dependences``."""

    RAW = 0
    WAR = 1
    WAW = 2


LISTED_OBJECTS = 4
"""How many of its objects a dependence lists."""

DEPENDENCE = np.dtype(
    [
        ("kind", "u1"),  # DependenceKind
        ("source", "<u4"),  # instruction
        ("source_node", "<u4"),  # row of nodes
        ("destination", "<u4"),
        ("destination_node", "<u4"),
        ("count", "<u8"),  # executions of the destination that have it in at least one byte
        ("first_object", "<u4"),  # row of objects: where it happened first
        ("objects", "<u4"),  # number of different objects (rows of objects) in which it happened
        ("object_list", "<u4", (LISTED_OBJECTS,)),  # the first of these in order of time, then NONE
    ]
)
LEVEL = np.dtype(
    [
        ("dependence", "<u4"),  # row of dependences
        ("node", "<u4"),  # row of nodes: a loop or a recursion
        ("intra", "?"),
        ("inter", "?"),
        ("min_distance", "<u8"),  # iterations (recursion: depths) between the ends; 0 unless inter
        ("max_distance", "<u8"),
        ("carried", "<u8"),  # executions of the destination for which the level carries it
    ]
)
CARRIED = np.dtype([(name, LEVEL[name]) for name in ("dependence", "node", "min_distance", "max_distance", "carried")])
EXPOSED = np.dtype(
    [
        ("instruction", "<u4"),  # the load
        ("node", "<u4"),  # its context, row of nodes
        ("level", "<u4"),  # row of nodes: the loop or recursion whose present iteration had not stored the byte
    ]
)
ACCESS = np.dtype([("instruction", "<u4"), ("node", "<u4"), ("count", "<u8")])
OBJECT = np.dtype(
    [
        ("kind", "u1"),  # ObjectKind
        ("site", "<u4"),  # instruction of the allocation (heap, stack), row of the program's globals, or NONE
    ]
)

Rows = NDArray[Any]


class DependenceLevels(NamedTuple):
    """The levels that dependences are valid at: those that carry them, and those around both ends in one iteration."""

    carried: Rows  # CARRIED, by dependence and node: what LEVEL calls inter
    within: Indices  # of each dependence the number of the set of loops in an iteration of which both ends lay: intra
    sets: LoopSets

    @property
    def rows(self) -> Rows:
        """A row (LEVEL) for each level of each dependence, in order: many times as much as all else in a profile."""
        dependence, node = self.sets.of(self.within)
        intra = dependence.astype(np.int64) << 32 | node
        inter = self.carried["dependence"].astype(np.int64) << 32 | self.carried["node"]
        at = np.searchsorted(intra, inter)
        alone = np.append(intra, -1)[at] != inter
        keys = np.insert(intra, at[alone], inter[alone])
        rows = np.zeros(len(keys), LEVEL)
        rows["dependence"], rows["node"], rows["intra"] = keys >> 32, keys & 0xFFFF_FFFF, True
        at += np.cumsum(alone) - alone
        rows["intra"][at], rows["inter"][at] = ~alone, True
        for name in ("min_distance", "max_distance", "carried"):
            rows[name][at] = self.carried[name]
        return rows


@dataclass(frozen=True)
class DependenceProfile:
    """What one replay found; every table is a one-dimensional structured array of the dtype named for it, or its parts.

    Rows have a canonical order that does not depend on how batches were cut: ``nodes`` in pre-order with
    children by (kind, call, loop, function), the others by their fields from the left, ``objects`` by
    (kind, site). Indices between tables are row numbers.
    """

    nodes: Rows  # NODE
    dependences: Rows  # DEPENDENCE
    levels: DependenceLevels
    exposed: Rows  # EXPOSED
    accesses: Rows  # ACCESS
    objects: Rows  # OBJECT
    shadow_bytes: int  # memory that shadow and histories held at most, divided words counted as whole ones
