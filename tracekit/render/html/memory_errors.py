"""The section of memory_errors."""

from __future__ import annotations

from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.memory_errors import HEADINGS, doubts, error_line, not_decided, reach_of
from tracekit.render.objects import context_name, object_name
from tracekit.render.places import instruction_text


def section(report: Json, shown: Shown) -> str:
    """Errors and leaks."""
    result = report["result"]
    parts = [] if result["errors"] else ["<p>No errors.</p>"]
    errors = [
        f"<tr><td>{text(HEADINGS[row['kind']])}</td><td>{text(instruction_text(row['instruction']))}</td>"
        f"<td>{text(context_name({'context': row['context']}))}</td><td>{text(error_line(row))}</td>"
        f"<td>{text(_freed(row))}</td>{number_cell(row['count'])}</tr>"
        for row in shown.names.shown(result["errors"][: shown.rows])
    ]
    known = any(row.get("reach") for row in result["leaks"])
    leaks = [
        f"<tr><td>{text(object_name(row['object']))}</td><td>{text(context_name(row['object']))}</td>"
        f"{f'<td>{text(reach_of(row))}</td>' if known else ''}"
        f"<td>{text(row['allocated_by'])}</td>{number_cell(row['blocks'])}{number_cell(row['bytes'])}</tr>"
        for row in shown.names.shown(result["leaks"][: shown.rows])
    ]
    words = ("Error", "Where", "In", "What", "Freed by")
    tables = (
        ("errors", "Errors", (*((word, False) for word in words), ("Times", True)), errors),
        (
            "leaks",
            "Never freed",
            (
                ("Object", False),
                ("Made in", False),
                *([("Reached", False)] if known else []),
                ("Allocated by", False),
                ("Blocks", True),
                ("Bytes", True),
            ),
            leaks,
        ),
    )
    for name, caption, columns, rows in tables:
        if rows:
            parts.append(table(f"memory-{name}", caption, columns, rows))
        parts += more(len(result[name]), len(rows))
    parts += [f"<p>{text(sentence)}</p>" for sentence in doubts(result)]
    if undecided := not_decided(result):
        parts.append(f"<p>Not decided: {text('; '.join(undecided))}.</p>")
    return "\n".join(parts)


def _freed(row: Json) -> str:
    return "" if row["freed"] is None else instruction_text(row["freed"]["instruction"])
