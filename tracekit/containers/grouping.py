"""Grouping rows of arrays by the tuples in their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


def grouped(*columns: npt.NDArray[Any]) -> tuple[Indices, Indices]:
    """The different tuples of integers that rows of `columns` hold.

    Returns them sorted, as an array of shape (columns, tuples), and for each row the number of its tuple.
    """
    table = np.stack([column.astype(np.int64) for column in columns])
    order = _order(table)
    table = table[:, order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    group = np.empty(order.size, np.int64)
    group[order] = np.cumsum(new) - 1
    return table[:, new], group


def sorting_order(*columns: npt.NDArray[Any]) -> Indices:
    """The order of rows by `columns` of integers, the first the most significant; of equal rows in any order."""
    return _order(np.stack([column.astype(np.int64) for column in columns]))


def _order(table: Indices) -> Indices:
    keys = _packed(table)
    return np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])


def _packed(table: Indices) -> list[Indices]:
    """Fewer columns in the order of those of `table`, most significant first: sorting takes a time for each column."""
    if not table.shape[1]:
        return list(table)
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
    return keys


_MOST = 1 << 63
