"""Communication between threads as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from tracekit.counted import counted, rounded
from tracekit.formats.errors import TracekitError
from tracekit.program.function_names import brief
from tracekit.render.picture import picture_head
from tracekit.render.places import instruction_text, without_folder
from tracekit.render.text import Json, Style, cell, clipped, more, table, traces_text

MOST_ROLES = 12
"""Rows and columns of the matrix."""


def communication_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The matrix of roles, threads and pairs of instructions with most bytes first."""
    result = report["result"]
    chosen = {
        "by_thread": by_bytes(result["by_thread"])[: limit or None],
        "dependences": by_bytes(result["dependences"])[: limit or None],
    }
    tables, folder = without_folder(chosen, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}", "", *summary_lines(result["summary"])]
    roles, cells = matrix(result)
    if roles:
        names = [role_text(role) for role in roles]
        lines += ["", style("bytes stored by (rows) and loaded by (columns)", "bold")]
        lines += table(
            ("", *names),
            [(name, *(cell(moved) if moved else "." for moved in row)) for name, row in zip(names, cells)],
            frozenset(range(1, len(roles) + 1)),
            style,
        )
    if tables["by_thread"]:
        lines += ["", style("from thread to thread", "bold")]
        lines += table(
            ("bytes", "loads", "stored by", "loaded by"),
            [
                (cell(row["bytes"]), cell(row["loads"]), thread_text(row["source"]), thread_text(row["destination"]))
                for row in tables["by_thread"]
            ],
            frozenset({0, 1}),
            style,
        )
        lines += more(len(result["by_thread"]), len(tables["by_thread"]), "pair")
    if tables["dependences"]:
        lines += ["", style("from line to line", "bold")]
        lines += table(
            ("bytes", "loads", "stored at", "loaded at"),
            [
                (
                    cell(row["bytes"]),
                    cell(row["count"]),
                    instruction_text(row["source"]),
                    instruction_text(row["destination"]),
                )
                for row in tables["dependences"]
            ],
            frozenset({0, 1}),
            style,
        )
        lines += more(len(result["dependences"]), len(tables["dependences"]), "dependence")
    return "\n".join(lines) + "\n"


def summary_lines(summary: Json) -> list[str]:
    """What was loaded, and who had stored it."""
    loaded = max(summary["bytes_loaded"], 1)
    return [
        (
            f"{counted(summary['bytes_loaded'], 'byte')} loaded by {counted(summary['threads'], 'thread')}: "
            f"{summary['bytes_between']:,} "
            f"({summary['bytes_between'] / loaded:.1%}) that another thread had stored, {summary['bytes_own']:,} their "
            f"own, {summary['bytes_of_no_store']:,} that no store was seen of"
        )
    ]


def by_bytes(rows: Sequence[Json]) -> list[Json]:
    """Most bytes first."""
    return sorted(rows, key=lambda row: -row["bytes"])


def thread_text(end: Json) -> str:
    """`3 worker`."""
    return f"{end['thread']} {role_text(end['role'])}".rstrip()


def role_text(role: str) -> str:
    """What a thread is for: the function that it runs, in few letters."""
    return clipped(brief(role))


def matrix(result: Json) -> tuple[list[str], list[list[int]]]:
    """Roles, those with most bytes first, and the bytes from each (rows) to each."""
    moved: dict[str, int] = {}
    for row in result["roles"]:
        for end in (row["source"], row["destination"]):
            moved[end] = moved.get(end, 0) + row["bytes"]
    roles = sorted(moved, key=lambda role: (-moved[role], role))[:MOST_ROLES]
    known = {(row["source"], row["destination"]): row["bytes"] for row in result["roles"]}
    return roles, [[known.get((source, destination), 0) for destination in roles] for source in roles]


SIDE, LEFT, TOP = 64, 220, 40


def write_image(report: Json, path: str) -> None:
    """The picture that ``tracekit analyze --image`` asks for."""
    if not path.endswith(".svg"):
        raise TracekitError(f"The picture of communication is drawn as .svg, not as {Path(path).name}.")
    Path(path).write_text(svg(report["result"]))


def svg(result: Json) -> str:
    """The matrix as squares, the darker the more bytes."""
    roles, cells = matrix(result)
    most = max((moved for row in cells for moved in row), default=0) or 1
    width, height = LEFT + SIDE * len(roles) + 20, TOP + SIDE * len(roles) + 20
    title = "Bytes stored by (rows) and loaded by (columns)"
    parts = picture_head(title, width, height)
    for number, role in enumerate(roles):
        at = LEFT + SIDE * number
        title = f"<title>{escape(role)}</title>"
        parts.append(
            f'<text x="{LEFT - 8}" y="{TOP + SIDE * number + SIDE // 2 + 4}" text-anchor="end">'
            f"{number + 1} {escape(brief(role)[:26])}{title}</text>"
            f'<text x="{at + SIDE // 2}" y="{TOP - 8}" text-anchor="middle">{number + 1}{title}</text>'
        )
    for row, moved_by in enumerate(cells):
        for column, moved in enumerate(moved_by):
            shade = 255 - round(175 * moved / most) if moved else 255
            x, y = LEFT + SIDE * column, TOP + SIDE * row
            parts.append(
                f'<rect x="{x}" y="{y}" width="{SIDE - 2}" height="{SIDE - 2}" stroke="#ccc" '
                f'fill="rgb(255,{shade},{shade})"><title>{escape(roles[row])} to {escape(roles[column])}: {moved:,} '
                "bytes</title></rect>"
            )
            if moved:
                short = rounded(moved).replace(" ", "")
                parts.append(
                    f'<text x="{x + SIDE // 2 - 1}" y="{y + SIDE // 2 + 4}" text-anchor="middle">{short}</text>'
                )
    return "\n".join([*parts, "</svg>", ""])
