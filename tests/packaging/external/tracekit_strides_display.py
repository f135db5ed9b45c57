"""How profiles of strides are shown: imported only when one is."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.render import Json, Style, instruction_text, more, table, traces_text, without_folder
from tracekit.render.html import Shown, number_cell, text
from tracekit.render.html import table as html_table


def strides_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """One line for each instruction, the longest step first."""
    rows = sorted(report["result"]["instructions"], key=lambda row: -abs(row["step"]))
    shown, folder = without_folder(rows[: limit or None], report)
    cells = [(f"{row['step']:+,}", f"{row['count']:,}", instruction_text(row["instruction"])) for row in shown]
    return "\n".join(
        [
            f"Strides of {traces_text(report)}" + (f", files below {folder}" if folder else ""),
            *table(("STEP", "TIMES", "INSTRUCTION"), cells, frozenset({0, 1}), style),
            *more(len(rows), len(shown), "instruction"),
            "",
        ]
    )


def strides_section(report: Json, shown: Shown) -> str:
    """The same as a table of the page."""
    rows = [
        f"<tr><td>{text(instruction_text(row['instruction']))}</td>{number_cell(row['step'])}</tr>"
        for row in shown.names.shown(report["result"]["instructions"][: shown.rows])
    ]
    return html_table("strides-rows", "Instructions and their steps", (("Instruction", False), ("Step", True)), rows)
