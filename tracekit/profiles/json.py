"""Profiles as JSON: the bytes that `--json` prints and that profile files have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.profiles.gc_paused import gc_paused

Json = Mapping[str, Any]


@gc_paused()
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
