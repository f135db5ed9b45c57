"""The section of communication."""

from __future__ import annotations

from tracekit.render.communication import by_bytes, summary_lines, svg, thread_text
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import Json, more, number_cell, table, text
from tracekit.render.places import instruction_text


def section(report: Json, shown: Shown) -> str:
    """The matrix and the pairs; nothing of a trace whose threads share nothing."""
    result = report["result"]
    if not result["roles"]:
        return ""
    parts = [
        *(f"<p>{text(line)}</p>" for line in summary_lines(result["summary"])),
        f'<div class="scroll heat" role="region" aria-label="Communication matrix" tabindex="0">{svg(result)}</div>',
    ]
    numbers = (("Bytes", True), ("Loads", True))
    rows = [
        f"<tr><td>{text(thread_text(row['source']))}</td><td>{text(thread_text(row['destination']))}</td>"
        f"{number_cell(row['bytes'])}{number_cell(row['loads'])}</tr>"
        for row in by_bytes(result["by_thread"])[: shown.rows]
    ]
    heads = (("Stored by", False), ("Loaded by", False), *numbers)
    parts.append(table("communication-threads", "From thread to thread", heads, rows))
    chosen = by_bytes(result["dependences"])[: shown.rows]
    rows = [
        f"<tr><td>{text(instruction_text(row['source']))}</td><td>{text(instruction_text(row['destination']))}</td>"
        f"{number_cell(row['bytes'])}{number_cell(row['count'])}</tr>"
        for row in shown.names.shown(chosen)
    ]
    heads = (("Stored at", False), ("Loaded at", False), *numbers)
    parts.append(table("communication-lines", "From line to line", heads, rows))
    parts += more(len(result["dependences"]), len(chosen))
    return "\n".join(parts)
