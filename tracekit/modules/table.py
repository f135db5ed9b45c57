"""A table of a result whose rows are made when they are looked at, for tables of which mostly a few are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

ROWS = 1 << 10
"""Rows whose JSON is joined: profiles may have hundreds of megabytes."""


class Table(Sequence[Any]):
    """Rows of JSON, in the order of the profile; equal to a list of them."""

    @abstractmethod
    def rows(self) -> list[Json]:
        """All rows, made anew."""

    @abstractmethod
    def heaviest(self, limit: int) -> list[Json]:
        """The `limit` rows with the greatest ``count`` (0: all), the greatest first, of equal ones in their order."""

    @abstractmethod
    def json_parts(self, dump: Callable[[Any], str]) -> Iterator[str]:
        """The JSON of all rows as `dump` writes each, one on a line, in parts of ROWS rows between which `,` is due."""

    def __getitem__(self, index: Any) -> Any:
        return self.rows()[index]

    def __iter__(self) -> Iterator[Json]:
        return iter(self.rows())

    def __eq__(self, other: object) -> bool:
        return self.rows() == (other.rows() if isinstance(other, Table) else other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def heaviest(rows: Sequence[Mapping[str, Any]], limit: int) -> list[Any]:
    """As :meth:`Table.heaviest`, of a list as well."""
    if isinstance(rows, Table):
        return rows.heaviest(limit)
    return sorted(rows, key=lambda row: -row["count"])[: limit or None]


def with_rows(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result whose tables are lists."""
    return {name: value.rows() if isinstance(value, Table) else value for name, value in result.items()}
