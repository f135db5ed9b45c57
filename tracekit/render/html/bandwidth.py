"""The section of bandwidth."""

from __future__ import annotations

from tracekit.render.addresses import addresses_text
from tracekit.render.bandwidth import svg
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, number_cell, table

COLUMNS = ("accesses", "loaded_bytes", "stored_bytes", "memory_read_bytes", "memory_written_bytes")


def section(report: Json, shown: Shown) -> str:
    """The drawing, and the slices as a table; nothing of a trace without accesses."""
    slices = report["result"]["slices"]
    if not slices:
        return ""
    rows = [
        f'<tr><th scope="row">{row["first_access"]:,}</th>{"".join(number_cell(row[name]) for name in COLUMNS)}</tr>'
        for row in slices
    ]
    heads = ((name.replace("_", " ").capitalize(), True) for name in COLUMNS)
    listing = table("bandwidth-slices", "Slices of the run", (("First access", True), *heads), rows)
    return (
        "<p>Bytes that memory gives and gets for each access of the program, over the run"
        f"{addresses_text(report['result']['summary'])}.</p>"
        '<div class="scroll heat" role="region" aria-label="Memory traffic over the run" tabindex="0">'
        f"{svg(slices)}</div><details><summary>The slices as a table</summary>{listing}</details>"
    )
