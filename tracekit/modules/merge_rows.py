"""What the modules' `merge` functions share: tables of rows whose keys are the same become one row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def join_rows(
    tables: Iterable[Sequence[Row]],
    key: Sequence[str],
    join: Mapping[str, Callable[[Any, Any], Any]],
    order: Callable[[Row], Any] | None = None,
) -> list[dict[str, Any]]:
    """The rows of all tables; those that are equal in the columns `key` are one.

    `join`: column -> what two values of it come to (`add`, `least`, ...), an associative and commutative function.
    Rows are sorted by `order`, or by their keys as text.
    """
    by_key: dict[str, dict[str, Any]] = {}
    for table in tables:
        for row in table:
            name = as_key(row, key)
            known = by_key.get(name)
            if known is None:
                by_key[name] = dict(row)
                continue
            for column, function in join.items():
                if column in known:
                    known[column] = function(known[column], row[column])
    if order is not None:
        return sorted(by_key.values(), key=order)
    return [by_key[name] for name in sorted(by_key)]


def as_key(row: Row, columns: Sequence[str]) -> str:
    """The values of some columns as text that is equal if they are."""
    return json.dumps([row.get(column) for column in columns], sort_keys=True)


def add(first: int, second: int) -> int:
    """Counts."""
    return first + second


def least(first: int | None, second: int | None) -> int | None:
    """The lesser; None is no value."""
    return min((value for value in (first, second) if value is not None), default=None)


def greatest(first: int | None, second: int | None) -> int | None:
    """The greater; None is no value."""
    return max((value for value in (first, second) if value is not None), default=None)
