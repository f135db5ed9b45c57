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
    order = np.lexsort(table[::-1])
    table = table[:, order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    group = np.empty(order.size, np.int64)
    group[order] = np.cumsum(new) - 1
    return table[:, new], group
