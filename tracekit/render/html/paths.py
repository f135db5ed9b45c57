"""The section of paths."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.paths import LONGEST, by_accesses, by_inclusive, function_text, summary_lines
from tracekit.render.text import clipped


def section(report: Json, shown: Shown) -> str:
    """The hot path, and the paths and functions with most accesses; nothing of a trace without a path."""
    result = report["result"]
    if not result["paths"]:
        return ""
    parts = [f"<p>{text(line)}</p>" for line in summary_lines(result)]
    hot = [
        f"<tr><td>{text(function_text(row['path']))}</td><td>{text(clipped(row['path']['name'], LONGEST))}</td>"
        f"{number_cell(row['frequency'])}{number_cell(row['accesses'])}{number_cell(row['inclusive'])}</tr>"
        for row in shown.names.shown(result["hot"])
    ]
    columns = (("Function", False), ("Lines", False), ("Times", True), ("Accesses", True), ("With calls", True))
    parts.append(table("paths-hot", "The hot path across calls", columns, hot))
    chosen = by_accesses(result["paths"])[: shown.rows]
    rows = [
        f"<tr><td>{text(function_text(row['path']))}</td><td>{text(clipped(row['path']['name'], LONGEST))}</td>"
        f"{number_cell(row['frequency'])}{number_cell(row['loads'])}{number_cell(row['stores'])}"
        f"{number_cell(row['bytes'])}</tr>"
        for row in shown.names.shown(chosen)
    ]
    columns = (("Function", False), ("Lines", False), ("Times", True), ("Loads", True), ("Stores", True))
    parts.append(table("paths-paths", "Paths", (*columns, ("Bytes", True)), rows))
    parts += more(len(result["paths"]), len(chosen))
    ran = [row for row in by_inclusive(result["functions"]) if row["calls"]]
    functions = [
        f"<tr><td>{text(function_text(row['function']))}</td>{number_cell(row['calls'])}{number_cell(row['paths'])}"
        f"{number_cell(row['loads'] + row['stores'])}{number_cell(row['inclusive'])}{number_cell(row['blocks'])}"
        f"{number_cell(row['blocks_run'])}</tr>"
        for row in shown.names.shown(ran[: shown.rows])
    ]
    names = ("Calls", "Paths", "Accesses", "With calls", "Blocks", "Blocks run")
    heads = (("Function", False), *((name, True) for name in names))
    parts.append(table("paths-functions", "Functions that ran", heads, functions))
    parts += more(len(ran), shown.rows)
    return "\n".join(parts)
