"""Profiles as JSON: the bytes that `--json` prints and that profile files have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracekit.modules.table import ROWS, Table
from tracekit.profiles.gc_paused import gc_paused

Json = Mapping[str, Any]


@gc_paused()
def as_json(reports: Sequence[Json]) -> str:
    """One report as an object, several as a list; the rows of a result's tables stand one on a line."""
    return "".join(json_parts(reports))


def json_parts(reports: Sequence[Json]) -> Iterator[str]:
    """The text of `as_json` in parts, each of ROWS rows at most; whoever takes them pauses the collector."""
    if len(reports) == 1:
        yield from _report_json(reports[0])
        yield "\n"
        return
    for number, report in enumerate(reports):
        yield ",\n" if number else "[\n"
        yield from _report_json(report)
    yield "\n]\n" if reports else "[\n\n]\n"


def _report_json(report: Json) -> Iterator[str]:
    head = [f"{_dump(key)}: {_dump(value)}" for key, value in report.items() if key not in ("result", "evidence")]
    yield "{" + ", ".join(head) + ', "result": {'
    known: dict[int, str] = {}
    separator = "\n"
    for key, value in report["result"].items():
        yield f"{separator}{_dump(key)}: "
        if isinstance(value, (list, Table)) and value:
            yield from _rows_json(value, known)
        else:
            yield _dump([] if isinstance(value, Table) else value)
        separator = ",\n"
    yield "\n}" if report["result"] else "\n\n}"
    if "evidence" in report:  # of files; one part on a line
        parts = [f"{_dump(key)}: {_dump(value)}" for key, value in report["evidence"].items()]
        yield ', "evidence": {\n' + ",\n".join(parts) + "\n}"
    yield "}"


def _rows_json(rows: Sequence[Any], known: dict[int, str]) -> Iterator[str]:
    separator = "[\n"
    for part in rows.json_parts(_dump) if isinstance(rows, Table) else _joined_rows(rows, known):
        yield separator
        yield part
        separator = ",\n"
    yield "\n]"


def _joined_rows(rows: Sequence[Any], known: dict[int, str]) -> Iterator[str]:
    for first in range(0, len(rows), ROWS):
        yield ",\n".join([_row_json(row, known) for row in rows[first : first + ROWS]])


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
