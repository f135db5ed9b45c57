"""A table of a result whose rows are made when they are looked at, for tables of which mostly a few are."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def _plain(value: Any) -> Any:
    """Arrays, which merge state holds, as lists."""
    return value.tolist()


dumped = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode
"""A value's JSON, as profiles have it."""

ROWS = 1 << 10
"""Rows whose JSON is joined: profiles may have hundreds of megabytes."""


class Table(Sequence[Any]):
    """Rows of JSON, in the order of the profile; equal to a list of them."""

    @abstractmethod
    def rows(self) -> list[Json]:
        """All rows, made anew."""

    @abstractmethod
    def heaviest(self, limit: int) -> list[Json]:
        """The `limit` rows with the greatest weight (0: all), the greatest first, of equal ones in their order.

        What a row's weight is, ``count`` or another column, is the table's.
        """

    def column(self, name: str) -> list[Any]:
        """The values of all rows in one column."""
        return [row[name] for row in self.rows()]

    def json_parts(self, dump: Callable[[Any], str]) -> Iterator[str]:
        """The JSON of all rows, one on a line, in parts of ROWS rows between which `,` is due.

        dump: what writes the value of a column that is no number.
        """
        return joined_rows(self.rows(), dump, {})

    def __getitem__(self, index: Any) -> Any:
        return self.rows()[index]

    def __iter__(self) -> Iterator[Json]:
        return iter(self.rows())

    def __eq__(self, other: object) -> bool:
        return self.rows() == (other.rows() if isinstance(other, Table) else other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def heaviest(rows: Sequence[Mapping[str, Any]], limit: int, weight: str = "count") -> list[Any]:
    """As :meth:`Table.heaviest`, of a list as well; its weight is the column `weight`."""
    if isinstance(rows, Table):
        return rows.heaviest(limit)
    return sorted(rows, key=lambda row: -row[weight])[: limit or None]


def column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """As :meth:`Table.column`, of a list as well."""
    return rows.column(name) if isinstance(rows, Table) else [row[name] for row in rows]


def joined_rows(rows: Sequence[Any], dump: Callable[[Any], str], known: dict[int, str]) -> Iterator[str]:
    """The JSON of rows as :meth:`Table.json_parts`; `known`: texts of objects by their identity, which it fills."""
    for first in range(0, len(rows), ROWS):
        yield ",\n".join([_row_json(row, dump, known) for row in rows[first : first + ROWS]])


def _row_json(row: Any, dump: Callable[[Any], str], known: dict[int, str]) -> str:
    """A row's JSON. Rows share instructions, contexts, levels: the text of each object is kept by its identity."""
    if not isinstance(row, dict):
        return dumped(row)
    parts = []
    for key, value in row.items():
        if isinstance(value, (dict, list)):
            text = known.get(id(value))
            if text is None:
                text = known[id(value)] = dump(value)
        elif type(value) is int:
            text = str(value)
        else:
            text = dump(value)
        parts.append(f'"{key}": {text}')
    return "{" + ", ".join(parts) + "}"


def with_rows(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result whose tables are lists."""
    return {name: value.rows() if isinstance(value, Table) else value for name, value in result.items()}
