"""The tables that the dependence kernels work on, and the statuses by which they ask for room."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE
from tracekit.replay.kernels.contexts import Contexts
from tracekit.replay.kernels.hashmap import HashMap
from tracekit.replay.kernels.objects import Objects
from tracekit.replay.kernels.shadow import Shadow

RAW, WAR, WAW = 0, 1, 2

INSTRUCTION = np.dtype([
    ("context", "<i4"), ("access", "<u4"),  # the context of its latest access, and that access
    ("updates", "<i4"),  # 1 if one execution may both load and store: atomic, copy, library call
    ("reserved", "<i4"),
])
ACCESS = np.dtype([
    ("count", "<i8"),
    ("instruction", "<i4"),
    ("context", "<i4"),
    ("printed", "<u4"),  # the access of this instruction in the node that a profile shows
    ("depth", "<i4"),  # of the recursion
    ("exposed_from", "<i8"),  # its loads are known to be exposed at all levels that are still open
    ("exposed_to", "<i8"),  # and whose invocation began in exposed_from .. exposed_to
    ("seen_tag", "<i8"),  # scratch of history.py
    ("seen_entry", "<u4"),
    ("reserved", "<i4"),
])
"""An instruction in a context. Row 0 is not used."""

DEPENDENCE = np.dtype([
    ("count", "<i8"),
    ("execution", "<i8"),  # the last execution of the destination that was counted
    ("mark", "<i8"),  # intra is known at all levels that are still open and whose invocation began until then
    ("identity", "<i8"),  # of the object of the last execution, or -1
    ("kind", "<i4"),
    ("source", "<u4"),  # printed accesses
    ("destination", "<u4"),
    ("inter_node", "<i4"),  # the last level that carried it, and its row
    ("inter_row", "<u4"),
    ("objects", "<i4"),
    ("object_0", "<i4"), ("object_1", "<i4"), ("object_2", "<i4"), ("object_3", "<i4"),
])
LEVEL_ROW = np.dtype([
    ("dependence", "<i4"), ("node", "<i4"), ("intra", "<i4"), ("inter", "<i4"),
    ("least", "<i8"), ("greatest", "<i8"),
    ("known", "<i8"), ("known_iteration", "<i8"),  # a clock of the past, and the level's iteration at it
    ("known_invocation", "<i8"),  # and the level's invocation, for its node may be open more than once
])
PENDING = np.dtype([("stream", "<i4"), ("access", "<i4"), ("start", "<i8"), ("end", "<i8")])
"""Bytes loaded by the execution that is under way, not in the history yet: it does not depend on itself."""

RECENT = 8  # pairs per access: one cache line

# Elements of Engine.control
ACCESSES, DEPENDENCES, LEVEL_ROWS, EXECUTIONS, PENDINGS = range(5)
CONTROL = 5


class Engine(NamedTuple):
    """Everything that the streams share."""

    contexts: Contexts
    shadow: Shadow
    objects: Objects
    instructions: NDArray[Any]  # INSTRUCTION; the last row stands for the instruction NONE
    accesses: NDArray[Any]  # ACCESS
    access_index: HashMap  # instruction << 32 | context -> row of accesses
    recent: NDArray[np.uint32]  # RECENT pairs per access: a source and their dependence, see relations.py
    dependences: NDArray[Any]  # DEPENDENCE
    dependence_index: HashMap  # kind << 62 | source << 31 | destination -> row
    level_rows: NDArray[Any]  # LEVEL_ROW
    level_index: HashMap  # dependence << 32 | node -> row
    exposed: HashMap  # access << 32 | node -> 0
    dependence_objects: HashMap  # dependence << 32 | identity -> 0
    identities: HashMap  # kind << 32 | site -> identity; identity 0 is unknown memory
    pending: NDArray[Any]  # PENDING
    control: NDArray[np.int64]


# Statuses of `consume`: which table has to grow. Those of the parts follow their first.
OK = 0
SHADOW, CONTEXTS, OBJECTS = 100, 200, 300
NO_ACCESSES, NO_DEPENDENCES, NO_LEVEL_ROWS, NO_EXPOSED, NO_DEPENDENCE_OBJECTS, NO_IDENTITIES, NO_PENDING = range(1, 8)
TOO_LARGE = 8  # an event of more bytes than any program has: the trace is damaged

LARGEST = 1 << 40
LOAD, STORE = CODE["load"], CODE["store"]
HEAP_ALLOC, HEAP_FREE = CODE["heap_alloc"], CODE["heap_free"]
STACK_ALLOC, STACK_FREE, GLOBAL_INIT = CODE["stack_alloc"], CODE["stack_free"], CODE["global_init"]
FUNCTION_ENTRY, FUNCTION_EXIT = CODE["function_entry"], CODE["function_exit"]
LOOP_INVOCATION, LOOP_ITERATION, LOOP_EXIT = CODE["loop_invocation"], CODE["loop_iteration"], CODE["loop_exit"]
EXTERNAL_CALL = CODE["external_call"]
