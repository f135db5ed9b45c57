"""Bytes that operations of several sizes take together or apart: the parts that they have in common.

A part is a row of a hash table with the field `size`, so many bytes behind its key, the address of the first; rows of
other keys may be there, too. What else a row says holds for each byte of it, so whoever splits a part copies that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import CELLS, cell_of, row_of
from tracekit.formats.event_values import AtomicOrder
from tracekit.jit.kernel import inlined, kernel

SIZE = int(AtomicOrder.SIZE)
LOG_LARGEST = 4
LARGEST = 1 << LOG_LARGEST
"""Bytes of the largest atomic operation."""


@inlined
def size_of(order: Any) -> Any:
    """How many bytes an atomic operation is of; 1 if that is not known, of older recorders."""
    magnitude: Any = np.int64(order) // SIZE - 1
    return np.int64(1) << min(max(magnitude, 0), LOG_LARGEST)


@kernel
def split(table: Any, place: Any) -> tuple[Any, Any]:
    """Let a part end at a place in the middle of it. Returns its row and that of the rest; zeros if there is none.

    table: a hash table by address, as above; what else the row says the caller copies.
    """
    for before in range(1, LARGEST):
        number = part_at(table, place - before)
        part = table.rows[number]
        if number != 0 and part.size > before:
            rest = np.int64(row_of(table, place))
            table.rows[rest].size, part.size = part.size - before, before
            return number, rest
    return np.int64(0), np.int64(0)


@kernel
def fill(table: Any, begin: Any, end: Any) -> None:
    """Each of the bytes begin .. end - 1 becomes part of a row: of a new one if it is of none. table: as above."""
    place = begin
    while place < end:
        part = table.rows[row_of(table, place)]
        if part.size == 0:
            part.size = 1
            while place + part.size < end and part_at(table, place + part.size) == 0:
                part.size += 1
        place += part.size


@inlined
def part_at(table: Any, place: Any) -> Any:
    """The row whose bytes begin there; 0 if none does."""
    row = np.int64(table.cells[cell_of(table.rows, table.cells, table.control[CELLS], np.uint64(place))])
    return row if table.rows[row].size != 0 else np.int64(0)
