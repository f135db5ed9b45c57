"""Heap blocks by allocation context as text."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.render.objects import object_name
from tracekit.render.places import without_folder
from tracekit.render.text import Json, Style, cell, more, table, traces_text


def memprof_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Sites, most bytes first; of the blocks of each the means."""
    rows = sorted(report["result"]["sites"], key=lambda row: -row["bytes"])
    shown = rows[: limit or None]
    tables, folder = without_folder({"sites": shown}, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}", ""]
    lines += table(
        ("object", "blocks", "bytes", "accesses", "accesses/byte", "mean lifetime", "made in"),
        [
            (
                object_name(row["object"]),
                cell(row["blocks"]),
                cell(row["bytes"]),
                cell(row["accesses"]),
                format(row["accesses"] / max(row["bytes"], 1), ",.2f"),
                cell(row["lifetime"] // row["blocks"]),
                made_in(row["object"]),
            )
            for row in tables["sites"]
        ],
        frozenset(range(1, 6)),
        style,
    )
    lines += more(len(rows), len(shown), "site")
    lines.append("Lifetimes are in loads and stores of the program.")
    return "\n".join(lines) + "\n"


def made_in(made: Json) -> str:
    """The context of an object in words; inside a recursion, which is one context, with the innermost calls."""
    context = made.get("context")
    return " > ".join([context["root"], *context["path"], *made.get("callers", ())]) if context else ""
