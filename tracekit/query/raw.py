"""Tables of modules' results as they are: any module, any list of rows, without documentation of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.profiles.profile import flat
from tracekit.query.arrays import guessed
from tracekit.query.schema import Column, Json


def raw_tables(report: Json) -> Iterator[tuple[str, list[Column], list[dict[str, Any]]]]:
    """The tables of a result that have rows: name, columns, rows; nested cells are columns named with dots."""
    for name, value in report["result"].items():
        if isinstance(value, list) and value:
            rows = [flat(row) for row in value]
            yield name, guessed(rows), rows
