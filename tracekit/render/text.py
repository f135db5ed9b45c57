"""What the texts of all profiles are made of: tables, cells, emphasis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from tracekit.counted import counted
from tracekit.render.folding import GAP, HANGING, fold, narrowed
from tracekit.render.places import instruction_text

Json = Mapping[str, Any]
"""A JSON object, to be read."""

WIDTH = 118
"""Columns that a line of text should not exceed."""


class Style:
    """What a terminal wants: emphasis, and lines of at most `width` characters (0: any). Nothing of it elsewhere."""

    CODES: ClassVar[Mapping[str, str]] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

    def __init__(self, colour: bool, width: int = 0) -> None:
        self.colour = colour
        self.width = width

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

    On a terminal, cells that are too wide for it take several lines, and if the last column has no room left beside the
    others, it is below them (or nowhere, if it has no head: bars): a string of the result may have several lines then.
    Elsewhere a row is a line, and a cell wider than WIDEST (a name of C++ with its parameters) shifts the rest of its
    row alone.
    """
    longest = _longest(header, rows)
    if not style.width:
        widths = [max(len(head), min(most, WIDEST)) for head, most in zip(header, longest)]
        return [style(_line(header, widths, right), "bold"), *(_line(row, widths, right, paint) for row in rows)]
    widths = narrowed(longest, right, style.width)
    last = len(header) - 1
    if last and last not in right and sum(widths) + GAP * last > style.width:
        above = table(header[:last], [row[:last] for row in rows], right, style, paint)
        below = [fold(cells[last], style.width - HANGING) if header[last] else [] for cells in (header, *rows)]
        return ["\n".join([line, *(" " * HANGING + part for part in parts)]) for line, parts in zip(above, below)]

    def lines(cells: Sequence[str], mark: Callable[[int, str], str] | None = None) -> str:
        folded = [[cell] if column in right else fold(cell, widths[column]) for column, cell in enumerate(cells)]
        return "\n".join(_line(part, widths, right, mark) for part in zip_longest(*folded, fillvalue=""))

    return [style(lines(header), "bold"), *(lines(row, paint) for row in rows)]


def has_room(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int], width: int) -> bool:
    """Whether the columns of such a table, as narrow as they may be, have room side by side on a terminal."""
    widths = narrowed(_longest(header, rows), right, width)
    return sum(widths) + GAP * (len(widths) - 1) <= width


def _longest(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max([len(header[column]), *(len(row[column]) for row in rows)]) for column in range(len(header))]


def _line(
    cells: Sequence[str], widths: Sequence[int], right: frozenset[int], paint: Callable[[int, str], str] | None = None
) -> str:
    shown = []
    for column, (cell, width) in enumerate(zip(cells, widths)):
        last = column == len(cells) - 1
        padded = cell.rjust(width) if column in right else cell if last else cell.ljust(width)
        shown.append(paint(column, padded) if paint and cell else padded)
    return (" " * GAP).join(shown).rstrip()


WIDEST = 80


def more(total: int, shown: int, what: str, several: str = "", option: str = "--limit") -> list[str]:
    """The line that says how many rows were left out; `what` is one of them, `several` are more (default: what + s)."""
    left = counted(total - shown, f"more {what}", several and f"more {several}")
    return [f"... and {left} ({option} 0 shows all)"] if total > shown else []


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


def clipped(text: str, longest: int = 60) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]} ... {text[-longest // 3 :]}"


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
