"""The section of task graphs."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.taskgraph import (
    by_critical,
    context_text,
    footprints_of,
    has_footprints,
    line_text,
    parallelism,
    summary_lines,
    svg,
    what_if_cells,
)


def section(report: Json, shown: Shown) -> str:
    """Work and span, the picture, the tables; nothing of a trace without a node."""
    result = report["result"]
    if not result["groups"]:
        return ""
    parts = [f"<p>{text(line)}</p>" for line in summary_lines(result["summary"])]
    picture = svg({**result, "groups": shown.names.shown(result["groups"])})
    parts.append(
        f'<div class="scroll heat" role="region" aria-label="Task graph" tabindex="0">{picture}</div>'
        "<p>Each row stands for tasks with one context; arcs for what orders them, dashed where a group comes again. "
        "Bold ones have tasks on the critical path.</p>"
    )
    lines = [row for row in result["lines"] if row["critical_work"]]
    rows = [
        f"<tr><td>{text(line_text(row['line']))}</td>{number_cell(row['critical_work'])}{number_cell(row['work'])}</tr>"
        for row in shown.names.shown(lines[: shown.rows])
    ]
    columns = (("Line", False), ("On the critical path", True), ("All work", True))
    parts.append(table("taskgraph-lines", "Lines of the critical path", columns, rows))
    parts += more(len(lines), shown.rows)
    chosen = by_critical(result["groups"])[: shown.rows]
    measured = has_footprints(result)
    rows = [
        f"<tr><td>{text(row['group']['kind'])}</td><td>{text(context_text(row['group']['begins']))}</td>"
        f"<td>{text(context_text(row['group']['created']))}</td>{number_cell(row['count'])}{number_cell(row['work'])}"
        f"{number_cell(row['critical_work'])}{number_cell(row['longest'])}"
        f"{''.join(map(number_cell, footprints_of(row))) if measured else ''}</tr>"
        for row in shown.names.shown(chosen)
    ]
    names = (("Kind", False), ("Begins", False), ("Thread created", False), ("Nodes", True), ("Work", True))
    sizes = (("Bytes each", True), ("Most bytes", True)) if measured else ()
    heads = (*names, ("On the critical path", True), ("Longest", True), *sizes)
    parts.append(table("taskgraph-groups", "Nodes", heads, rows))
    parts += more(len(result["groups"]), len(chosen))
    tried = [
        f"<tr><td>{text(what_if_cells(row)[-1])}</td>{number_cell(row['work'])}{number_cell(row['span'])}"
        f"{number_cell(round(parallelism(row), 2))}</tr>"
        for row in result["what_if"]
    ]
    if tried:
        tried_heads = (("Faster", False), ("Work", True), ("Span", True), ("Parallelism", True))
        parts.append(table("taskgraph-what-if", "What if", tried_heads, tried))
    return "\n".join(parts)
