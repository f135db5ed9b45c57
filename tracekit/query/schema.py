"""What a table of `tracekit query` is: columns with types and meanings, and where its rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Json = Mapping[str, Any]
Row = Sequence[Any]


class Column(NamedTuple):
    """A column: its name, its type in DuckDB, and what it says."""

    name: str
    type: str
    doc: str


class Table(NamedTuple):
    """A table that is made of one module's result."""

    name: str
    modules: tuple[str, ...]
    """Those whose results have its rows; a trace is analysed by the first, in a profile file the first that is there
    counts."""
    doc: str
    columns: tuple[Column, ...]
    rows: Callable[[Json], Iterable[Row]]
    """From the profile's JSON object (tracekit.profiles): a cell for each column, in order; None is NULL."""


class View(NamedTuple):
    """A table that is a query of another one."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    source: str
    """The table that it reads."""
    query: str


def text(name: str, doc: str) -> Column:
    """A column of words."""
    return Column(name, "VARCHAR", doc)


def number(name: str, doc: str) -> Column:
    """A column of whole numbers."""
    return Column(name, "BIGINT", doc)


def ratio(name: str, doc: str) -> Column:
    """A column of numbers."""
    return Column(name, "DOUBLE", doc)


def truth(name: str, doc: str) -> Column:
    """A column of truth values."""
    return Column(name, "BOOLEAN", doc)


def words(name: str, doc: str) -> Column:
    """A column of lists of words."""
    return Column(name, "VARCHAR[]", doc)


def numbers(name: str, doc: str) -> Column:
    """A column of lists of whole numbers."""
    return Column(name, "BIGINT[]", doc)
