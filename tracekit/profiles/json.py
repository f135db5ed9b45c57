"""Profiles as JSON: the bytes that `--json` prints and that profile files have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracekit.modules.table import Table, joined_rows
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
    for part in rows.json_parts(_dump) if isinstance(rows, Table) else joined_rows(rows, _dump, known):
        yield separator
        yield part
        separator = ",\n"
    yield "\n]"


def _plain(value: Any) -> Any:
    """Arrays, which evidence holds, as lists."""
    return value.tolist()


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode
