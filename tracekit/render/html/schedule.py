"""The section of schedules."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table, text
from tracekit.render.schedule import seconds, summary_lines, svg


def section(report: Json, shown: Shown) -> str:
    """The time line and the threads; nothing of a trace without times."""
    result = report["result"]
    if not result["summary"]["hand_overs"]:
        return ""
    rows = [
        f"<tr><td>{row['thread']}</td><td>{text(row['role'])}</td>{number_cell(row['accesses'])}"
        f"<td>{seconds(row['begin'])}</td><td>{seconds(row['end'])}</td>{number_cell(row['migrations'])}"
        f"<td>{text(', '.join(map(str, row['processors'])))}</td></tr>"
        for row in result["threads"][: shown.rows]
    ]
    heads = (("Thread", True), ("Role", False), ("Accesses", True), ("From s", True), ("To s", True), ("Moves", True))
    return "\n".join(
        [
            *(f"<p>{text(line)}</p>" for line in summary_lines(result["summary"])),
            '<div class="scroll heat" role="region" aria-label="Threads over time" tabindex="0">',
            f"{svg(result)}</div>",
            table("schedule-threads", "Threads", (*heads, ("Processors", False)), rows),
        ]
    )
