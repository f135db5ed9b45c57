"""An open-addressing hash map from int64 keys to non-negative int64 values, without removal."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel

Int: TypeAlias = int | np.int64
"""An integer in a kernel."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(32)


class HashMap(NamedTuple):
    """``cells`` holds a key and its value plus one (0: free) side by side; their number is a power of two."""

    cells: NDArray[np.int64]
    used: NDArray[np.int64]  # one element


def hash_map(capacity: int) -> HashMap:
    """An empty map that holds at least `capacity` keys before it is full."""
    cells = 8
    while cells * 5 // 8 < capacity:
        cells *= 2
    return HashMap(np.zeros(2 * cells, np.int64), np.zeros(1, np.int64))


@inlined
def cell_of(cells: Any, key: Any) -> Any:
    """Index of the cell that holds `key`, or of the free cell where it belongs."""
    mask = cells.size - 2
    mixed = np.uint64(key) * GOLDEN
    mixed ^= mixed >> SHIFT
    cell = np.int64(mixed << np.uint64(1)) & mask
    while cells[cell + 1] != 0 and cells[cell] != key:
        cell = (cell + 2) & mask
    return cell


@inlined
def find(table: Any, key: Any) -> Any:
    """The value of `key`, or -1."""
    return table.cells[cell_of(table.cells, key) + 1] - 1


@inlined
def is_full(table: Any) -> Any:
    """Whether the map has to grow before the next `put`."""
    return table.used[0] * 16 >= table.cells.size * 5


@inlined
def put(table: Any, key: Any, value: Any) -> None:
    """Add `key`, which must not be there, to a map that is not full."""
    cell = cell_of(table.cells, key)
    table.cells[cell] = key
    table.cells[cell + 1] = value + 1
    table.used[0] += 1


@kernel
def rehash(old: HashMap, new: HashMap) -> None:
    """Copy every key of `old` into the empty map `new`."""
    for cell in range(0, old.cells.size, 2):
        if old.cells[cell + 1] != 0:
            put(new, old.cells[cell], old.cells[cell + 1] - 1)


def grown(old: HashMap) -> HashMap:
    """A map of twice the size with the same content."""
    new = HashMap(np.zeros(2 * old.cells.size, np.int64), np.zeros(1, np.int64))
    rehash(old, new)
    return new
