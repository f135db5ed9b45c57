"""Grouping rows of arrays by the tuples in their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


def grouped(*columns: npt.NDArray[Any]) -> tuple[Indices, Indices]:
    """The different tuples of integers that rows of `columns` hold.

    Returns them sorted, as an array of shape (columns, tuples), and for each row the number of its tuple.
    """
    keys, room = _packed(columns)
    rows = len(columns[0])
    if len(keys) == 1 and rows <= room:
        (ordered,) = keys
        bits = _number(ordered)
        ordered.sort()
        order = ordered & ((1 << bits) - 1)
        ordered >>= bits
        new = _differs(ordered)
    else:
        order = _order(keys, room)
        new = np.zeros(rows, np.bool_)
        for key in keys:
            new |= _differs(key[order])
    group = np.empty(rows, np.int64)
    group[order] = np.cumsum(new) - 1
    first = order[new]
    return np.stack([column[first].astype(np.int64) for column in columns]), group


def sorting_order(*columns: npt.NDArray[Any]) -> Indices:
    """The order of rows by `columns` of integers, the first the most significant; of equal rows in any order."""
    return _order(*_packed(columns))


def _differs(ordered: Indices) -> npt.NDArray[np.bool_]:
    """Which numbers are not that before them."""
    new = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _order(keys: list[Indices], room: int) -> Indices:
    """The order by keys of :func:`_packed`, which it may use up."""
    if len(keys) > 1:
        return np.lexsort(keys[::-1])
    (key,) = keys
    if key.size > room:
        return np.argsort(key)
    bits = _number(key)
    key.sort()
    key &= (1 << bits) - 1
    return key


def _number(key: Indices) -> int:
    """Put the number of its row into each key's lowest bits, and return how many these are.

    Numbers are sorted several times as fast as by an order of them.
    """
    bits = max(key.size - 1, 0).bit_length()
    key <<= bits
    key |= np.arange(key.size)
    return bits


def _packed(columns: Sequence[npt.NDArray[Any]]) -> tuple[list[Indices], int]:
    """Fewer columns in the order of `columns`, most significant first: sorting takes a time for each column.

    Of a single one also by what power of two, at most, it may be multiplied.
    """
    keys: list[Indices] = []
    room = 0  # by what the last of `keys` may still be multiplied
    for column in columns:
        if column.dtype == np.uint64:  # of which numpy makes fractions beside a signed one
            column = column.astype(np.int64)
        least, greatest = (int(end) for end in (column.min(), column.max())) if column.size else (0, 0)
        values = greatest - least + 1
        if values <= room:
            keys[-1] *= values
            keys[-1] += column
            keys[-1] -= least
            room //= values
        else:
            keys.append(column.astype(np.int64))
            keys[-1] -= least if values <= _MOST else 0
            room = _MOST // values
    return keys, 1 << max(room.bit_length() - 1, 0)


_MOST = 1 << 63
