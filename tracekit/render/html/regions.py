"""The section of the address space."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table, text
from tracekit.render.regions import svg


def section(report: Json, shown: Shown) -> str:
    """The picture over time and the regions; nothing of a trace without snapshots."""
    result = report["result"]
    if not result["snapshots"]:
        return ""
    rows = [
        f"<tr><td><code>{row['first']:x}</code></td>{number_cell(row['bytes'])}<td>{text(row['protection'])}</td>"
        f"<td>{text(row['use'])}</td><td>{row['from']:.3f}</td><td>{row['to']:.3f}</td>"
        f"<td>{text('thread ' + str(row['thread']) if row['thread'] else row['name'])}</td></tr>"
        for row in result["regions"][: shown.rows]
    ]
    heads = (("Address", False), ("Bytes", True), ("Access", False), ("Use", False), ("From s", True), ("To s", True))
    return "\n".join(
        [
            '<div class="scroll heat" role="region" aria-label="Address space over time" tabindex="0">',
            f"{svg(result)}</div>",
            table("address-space-regions", "Regions", (*heads, ("What", False)), rows),
        ]
    )
