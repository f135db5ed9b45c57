"""Distinct rows of a few columns of small numbers, without sorting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE

I8 = NDArray[np.int64]

MOST_PLACES = 1 << 24
"""A table of so many places is made; numbers beyond are sorted."""


def distinct(columns: Sequence[NDArray[Any]]) -> tuple[I8, I8]:
    """The rows that there are, int64 (rows, columns), ascending by the first column, then the next; and for each
    element of the columns, which are of one length, its row. Numbers are not negative.
    """
    rows = np.zeros((1, 0), np.int64)
    of = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, places = _numbered(column.astype(np.int64))
        pairs, of = _numbered(of * len(values) + places)
        rows = np.column_stack([rows[pairs // max(len(values), 1)], values[pairs % max(len(values), 1)]])
    return rows, of


def _numbered(column: I8) -> tuple[I8, I8]:
    """The distinct numbers, ascending, and the place of each element's among them. NONE is greater than all others."""
    is_none = column == NONE
    none = int(column.max(where=~is_none, initial=-1)) + 1
    if none >= MOST_PLACES:
        values, index = np.unique(column, return_inverse=True)
        return values, index.reshape(-1)
    column = np.where(is_none, none, column)
    there = np.zeros(none + 1, np.bool_)
    there[column] = True
    values = np.flatnonzero(there)
    places = np.cumsum(there) - 1
    return np.where(values == none, np.int64(NONE), values) if is_none.any() else values, places[column]
