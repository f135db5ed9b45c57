"""Makes the maps. Their cells live outside of Python's heap and go when the table's arrays go.

`key_words` are the 64-bit words of a key, `buffer` the insertions that wait until they are drained. They raise
ValueError if either is less than 1, or if the map has no values of that `dtype`.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracekit.containers.maps.exact import ROWS_ADDRESS, ROWS_SIZE
from tracekit.containers.maps.kinds import (
    ConstantTable,
    CountTable,
    FloatSumTable,
    MaxTable,
    MinTable,
    PairTable,
    SetTable,
    SumTable,
    Table,
)
from tracekit.containers.maps.table import ADDRESS, AHEAD, CONTROL, SIZE, release

BUFFER = 256
"""Insertions that wait in the buffer: 4 KB of the first-level cache for keys of one word."""

NO_LIMIT = 1 << 62

T = TypeVar("T", bound=Table)


def count_map(key_words: int = 1, buffer: int = BUFFER) -> CountTable:
    """A map from keys of `key_words` words to how often they were counted, int64."""
    return _table(CountTable, key_words, (np.int64(0),), buffer)


def sum_map(key_words: int = 1, dtype: DTypeLike = np.int64, buffer: int = BUFFER) -> SumTable | FloatSumTable:
    """A map to sums: int64 or uint64, modulo 2**64, or float64, exact and rounded once (600 bytes a key)."""
    if np.dtype(dtype) == np.float64:
        return _table(FloatSumTable, key_words, (np.float64(0),), buffer)
    return _table(SumTable, key_words, (_zero(dtype),), buffer)


def min_map(key_words: int = 1, dtype: DTypeLike = np.int64, buffer: int = BUFFER) -> MinTable:
    """A map to least values, int64 or uint64."""
    return _table(MinTable, key_words, (_zero(dtype),), buffer)


def max_map(key_words: int = 1, dtype: DTypeLike = np.int64, buffer: int = BUFFER) -> MaxTable:
    """A map to greatest values, int64 or uint64."""
    return _table(MaxTable, key_words, (_zero(dtype),), buffer)


def constant_map(key_words: int = 1, dtype: DTypeLike = np.uint64, buffer: int = BUFFER) -> ConstantTable:
    """A map to a value, int64 or uint64, if it was always the same."""
    return _table(ConstantTable, key_words, (_zero(dtype), np.uint64(0)), buffer)


def set_map(key_words: int = 1, limit: int | None = None, buffer: int = BUFFER) -> SetTable:
    """A map to sets of uint64; of a set with more than `limit` members only that is known."""
    return SetTable(
        _table(PairTable, key_words + 1, (), buffer),
        _table(CountTable, key_words, (np.int64(0),), 1),
        NO_LIMIT if limit is None else min(max(limit, 0), NO_LIMIT),
    )


def empty_like(table: Any) -> Any:
    """An empty map of the same kind."""
    if isinstance(table, SetTable):
        return SetTable(empty_like(table.pairs), empty_like(table.sizes), table.limit)
    width = len(table.key) + min(len(table.value), 1)
    return _table(type(table), len(table.key), table.value, table.buffer.size // width - AHEAD)


def _zero(dtype: DTypeLike) -> Any:
    """The 0 of int64 or uint64. Raises ValueError for any other type."""
    kind = np.dtype(dtype)
    if kind not in (np.int64, np.uint64):
        raise ValueError(f"the values of this map are int64 or uint64, not {kind}")
    return kind.type(0)


def _table(kind: type[T], key_words: int, value: tuple[Any, ...], buffer: int) -> T:
    if key_words < 1 or buffer < 1:
        raise ValueError("a map's keys have one word or more, its buffer holds one insertion or more")
    width = key_words + min(len(value), 1)
    room = np.zeros((buffer + AHEAD) * width, np.uint64)
    return kind(cells_control(), room, (np.uint64(0),) * key_words, value)


class _Cells:
    """Whose `control` array this is: when the last view of it goes, so does this, and then the cells."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.__array_interface__ = words.__array_interface__
        self.words = words


def cells_control() -> NDArray[np.uint64]:
    """The control array of an empty table; what memory it says it has goes with the last view of it."""
    words = np.zeros(CONTROL, np.uint64)
    cells = _Cells(words)
    weakref.finalize(cells, _release, words).atexit = False
    return np.asarray(cells)


def _release(words: NDArray[np.uint64]) -> None:
    if words[ADDRESS] or words[ROWS_ADDRESS]:
        release(words)


def nbytes(table: Any) -> int:
    """Memory of a map, in bytes."""
    if isinstance(table, SetTable):
        return nbytes(table.pairs) + nbytes(table.sizes)
    return int(table.buffer.nbytes + 8 * (CONTROL + int(table.control[SIZE]) + int(table.control[ROWS_SIZE])))
