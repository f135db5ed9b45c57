"""Makes the tables of kernels/hash_table.py: rows of any metadata, found by a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.containers import arena
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import CELLS as CELLS_NOW
from tracekit.containers.kernels.hash_table import HashTable

CELLS = 8
"""Cells reserved for a row: each time they are doubled, the new ones lie behind the old."""


def hash_table(fields: Sequence[tuple[Any, ...]], rows: int = 1 << 28, beside: int = 0, parts: int = 1) -> HashTable:
    """An empty table of rows with these `fields` (of a dtype) and their key (u8), at most `rows` of them.

    `beside` and `parts` are those of :func:`arena.arena`. Raises TracekitError if the system gives no address space.
    """
    row = np.dtype([("key", "<u8"), *fields])
    # Eight spare rows are enough for the first 16 cells.
    made = arena.arena(row, rows, spare=8, beside=4 * CELLS + beside, parts=parts, dense=True)
    cells = arena.reserve("u4", CELLS * len(made.rows), 1 << 10, dense=True)
    return HashTable(made.rows, cells, np.array([1, 0, 16], np.int64))


def copied_table(table: HashTable, rows: int = 1 << 28, beside: int = 0, parts: int = 1) -> HashTable:
    """A copy of a table, which grows independently; `rows`, `beside` and `parts` as it was made with."""
    fields = [(name, *kind) for name, *kind in table.rows.dtype.descr if name != "key"]
    copy = hash_table(fields, rows, beside, parts)
    used, cells = int(table.control[USED]), int(table.control[CELLS_NOW])
    copy.rows[:used] = table.rows[:used]
    copy.cells[cells : 2 * cells] = table.cells[cells : 2 * cells]
    copy.control[:] = table.control
    return copy


def used_rows(table: HashTable) -> npt.NDArray[Any]:
    """The rows made so far, a view; the first, number 0, is none of them."""
    return table.rows[: table.control[USED]]


Join = Callable[[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[Any]], None]
"""Folds values into rows: (target, for each value the element of the target that it is for, values)."""


def united_table(tables: Sequence[HashTable], join: Mapping[str, Join]) -> HashTable:
    """The rows of all tables, one for each key, ascending; it cannot grow.

    join: column -> what folds its values, in the order of the tables; other columns are 0.
    """
    rows = np.concatenate([used_rows(table)[1:] for table in tables])
    keys, at = np.unique(rows["key"], return_inverse=True)
    made = np.zeros(len(keys) + 1, rows.dtype)
    made["key"][1:] = keys
    for name, fold in join.items():
        fold(made[name][1:], at.reshape(-1), rows[name])
    return HashTable(made, np.zeros(0, np.uint32), np.array([len(made), 0, 0], np.int64))
