"""Instructions and objects with most misses, as text: of simulated caches, and of reuse distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracekit.render.objects import object_name
from tracekit.render.places import instruction_text, without_folder
from tracekit.render.text import Json, Style, more, table, traces_text

TABLES = ("instructions", "objects")


def by_misses(rows: Sequence[Json]) -> list[Json]:
    """Rows with most misses first, of the first level or size in which they differ."""
    return sorted(rows, key=lambda row: ([-count for count in row["misses"]], -row["touches"]))


def misses_text(
    report: Json,
    head: Sequence[str],
    columns: Sequence[str],
    cells: Callable[[Json], Sequence[str]],
    limit: int,
    style: Style,
) -> str:
    """The lines of `head`, then both tables with these columns of numbers, of which `cells` gives those of a row."""
    result = report["result"]
    tables, folder = without_folder({name: by_misses(result[name])[: limit or None] for name in TABLES}, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}", "", *head]
    for name, shown in zip(TABLES, (instruction_text, object_name)):
        key = name.removesuffix("s")
        rows = [(shown(row[key]), *cells(row)) for row in tables[name]]
        lines += ["", style(name, "bold")]
        lines += table((key, *columns), rows, frozenset(range(1, 1 + len(columns))), style)
        lines += more(len(result[name]), len(tables[name]), key)
    return "\n".join(lines) + "\n"
