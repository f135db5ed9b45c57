"""Instructions and objects with most misses, as text: of simulated caches, and of reuse distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracekit.program.sources import is_system, plain_path
from tracekit.render.objects import object_name
from tracekit.render.places import instruction_text, without_folder
from tracekit.render.text import Json, Style, more, table, traces_text


def by_misses(rows: Sequence[Json]) -> list[Json]:
    """Rows with most misses first, of the first level or size in which they differ."""
    return sorted(rows, key=lambda row: ([-count for count in row["misses"]], -row["touches"]))


def joined(instructions: Sequence[Json]) -> list[Json]:
    """Rows of instructions with most misses first; copies that inlining made of one are one row, with their sums.

    `copies` of a row: how many there are.
    """
    groups: dict[Any, list[Json]] = {}
    for row in instructions:
        groups.setdefault(_look(row["instruction"]), []).append(row)
    return by_misses([{**_sum(group), "copies": len(group)} for group in groups.values()])


def _look(instruction: Json) -> tuple[Any, ...]:
    """What text says of an instruction: of one of the system's headers also where the user's code is."""
    place = tuple(instruction.get(part) for part in ("kind", "file", "line", "column", "nearby", "function"))
    if not instruction.get("line") or not is_system(plain_path(instruction["file"])):
        return place
    users = [each for each in instruction.get("inlined_at", ()) if not is_system(plain_path(each["file"]))]
    return (*place, *((each["file"], each["line"], each["column"]) for each in users[:1]))


def _sum(group: Sequence[Json]) -> Json:
    """One row for all of them."""
    numbers = [name for name, value in group[0].items() if isinstance(value, int)]
    return {
        **group[0],
        **{name: sum(row[name] for row in group) for name in numbers},
        "misses": [sum(counts) for counts in zip(*(row["misses"] for row in group), strict=True)],
    }


def copies_text(row: Json) -> str:
    """The instruction of a row of `joined`, and of how many it stands for."""
    return instruction_text(row["instruction"]) + (f" ({row['copies']:,} copies)" if row["copies"] > 1 else "")


def object_text(row: Json) -> str:
    """The object of a row."""
    return object_name(row["object"])


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
    ordered = {"instructions": joined(result["instructions"]), "objects": by_misses(result["objects"])}
    tables, folder = without_folder({name: rows[: limit or None] for name, rows in ordered.items()}, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}", "", *head]
    shown: dict[str, Callable[[Json], str]] = {"instructions": copies_text, "objects": object_text}
    for name, text in shown.items():
        key = name.removesuffix("s")
        rows = [(text(row), *cells(row)) for row in tables[name]]
        lines += ["", style(name, "bold")]
        lines += table((key, *columns), rows, frozenset(range(1, 1 + len(columns))), style)
        lines += more(len(ordered[name]), len(tables[name]), key)
    return "\n".join(lines) + "\n"
