"""The text of a profile about whose module nothing is known: each list of the result as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.render.places import short_place, without_folder
from tracekit.render.text import Json, Style, cell, more, number_with_unit, table, traces_text


def generic_text(report: Json, limit: int, style: Style, greatest: str = "", percent: str = "") -> str:
    """A module without a text of its own: each list of its result as a table, in the order that it is in.

    `greatest`: the column, where a table has it, by which rows are sorted, the greatest first. (JSON has them by place
    in the source.) `percent`: names, separated by spaces, of numbers outside of tables that are in
    percent. `limit`: rows of a table at most (0: all).
    """
    carried_by = report.get("options", {}).get("carried_by")
    result = report["result"]
    tables, folder = without_folder(
        {
            name: _sorted(value, greatest)[: limit or None] if isinstance(value, list) else value
            for name, value in result.items()
        },
        report,
    )
    loop = f", carried by loop {short_place(carried_by, folder, report)}" if carried_by else ""
    lines = [f"{report['module']}, {traces_text(report)}" + loop + (f", files below {folder}" if folder else "")]
    for name, value in tables.items():
        lines += ["", style(name.replace("_", " "), "bold")]
        if isinstance(value, list):
            lines += rows_text(value, style) + more(len(result[name]), len(value), "row")
        elif isinstance(value, Mapping):
            width = max(map(len, value), default=0)
            lines += [
                f"{key.replace('_', ' '):{width}}  {number_with_unit(part, key in percent.split())}"
                for key, part in value.items()
            ]
        else:
            lines.append(cell(value))
    return "\n".join(lines) + "\n"


def _sorted(rows: list[Any], greatest: str) -> list[Any]:
    sortable = bool(greatest) and all(isinstance(row, Mapping) for row in rows)
    return sorted(rows, key=lambda row: -(row.get(greatest) or 0)) if sortable else rows


def rows_text(rows: Sequence[Any], style: Style) -> list[str]:
    """The lines of a table of JSON values, with the columns that its rows have."""
    if not rows:
        return ["none"]
    if not all(isinstance(row, Mapping) for row in rows):
        return [cell(row) for row in rows]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    right = frozenset(
        number
        for number, column in enumerate(columns)
        if all(isinstance(row.get(column), (int, float)) for row in rows)
    )
    return table(
        [column.replace("_", " ") for column in columns],
        [[cell(row.get(column)) for column in columns] for row in rows],
        right,
        style,
    )
