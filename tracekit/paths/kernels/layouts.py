"""The layouts that the kernels of path profiles work on.

A *segment* is the part of a record that lies on one path: all of its blocks, unless a back edge stands between two. A
*row* of the table of paths stands for a segment that followed another one on a path. Its key is the row before, 0 at
the beginning of a path, in the upper half, and the segment in the lower. So the rows are a tree: the way from a row
up to the root is a path from its beginning on, and counting a record is one look into a hash table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable

RECORD = np.dtype(
    [
        ("accesses", "i8"),  # of its first segment, as there
        ("words", "u4"),
        ("function", "u4"),
        ("continues", "u4"),  # the open call that its first block continues, or NONE
        ("call", "u4"),  # the open call after it, or NONE
        ("segment", "u4"),  # its first segment
        ("segments", "u4"),
        ("flags", "u4"),
        ("landing_word", "u4"),  # which of its words names the activation that control landed in, or NONE
        ("frame_word", "u4"),  # which of its words names its activation, or NONE
    ],
    align=True,
)
"""A record id: of a path, or of an event."""
# Flags of a record.
ENTERS = 1  # it begins an activation
LANDS = 2  # control may arrive at it by unwinding
RETURNS = 4
TAIL = 8  # it ends with a tail call
CLOSED = 16  # which cannot enter instrumented code
RUN = 32  # its word is a number of iterations
SILENT = 64  # its iterations have records of their own
DYNAMIC = 128  # the sizes of some of its accesses are words
EVENT = 256  # it is a recorded event

SEGMENT = np.dtype(
    [
        ("first", "u4"),  # of its run of blocks in `members`
        ("blocks", "u4"),
        ("accesses", "i8"),  # loads and stores of a size that is known
        ("dynamic", "u4"),  # first of a run of accesses of other sizes
        ("dynamics", "u4"),
    ],
    align=True,
)

SIZED = np.dtype([("word", "u4"), ("loads", "u4"), ("stores", "u4")], align=True)
"""An operation whose size is a word of the record, and the loads and stores that it makes if that is not 0."""

BLOCK = np.dtype([("loop", "u4"), ("header", "u4")], align=True)
"""A block: the innermost loop around it, or NONE; 1 if it is that loop's header."""

ROW = [
    ("count", "<i8"),
    ("next", "<u4"),  # the row that the path goes on from
    ("kind", "<u4"),  # one of those below, and the number of rows above it on its path
    ("inner", "<i8"),  # accesses of functions called
    ("loads", "<i8"),
    ("stores", "<i8"),
    ("bytes", "<i8"),
    ("below", "<i8"),  # of a row that begins activations: accesses in them and in what they called, once in recursion
]
"""What the key of a row leads to. The sums of `inner` to `bytes` are of paths that ended here; loads, stores and bytes
are those that the path itself does not tell: of dynamic size, or made by library functions.
"""
# Kinds of rows.
GOES_ON = 0  # the path goes on with the segment; `next` is the row itself
BEGINS = 1  # a path begins with it; `next` is the row itself
BACK = 2  # the path before has ended, by a back edge; `next` is the row with which the new one begins
CALLS = 3  # the path before calls a function that begins with the segment; `next` likewise
KIND = 3
DEPTH = 2
"""The bits that a kind takes."""

FRAME = np.dtype(
    [
        ("function", "u4"),  # NONE at the bottom of a signal handler's run
        ("pending", "u4"),  # the open call, or NONE
        ("row", "u4"),  # where its path is, 0 before the first record
        ("site", "u4"),  # of a frame that made a tail call: where its path was
        ("entry", "u4"),  # the row that counted its beginning
        ("tail", "u4"),  # 1 if it made a tail call, 2 if that cannot enter instrumented code
        ("address", "u8"),  # that names the activation
        ("begun", "i8"),  # accesses of the stream before it
        ("inner", "i8"),  # of its path so far, as in a row
        ("loads", "i8"),
        ("stores", "i8"),
        ("bytes", "i8"),
    ],
    align=True,
)
"""An activation."""

# Elements of Stream.scalars.
TOP = 0  # the top frame, -1 if there is none
ACCESSES = 1  # loads and stores so far
BROKEN = 2  # records that broke the rules
LOADS = 3  # of library functions while no instrumented function was running
STORES = 4
BYTES = 5
PASSED = 6  # path records that belong to no activation
SCALARS = 8
"""How many there are."""


class Walked(NamedTuple):
    """The program as the kernels need it."""

    records: NDArray[Any]  # RECORD by record id
    segments: NDArray[Any]  # SEGMENT
    sized: NDArray[Any]  # SIZED
    members: NDArray[np.uint32]  # blocks
    blocks: NDArray[Any]  # BLOCK
    parents: NDArray[np.uint32]  # of each loop the one around it, or NONE


class Stream(NamedTuple):
    """The stack of one stream."""

    frames: NDArray[Any]  # FRAME
    active: NDArray[np.int64]  # by function: how many of its activations there are
    scalars: NDArray[np.int64]


class Counted(NamedTuple):
    """What was counted."""

    rows: HashTable
    most: NDArray[np.int64]  # (1): rows from which on no path becomes longer
