"""Rows found by a key of 64 bits, made when they are first asked for; there is no capacity to think of.

    row = row_of(table, key)        # 1, 2, ... in the order of their first use
    table.rows[row].count += 1      # zeros at first, but for the field `key`

The cells are those from number ``control[CELLS]`` (a power of two) up to twice that: when half are taken the next
region is filled, in address space that was reserved before. tracekit/containers/hash_table.py makes a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, limited
from tracekit.containers.kernels.prefetch import prefetch
from tracekit.jit.kernel import inlined, kernel

# Elements of HashTable.control; the first are those of an arena.
CELLS = 2  # how many cells there are
CONTROL = 3
"""How many there are."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@limited
class HashTable(NamedTuple):
    """Rows with a key; row 0 is none, or where writes go once the table is full. Open addressing, linear probing."""

    rows: NDArray[Any]  # with a field `key`, <u8
    cells: NDArray[np.uint32]  # the row of the key that a cell holds; 0: free
    control: NDArray[np.int64]  # (CONTROL)


@inlined
def row_of(table: Any, key: Any) -> Any:
    """The row (u8) of `key` (any integer, modulo 2**64), made if there is none; 0 if there is no room for it."""
    word = np.uint64(key)
    cell = cell_of(table.rows, table.cells, table.control[CELLS], word)
    row = np.uint64(table.cells[cell])
    if row == 0:
        row = np.uint64(make_row(table.rows.key, table.cells, table.control, word, cell))
    return row


@inlined
def has_row(table: Any, key: Any) -> Any:
    """Whether there is a row of `key` (any integer, modulo 2**64)."""
    return table.cells[cell_of(table.rows, table.cells, table.control[CELLS], np.uint64(key))] != 0


@inlined
def expect_cell(table: Any, key: Any) -> Any:
    """The row of `key` will soon be asked for: begin to bring the first cell where it may be into the caches."""
    prefetch(table.cells, _first_cell(table.control[CELLS], np.uint64(key)))


@inlined
def expect_row(table: Any, key: Any) -> Any:
    """As :func:`expect_cell`, when that cell has come: begin to bring the row."""
    prefetch(table.rows, table.cells[_first_cell(table.control[CELLS], np.uint64(key))])


@inlined
def _first_cell(count: Any, key: Any) -> Any:
    """The first cell (u8) where a key (u8) may be; `count`: control[CELLS]."""
    return np.uint64(count) + (((key * GOLDEN) >> np.uint64(32)) & np.uint64(count - 1))


@inlined
def find_or_make(table: Any, key: Any) -> Any:
    """The row of `key` (u8) as an int64, and whether it was made by this call."""
    cell = cell_of(table.rows, table.cells, table.control[CELLS], key)
    row = np.int64(table.cells[cell])
    is_new = row == 0
    if is_new:
        row = np.int64(make_row(table.rows.key, table.cells, table.control, key, cell))
    return row, is_new


@inlined
def cell_of(rows: Any, cells: Any, count: Any, key: Any) -> Any:
    """The cell (u8) of a key (u8), or the free one where it belongs; `count`: control[CELLS]."""
    mask = np.uint64(count - 1)
    place = ((key * GOLDEN) >> np.uint64(32)) & mask
    while cells[np.uint64(count) + place] != 0 and rows[cells[np.uint64(count) + place]].key != key:
        place = (place + np.uint64(1)) & mask
    return np.uint64(count) + place


@inlined
def _free_cell(cells: Any, count: Any, key: Any) -> Any:
    """The free cell (u8) where a key (u8) belongs that no cell holds: no key is compared; `count`: control[CELLS]."""
    mask = np.uint64(count - 1)
    place = ((key * GOLDEN) >> np.uint64(32)) & mask
    while cells[np.uint64(count) + place] != 0:
        place = (place + np.uint64(1)) & mask
    return np.uint64(count) + place


@kernel
def make_row(keys: Any, cells: Any, control: Any, key: Any, cell: Any) -> int:
    """Make the row of a key in a free cell; 0 if there is no room. keys: ``rows.key``, of one type for rows of any."""
    row = control[USED]
    if row >= keys.size or 4 * control[CELLS] > cells.size:
        control[EXHAUSTED] = 1
        return 0
    control[USED] = row + 1
    keys[row] = key
    cells[cell] = row
    if 2 * row > control[CELLS]:
        control[CELLS] *= 2
        for other in range(1, row + 1):
            cells[_free_cell(cells, control[CELLS], keys[other])] = other
    return int(row)
