"""The section of object_lifetime."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.html.generic import generic_section
from tracekit.render.objects import context_name, object_name, scope_name

LIFETIME_COLUMNS = (
    ("Object", False),
    ("Objects", True),
    ("Bytes", True),
    ("Never freed", True),
    ("Lives within", False),
    ("Made in", False),
)


def section(report: Json, shown: Shown) -> str:
    """Sites of objects, most objects first, in the words of the module's text."""
    if "sites" not in report["result"]:
        return generic_section(report, shown)
    rows = sorted(report["result"]["sites"], key=lambda row: -row["objects"])
    chosen = shown.names.shown(rows[: shown.rows])
    made = [
        f'<tr><th scope="row">{text(object_name(row["object"]))}</th>{number_cell(row["objects"])}'
        f"{number_cell(row['bytes'])}{number_cell(row['never_freed'])}<td>{text(scope_name(row['scope']))}</td>"
        f"<td>{text(context_name(row['object']))}</td></tr>\n"
        for row in chosen
    ]
    sites = table("object_lifetime-sites", "Where objects are made, most objects first", LIFETIME_COLUMNS, made)
    return "".join([sites, *more(len(rows), len(made), "sites")])
