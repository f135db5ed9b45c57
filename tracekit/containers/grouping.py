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
    table = _table(columns)
    keys, room = _packed(table)
    order = _order(keys, room)
    new = np.zeros(order.size, np.bool_)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    group = np.empty(order.size, np.int64)
    group[order] = np.cumsum(new) - 1
    return table[:, order[new]], group


def sorting_order(*columns: npt.NDArray[Any]) -> Indices:
    """The order of rows by `columns` of integers, the first the most significant; of equal rows in any order."""
    return _order(*_packed(_table(columns)))


def _table(columns: Sequence[npt.NDArray[Any]]) -> Indices:
    table = np.empty((len(columns), len(columns[0])), np.int64)
    for row, column in zip(table, columns):
        row[:] = column
    return table


def _order(keys: list[Indices], room: int) -> Indices:
    """The order by keys of :func:`_packed`. Numbers are sorted several times as fast as by an order of them."""
    rows = len(keys[0])
    if len(keys) > 1:
        return np.lexsort(keys[::-1])
    if rows <= room:
        bits = (rows - 1).bit_length()
        numbered = (keys[0] << bits) | np.arange(rows)
        numbered.sort()
        return numbered & ((1 << bits) - 1)
    return np.argsort(keys[0])


def _packed(table: Indices) -> tuple[list[Indices], int]:
    """Fewer columns in the order of those of `table`, most significant first: sorting takes a time for each column.

    Of a single one also by what power of two, at most, it may be multiplied.
    """
    if not table.shape[1]:
        return list(table), 0
    keys: list[Indices] = []
    room = 0  # by what the last of `keys` may still be multiplied
    for column, least, greatest in zip(table, table.min(axis=1).tolist(), table.max(axis=1).tolist()):
        values = greatest - least + 1
        if values <= room:
            keys[-1] = keys[-1] * values + (column - least)
            room //= values
        else:
            keys.append(column - least if greatest - least < _MOST else column)
            room = _MOST // values
    return keys, 1 << max(room.bit_length() - 1, 0)


_MOST = 1 << 63
