"""What ``camp`` and ``lamp`` find, as plain structured arrays: their row layouts and :class:`DependenceProfile`.

Verdicts, JSON and text are made from these arrays elsewhere. Importing this module does not import Numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


@dataclass(frozen=True)
class DependenceProfile:
    """What one replay found; every table is a one-dimensional structured array of the dtype named for it.

    Rows have a canonical order that does not depend on how batches were cut: ``nodes`` in pre-order with
    children by (kind, call, loop, function), the others by their fields from the left, ``objects`` by
    (kind, site). Indices between tables are row numbers.
    """

    nodes: Rows  # NODE
    dependences: Rows  # DEPENDENCE
    levels: Rows  # LEVEL
    exposed: Rows  # EXPOSED
    accesses: Rows  # ACCESS
    objects: Rows  # OBJECT
    shadow_bytes: int  # memory that shadow and histories held at most, divided words counted as whole ones
