"""What the texts of all profiles are made of: tables, cells, emphasis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tracekit.counted import counted
from tracekit.render.places import instruction_text

Json = Mapping[str, Any]
"""A JSON object, to be read."""

WIDTH = 118
"""Columns that a line of text should not exceed."""


class Style:
    """Emphasis on a terminal, nothing elsewhere."""

    CODES: ClassVar[Mapping[str, str]] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, name: str) -> str:
        """`text`, emphasised as `name` says."""
        return f"\x1b[{self.CODES[name]}m{text}\x1b[0m" if self.colour and text else text


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int],
    style: Style,
    paint: Callable[[int, str], str] | None = None,
) -> list[str]:
    """Align `rows` under `header`; columns in `right` are flush right; the last column is not padded.

    A cell wider than WIDEST (a name of C++ with its parameters) shifts the rest of its row, not of all rows.
    """
    widths = [
        max([len(header[column]), *(min(len(row[column]), WIDEST) for row in rows)]) for column in range(len(header))
    ]

    def line(cells: Sequence[str], mark: Callable[[int, str], str] | None) -> str:
        shown = []
        for column, (cell, width) in enumerate(zip(cells, widths)):
            last = column == len(cells) - 1
            padded = cell.rjust(width) if column in right else cell if last else cell.ljust(width)
            shown.append(mark(column, padded) if mark else padded)
        return "  ".join(shown).rstrip()

    return [style(line(header, None), "bold"), *(line(row, paint) for row in rows)]


WIDEST = 80


def more(total: int, shown: int, what: str, several: str = "") -> list[str]:
    """The line that says how many rows were left out; `what` is one of them, `several` are more (default: what + s)."""
    left = counted(total - shown, f"more {what}", several and f"more {several}")
    return [f"... and {left} (--limit 0 shows all)"] if total > shown else []


def traces_text(report: Json) -> str:
    """`trace 12ab...`, or how many traces a merged profile is of."""
    return f"trace {report['trace']}" if "trace" in report else f"merged of {counted(len(report['traces']), 'trace')}"


def cell(value: Any) -> str:
    """Any JSON value in a few characters: numbers with separators, instructions and loops by their place."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return _object_cell(value)
    if isinstance(value, list):
        shown = [cell(part) for part in value[:LISTED]]
        return ", ".join(shown) + (f", ... ({len(value)})" if len(value) > LISTED else "")
    return str(value)


def number_with_unit(value: Any, in_percent: bool) -> str:
    """A cell; a number that is in percent says so."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return cell(value) + ("%" if in_percent and is_number else "")


LISTED = 6
"""Members of a list that a cell shows."""


NAMED = ("path", "edge", "call")
"""Kinds of places that stand for more than a line: their names say what."""


def _object_cell(value: Json) -> str:
    if "path" in value and "root" in value:  # a context
        return " > ".join([value["root"], *value["path"]])
    if value.keys() == {"function", "created"}:  # what a thread is for
        return (
            f"{value['function']} created in {cell(value['created'])}" if value["created"] else str(value["function"])
        )
    if "line" in value and "function" in value:  # an instruction or a loop
        place = instruction_text({"file": "", "column": 0, "kind": "loop", **value}).rstrip()
        return f"{place} {value['name']}" if value.get("kind") in NAMED else place
    return ", ".join(f"{key} {cell(part)}" for key, part in value.items())
