"""The section of heatmap."""

from __future__ import annotations

from tracekit.render import heatmap
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table, text


def section(report: Json, shown: Shown) -> str:
    """The map as a drawing, and its rows as a table; nothing of a trace without accesses."""
    if not report["result"]["rows"]:
        return ""
    left_out = "".join(f"<p>{text(line)}</p>" for line in heatmap.untimed(report["result"]["summary"]))
    rows = [
        f'<tr><th scope="row">{text(row["start"])}</th>{number_cell(sum(row["loads"]))}'
        f"{number_cell(sum(row['stores']))}</tr>"
        for row in report["result"]["rows"]
    ]
    totals = table(
        "heatmap-rows", "Accesses of each row of memory", (("Address", False), ("Loads", True), ("Stores", True)), rows
    )
    return (
        "<p>Memory downwards, time to the right; the stronger the colour, the more accesses, on a scale of "
        "logarithms.</p>"
        '<div class="scroll heat" role="region" aria-label="Heat map" tabindex="0">'
        f"{heatmap.svg(report)}</div>{left_out}<details><summary>The rows as a table</summary>{totals}</details>"
    )
