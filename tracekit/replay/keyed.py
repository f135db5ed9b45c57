"""Makes the tables of kernels/keyed.py: rows of any metadata, found by a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.replay import arena
from tracekit.replay.kernels.keyed import Keyed

CELLS = 8
"""Cells reserved for a row: each time they are doubled, the new ones lie behind the old."""


def keyed(fields: Sequence[tuple[Any, ...]], rows: int = 1 << 28, beside: int = 0, parts: int = 1) -> Keyed:
    """An empty table of rows with these `fields` and their key, at most `rows` of them.

    `beside` and `parts` are those of an arena.
    """
    row = np.dtype([("key", "<u8"), *fields])
    made = arena.arena(row, rows, spare=8, beside=4 * CELLS + beside, parts=parts)  # enough for the first 16 cells
    return Keyed(made.rows, arena.reserve("u4", CELLS * len(made.rows), 1 << 10), np.array([1, 0, 16], np.int64))


def used_rows(table: Keyed) -> npt.NDArray[Any]:
    """The rows made so far; row 0 is none of them."""
    return table.rows[: table.control[arena.USED]]
