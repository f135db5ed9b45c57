"""Profiles as JSON bytes and as text for a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tracekit.render_places import user_text, without_folder
from tracekit.uncollected import uncollected

Json = Mapping[str, Any]

WIDTH = 118
"""Columns that a line of text should not exceed."""


@uncollected()
def as_json(reports: Sequence[Json]) -> str:
    """One report as an object, several as a list; the rows of a result's tables stand one on a line."""
    texts = [_report_json(report) for report in reports]
    return (texts[0] if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]") + "\n"


def _report_json(report: Json) -> str:
    head = [f"{_dump(key)}: {_dump(value)}" for key, value in report.items() if key not in ("result", "evidence")]
    tables = []
    known: dict[int, str] = {}
    for key, value in report["result"].items():
        if isinstance(value, list) and value:
            tables.append(f"{_dump(key)}: [\n" + ",\n".join([_row_json(row, known) for row in value]) + "\n]")
        else:
            tables.append(f"{_dump(key)}: {_dump(value)}")
    last = ""
    if "evidence" in report:  # of files; one part on a line
        parts = [f"{_dump(key)}: {_dump(value)}" for key, value in report["evidence"].items()]
        last = ', "evidence": {\n' + ",\n".join(parts) + "\n}"
    return "{" + ", ".join(head) + ', "result": {\n' + ",\n".join(tables) + "\n}" + last + "}"


def _row_json(row: Any, known: dict[int, str]) -> str:
    """A row's JSON. Rows share instructions, contexts, levels: the text of each object is kept by its identity."""
    if not isinstance(row, dict):
        return _dump(row)
    parts = []
    for key, value in row.items():
        if isinstance(value, (dict, list)):
            text = known.get(id(value))
            if text is None:
                text = known[id(value)] = _dump(value)
        elif type(value) is int:
            text = str(value)
        else:
            text = _dump(value)
        parts.append(f'"{key}": {text}')
    return "{" + ", ".join(parts) + "}"


def _plain(value: Any) -> Any:
    """Arrays, which evidence holds, as lists."""
    return value.tolist()


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode


def as_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """The report for a person; at most `limit` rows of each table (0: all)."""
    painter = TEXTS.get(report["module"], _plain_text)
    text = painter(report, facts, limit, style)
    if "window" not in report:
        return text
    window = ", ".join(f"{part} {value}" for part, value in report["window"].items())
    return style(f"Only accesses inside the window: {window}", "bold") + "\n" + text


class Style:
    """Emphasis on a terminal, nothing elsewhere."""

    CODES: ClassVar[Mapping[str, str]] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, name: str) -> str:
        """`text`, emphasised as `name` says."""
        return f"\x1b[{self.CODES[name]}m{text}\x1b[0m" if self.colour and text else text


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int], style: Style,
          paint: Callable[[int, str], str] | None = None) -> list[str]:
    """Align `rows` under `header`; columns in `right` are flush right; the last column is not padded.

    A cell wider than WIDEST (a name of C++ with its parameters) shifts the rest of its row, not of all rows.
    """
    widths = [max([len(header[column]), *(min(len(row[column]), WIDEST) for row in rows)])
              for column in range(len(header))]

    def line(cells: Sequence[str], mark: Callable[[int, str], str] | None) -> str:
        shown = []
        for column, (cell, width) in enumerate(zip(cells, widths)):
            last = column == len(cells) - 1
            padded = cell.rjust(width) if column in right else cell if last else cell.ljust(width)
            shown.append(mark(column, padded) if mark else padded)
        return "  ".join(shown).rstrip()

    return [style(line(header, None), "bold"), *(line(row, paint) for row in rows)]


WIDEST = 80


def more(total: int, shown: int, what: str) -> list[str]:
    """The line that says how many rows were left out."""
    return [f"... and {total - shown:,} more {what} (--limit 0 shows all)"] if total > shown else []


def traces_text(report: Json) -> str:
    """`trace 12ab...`, or how many traces a merged profile is of."""
    return f"trace {report['trace']}" if "trace" in report else f"merged of {len(report['traces'])} traces"


def _plain_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """A module without a text of its own: each list of its result as a table, in the order that it is in."""
    carried_by = report.get("options", {}).get("carried_by")
    result = report["result"]
    tables, folder = without_folder({name: _greatest(value, report["module"])[: limit or None]
                                     if isinstance(value, list) else value for name, value in result.items()})
    loop = f", carried by loop {carried_by.removeprefix(f'{folder}/') if folder else carried_by}" if carried_by else ""
    lines = [f"{report['module']}, {traces_text(report)}" + loop + (f", files below {folder}" if folder else "")]
    for name, value in tables.items():
        lines += ["", style(name.replace("_", " "), "bold")]
        if isinstance(value, list):
            lines += _rows(value, style) + more(len(result[name]), len(value), "rows")
        elif isinstance(value, Mapping):
            width = max(map(len, value), default=0)
            lines += [f"{key.replace('_', ' '):{width}}  {cell(part)}" for key, part in value.items()]
        else:
            lines.append(cell(value))
    return "\n".join(lines) + "\n"


WEIGHTS = {"accesses": "bytes", "dependence": "count"}
"""Module -> the column by which its text has the greatest rows first. (JSON has them by place in the source.)"""


def _greatest(rows: list[Any], module: str) -> list[Any]:
    weight = WEIGHTS.get(module)
    return sorted(rows, key=lambda row: -row[weight]) if weight and rows and weight in rows[0] else rows


def _rows(rows: Sequence[Any], style: Style) -> list[str]:
    if not rows:
        return ["none"]
    if not all(isinstance(row, Mapping) for row in rows):
        return [cell(row) for row in rows]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    right = frozenset(number for number, column in enumerate(columns)
                      if all(isinstance(row.get(column), (int, float)) for row in rows))
    return table([column.replace("_", " ") for column in columns],
                 [[cell(row.get(column)) for column in columns] for row in rows], right, style)


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


LISTED = 6
"""Members of a list that a cell shows."""


def _object_cell(value: Json) -> str:
    if "path" in value and "root" in value:  # a context
        return " > ".join([value["root"], *value["path"]])
    if "line" in value and "function" in value:  # an instruction or a loop
        place = ":".join(str(value[key]) for key in ("file", "line", "column") if value.get(key))
        words = [(place or "?") + user_text(value), f"in {value['function']}" if value["function"] else "",
                 value.get("kind", "loop")]
        return " ".join(word for word in words if word)
    return ", ".join(f"{key} {cell(part)}" for key, part in value.items())


def _advise_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    from tracekit.render_advise import advise_text

    return advise_text(report, facts, limit, style)


def _dependence_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    from tracekit.render_dependence import dependence_text

    return dependence_text(report, facts, limit, style)


def _heatmap_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    from tracekit.render_heatmap import heatmap_text

    return heatmap_text(report, facts, limit, style)


def _objects_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    from tracekit import render_objects

    text: str = render_objects.TEXTS[report["module"]](report, facts, limit, style)
    return text


TEXTS: dict[str, Callable[[Json, Mapping[str, int], int, Style], str]] = {
    "advise": _advise_text,
    "camp": _dependence_text,
    "heatmap": _heatmap_text,
    "lamp": _dependence_text,
    "object_lifetime": _objects_text,
    "points_to": _objects_text,
    "privateer": _objects_text,
    "value_pattern": _objects_text,
}
"""Module -> how its report is written for a person."""
