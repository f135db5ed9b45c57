"""What ``camp`` and ``lamp`` find, as plain structured arrays: their row layouts and :class:`DependenceProfile`.

Verdicts, JSON and text are made from these arrays elsewhere. Importing this module does not import Numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ContextKind(IntEnum):
    """What a node of the context tree is (field ``kind`` of ``nodes``)."""

    ROOT = 0  # main, a constructor, a thread's or a handler's first function; lamp: the only context
    CALL = 1  # a call site, and the function that it entered
    LOOP = 2
    RECURSION = 3  # the call that enters a recursion: a leaf, and a level whose iterations are depths
    RECURSION_LOOP = 4  # a loop open inside a recursion leaf, at whatever depth


class DependenceKind(IntEnum):
    """Field ``kind`` of ``dependences``."""

    RAW = 0
    WAR = 1
    WAW = 2


class ObjectKind(IntEnum):
    """Field ``kind`` of ``objects``."""

    UNKNOWN = 0  # memory of no object that the trace knows; its site is NONE
    HEAP = 1
    STACK = 2
    GLOBAL = 3


LISTED_OBJECTS = 4
"""How many of its objects a dependence lists."""

NODE = np.dtype([
    ("parent", "<u4"),  # row of nodes; NONE at a root
    ("kind", "u1"),  # ContextKind
    ("function", "<u4"),  # the function whose code stands at this node: entered by a root or a call, around a loop
    ("loop", "<u4"),  # row of the program's loops, or NONE
    ("call", "<u4"),  # instruction of the call site, or NONE
    ("camp_id", "<i8"),  # -1: not foreseen by the static tree, or beyond 63 bits
    # The rest is of loops (LOOP, RECURSION_LOOP) and recursions; zero, external NONE, at other nodes.
    ("invocations", "<u8"),  # recursion: entries from outside
    ("iterations", "<u8"),  # without partial ones; recursion: activations of the recursive functions
    ("most_iterations", "<u8"),  # in one invocation
    ("least_iterations", "<u8"),  # in one invocation
    ("accesses", "<u8"),  # load and store events made while the node was open, callees included
    ("external", "<u4"),  # instruction of the first external call made inside, or NONE
])
DEPENDENCE = np.dtype([
    ("kind", "u1"),  # DependenceKind
    ("source", "<u4"),  # instruction
    ("source_node", "<u4"),  # row of nodes
    ("destination", "<u4"),
    ("destination_node", "<u4"),
    ("count", "<u8"),  # executions of the destination that have it in at least one byte
    ("first_object", "<u4"),  # row of objects: where it happened first
    ("objects", "<u4"),  # number of different objects (rows of objects) in which it happened
    ("object_list", "<u4", (LISTED_OBJECTS,)),  # the first of these in order of time, then NONE
])
LEVEL = np.dtype([
    ("dependence", "<u4"),  # row of dependences
    ("node", "<u4"),  # row of nodes: a loop or a recursion
    ("intra", "?"),
    ("inter", "?"),
    ("min_distance", "<u8"),  # iterations (recursion: depths) between the ends; 0 unless inter
    ("max_distance", "<u8"),
    ("carried", "<u8"),  # executions of the destination for which the level carries it
])
EXPOSED = np.dtype([
    ("instruction", "<u4"),  # the load
    ("node", "<u4"),  # its context, row of nodes
    ("level", "<u4"),  # row of nodes: the loop or recursion whose present iteration had not stored the byte
])
ACCESS = np.dtype([("instruction", "<u4"), ("node", "<u4"), ("count", "<u8")])
OBJECT = np.dtype([
    ("kind", "u1"),  # ObjectKind
    ("site", "<u4"),  # instruction of the allocation (heap, stack), row of the program's globals, or NONE
])

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
