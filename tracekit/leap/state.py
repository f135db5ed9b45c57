"""Makes the tables of LEAP's kernels."""

from __future__ import annotations

import numpy as np

from tracekit.containers.arena import arena
from tracekit.containers.hash_table import hash_table
from tracekit.leap.kernels.compressor import LINE, POINT, STREAM, Descriptors
from tracekit.leap.kernels.exact import LAST, PAIR, STORED, Exact


def no_streams(instructions: int) -> Descriptors:
    """No stream; `instructions` that there are."""
    return Descriptors(
        hash_table(STREAM, 1 << 28),
        arena(POINT, 1 << 31),
        arena(LINE, 1 << 31),
        np.zeros(2 * (instructions + 1), np.uint64),
    )


def nothing_exact(instructions: int) -> Exact:
    """The tables of an exact comparison before the first access; `instructions`: how many the program has."""
    return Exact(
        hash_table([], 1 << 27),
        hash_table([("first", "<u4")]),
        arena(STORED, 1 << 31, spare=1),
        hash_table(PAIR),
        np.zeros(2 * (instructions + 1), LAST),
        hash_table([("count", "<i8")]),
        np.zeros(1, np.int64),
    )
