"""The section of memprof."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.memprof import made_in
from tracekit.render.objects import object_name

COLUMNS = (
    ("Object", False),
    *((name, True) for name in ("Blocks", "Bytes", "Accesses", "Accesses a byte", "Mean lifetime")),
    ("Made in", False),
)


def section(report: Json, shown: Shown) -> str:
    """Sites, most bytes first; nothing of a run without heap blocks."""
    rows = sorted(report["result"]["sites"], key=lambda row: -row["bytes"])
    if not rows:
        return ""
    made = [
        f"<tr><td>{text(object_name(row['object']))}</td>"
        + "".join(number_cell(row[name]) for name in ("blocks", "bytes", "accesses"))
        + number_cell(density := row["accesses"] / max(row["bytes"], 1), format(density, ",.2f"))
        + number_cell(row["lifetime"] // row["blocks"])
        + f"<td>{text(made_in(row['object']))}</td></tr>"
        for row in shown.names.shown(rows[: shown.rows])
    ]
    unit = "<p>Lifetimes are in loads and stores of the program.</p>"
    blocks = table("memprof-sites", "Heap blocks, most bytes first", COLUMNS, made)
    return "".join([unit, blocks, *more(len(rows), len(made))])
