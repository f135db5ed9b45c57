"""Rows as NumPy columns, which DuckDB reads without a call for each cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.query.schema import Column, Row

BATCH = 1 << 16
"""Rows that are put into a table at once."""

_INTEGERS = (-(1 << 63), (1 << 63) - 1)

_DTYPES: Mapping[str, Any] = {"BIGINT": np.int64, "DOUBLE": np.float64, "BOOLEAN": np.bool_}


def batches(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """Rows in lists of BATCH at most."""
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def as_arrays(columns: Sequence[Column], rows: Sequence[Row]) -> dict[str, npt.NDArray[Any]]:
    """A masked array for each column of numbers and truth values, one of objects for words; lists are JSON there."""
    cells = list(zip(*rows)) if rows else [()] * len(columns)
    return {column.name: _array(column.type, values) for column, values in zip(columns, cells)}


def expression(column: Column) -> str:
    """How a column of :func:`as_arrays` becomes one of its type in SQL."""
    return quoted(column.name) + ("::JSON" if column.type.endswith("[]") else "") + f"::{column.type}"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _array(type_: str, values: Sequence[Any]) -> npt.NDArray[Any]:
    dtype = _DTYPES.get(type_)
    if dtype is not None:
        mask = np.array([value is None for value in values], np.bool_)
        plain = np.array([0 if value is None else value for value in values], dtype)
        return np.ma.masked_array(plain, mask)
    made = np.empty(len(values), object)
    made[:] = values if type_ == "VARCHAR" else [None if value is None else _JSON(value) for value in values]
    return made


_JSON = json.JSONEncoder(ensure_ascii=False).encode


def guessed(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Columns for any JSON rows: numbers and truth values where all cells are such, words where all are, else JSON."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update([] if value is None else [_kind(value)])
    return [Column(name, _type(found), "") for name, found in kinds.items()]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if _INTEGERS[0] <= value <= _INTEGERS[1] else "HUGEINT"
    if isinstance(value, float):
        return "DOUBLE"
    return "VARCHAR" if isinstance(value, str) else "JSON"


def _type(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if not kinds:
        return "VARCHAR"
    if kinds <= {"BIGINT", "HUGEINT"}:
        return "HUGEINT"
    return "DOUBLE" if kinds <= {"BIGINT", "DOUBLE"} else "JSON"
