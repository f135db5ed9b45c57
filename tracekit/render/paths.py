"""Path profiles as text: the hot path across calls, the paths with most accesses, functions and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracekit.counted import counted
from tracekit.render.places import place_text, without_folder
from tracekit.render.text import Json, Style, cell, clipped, more, table, traces_text

LONGEST = 90
"""Letters of a path's lines."""


def paths_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The tables, rows with most accesses first."""
    result = report["result"]
    chosen = {
        "hot": result["hot"],
        "paths": by_accesses(result["paths"])[: limit or None],
        "functions": by_inclusive(result["functions"])[: limit or None],
        "edges": by_count(result["edges"])[: limit or None],
    }
    tables, folder = without_folder(chosen, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}", "", *summary_lines(result)]
    accesses = max(result["summary"]["loads"] + result["summary"]["stores"], 1)
    if tables["hot"]:
        lines += ["", style("hot path across calls", "bold")]
        lines += table(
            ("function", "times", "accesses", "with calls", "lines"),
            [hot_cells(row) for row in tables["hot"]],
            frozenset({1, 2, 3}),
            style,
        )
    lines += ["", style("paths", "bold")]
    lines += table(
        ("times", "accesses", "share", "bytes", "function", "lines"),
        [path_cells(row, accesses) for row in tables["paths"]],
        frozenset({0, 1, 2, 3}),
        style,
    )
    lines += more(len(result["paths"]), len(tables["paths"]), "path")
    lines += ["", style("functions", "bold")]
    lines += table(
        ("function", "calls", "paths", "accesses", "with calls", "blocks run"),
        [function_cells(row) for row in tables["functions"]],
        frozenset({1, 2, 3, 4, 5}),
        style,
    )
    lines += more(len(result["functions"]), len(tables["functions"]), "function")
    lines += ["", style("edges", "bold")]
    lines += table(
        ("times", "function", "lines"),
        [(cell(row["count"]), function_text(row["edge"]), row["edge"]["name"]) for row in tables["edges"]],
        frozenset({0}),
        style,
    )
    lines += more(len(result["edges"]), len(tables["edges"]), "edge")
    return "\n".join(lines) + "\n"


def hot_cells(row: Json) -> tuple[str, ...]:
    """A path of the hot path across calls."""
    return (
        function_text(row["path"]),
        cell(row["frequency"]),
        cell(row["accesses"]),
        cell(row["inclusive"]),
        clipped(row["path"]["name"], LONGEST),
    )


def path_cells(row: Json, accesses: int) -> tuple[str, ...]:
    """A path; its share is of all `accesses` of the run."""
    return (
        cell(row["frequency"]),
        cell(row["loads"] + row["stores"]),
        f"{(row['loads'] + row['stores']) / accesses:.1%}",
        cell(row["bytes"]),
        function_text(row["path"]),
        clipped(row["path"]["name"], LONGEST),
    )


def summary_lines(result: Json) -> list[str]:
    """How much there is, and how much of the program ran."""
    summary, outside = result["summary"], result["outside"]
    lines = [
        (
            f"{counted(summary['paths'], 'path')}, taken {counted(summary['frequency'], 'time')}; "
            f"{counted(summary['loads'], 'load')} and {counted(summary['stores'], 'store')} of "
            f"{counted(summary['bytes'], 'byte')}"
        ),
        (
            f"run: {summary['functions_run']:,} of {counted(summary['functions'], 'function')}, "
            f"{summary['blocks_run']:,} of {counted(summary['blocks'], 'block')}, "
            f"{summary['lines_run']:,} of {counted(summary['lines'], 'line')}"
        ),
    ]
    if outside["loads"] + outside["stores"]:
        lines.append(f"{counted(outside['loads'] + outside['stores'], 'access')} by the library outside of functions")
    if outside["broken_records"]:
        lines.append(f"{counted(outside['broken_records'], 'record')} broke the rules; see: tracekit check")
    return lines


def by_accesses(rows: Sequence[Json]) -> list[Json]:
    """Paths with most accesses first."""
    return sorted(rows, key=lambda row: (-(row["loads"] + row["stores"]), -row["frequency"]))


def by_inclusive(rows: Sequence[Json]) -> list[Json]:
    """Functions with most accesses, those of what they call included, first."""
    return sorted(rows, key=lambda row: (-row["inclusive"], -row["calls"]))


def by_count(rows: Sequence[Json]) -> list[Json]:
    """Edges that were taken most first."""
    return sorted(rows, key=lambda row: -row["count"])


def function_text(place: Json) -> str:
    """`f app.c:12`."""
    return f"{place['function']} {place_text({**place, 'column': 0})}"


def function_cells(row: Json) -> tuple[str, ...]:
    """A function: calls, paths, accesses, blocks."""
    return (
        function_text(row["function"]),
        cell(row["calls"]),
        cell(row["paths"]),
        cell(row["loads"] + row["stores"]),
        cell(row["inclusive"]),
        f"{row['blocks_run']:,} of {row['blocks']:,}",
    )
