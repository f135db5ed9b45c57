"""The rows of a query as text: a table, CSV, JSON, JSON lines or Markdown."""

from __future__ import annotations

import csv
import decimal
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracekit.query.database import Result
from tracekit.render.folding import GAP, NARROWEST, fold
from tracekit.render.text import Style, has_room, more, table

NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL")


def table_text(result: Result, limit: int, style: Style, option: str = "--limit") -> str:
    """Aligned columns; `limit` rows at most (0: all), as `option` chooses, which a line names if there are more.

    On a terminal that has no room for the columns side by side, a row is a column a line, under a line of its own.
    """
    shown = result.rows[: limit or None]
    right = frozenset(number for number, name in enumerate(result.types) if _is_number(name))
    cells = [[_cell(value) for value in row] for row in shown]
    fits = not style.width or has_room(result.names, cells, right, style.width)
    lines = table(result.names, cells, right, style) if fits else _records(result.names, cells, style)
    return "\n".join([*lines, *more(len(result.rows), len(shown), "row", option=option)]) + "\n"


def _records(names: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    """The name and the value of each column, row by row."""
    widest = max(map(len, names))
    room = max(style.width - widest - GAP, NARROWEST)
    lines = []
    for number, row in enumerate(rows, 1):
        lines.append(style(f"row {number:,}", "bold"))
        for name, cell in zip(names, row):
            first, *others = fold(cell, room)
            lines.append(f"{name:{widest + GAP}}{first}".rstrip())
            lines += [" " * (widest + GAP) + part for part in others]
    return lines


def csv_text(result: Result) -> str:
    """RFC 4180 with a header; NULL is empty, lists and structures are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.names)
    writer.writerows([["" if value is None else _plain(value) for value in row] for row in result.rows])
    return out.getvalue()


def json_text(result: Result) -> str:
    """A list with an object for each row, one on a line."""
    rows = jsonl_text(result).splitlines()
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def jsonl_text(result: Result) -> str:
    """An object for each row, one on a line."""
    return "".join(_dumped(dict(zip(result.names, row))) + "\n" for row in result.rows)


def markdown_text(result: Result) -> str:
    """A table of GitHub's Markdown."""
    marks = ["---:" if _is_number(name) else "---" for name in result.types]
    cells = [[_cell(value).replace("|", "\\|").replace("\n", " ") for value in row] for row in result.rows]
    heads = [name.replace("|", "\\|") for name in result.names]
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, marks, *cells])


FORMATS: Mapping[str, Callable[[Result], str]] = {
    "csv": csv_text,
    "json": json_text,
    "jsonl": jsonl_text,
    "markdown": markdown_text,
}
"""Those that show all rows."""


def _is_number(type_: str) -> bool:
    return not type_.endswith("]") and not type_.startswith("INTERVAL") and any(word in type_ for word in NUMBERS)


def _cell(value: Any) -> str:
    """A value for readers."""
    if value is None:
        return "-"
    if isinstance(value, (float, decimal.Decimal)):
        return f"{value:.6g}"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "; ".join(value)
    return str(_plain(value))


def _plain(value: Any) -> Any:
    """Numbers and words as they are, truth values as in SQL, all else as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, str, decimal.Decimal)):
        return value
    return _dumped(value) if isinstance(value, (list, dict)) else str(value)


def _dumped(value: Any) -> str:
    return json.dumps(_known(value), ensure_ascii=False, allow_nan=False)


def _known(value: Any) -> Any:
    """What JSON has of a value of DuckDB: whole decimals and fractions as numbers, dates and times as words."""
    if isinstance(value, dict):
        return {str(key): _known(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(part) for part in value]
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
