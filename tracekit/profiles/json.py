"""Profiles as JSON: the bytes that `--json` prints and that profile files have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tracekit.modules.table import Table, dumped, joined_rows
from tracekit.profiles.gc_paused import gc_paused
from tracekit.profiles.shared import KEY, SharedTexts

Json = Mapping[str, Any]


@gc_paused()
def as_json(reports: Sequence[Json]) -> str:
    """One report as an object, several as a list; the rows of a result's tables stand one on a line."""
    return "".join(json_parts(reports))


def json_parts(reports: Sequence[Json], share: bool = False) -> Iterator[str]:
    """The text of `as_json` in parts, each of ROWS rows at most; whoever takes them pauses the collector.

    share: write values of several rows once (:mod:`tracekit.profiles.shared`).
    """
    if len(reports) == 1:
        yield from _report_json(reports[0], share)
        yield "\n"
        return
    for number, report in enumerate(reports):
        yield ",\n" if number else "[\n"
        yield from _report_json(report, share)
    yield "\n]\n" if reports else "[\n\n]\n"


def _report_json(report: Json, share: bool) -> Iterator[str]:
    shared = SharedTexts(dumped)
    dump = shared.dump if share else dumped
    head = [f"{dumped(key)}: {dumped(value)}" for key, value in report.items() if key not in ("result", "evidence")]
    yield "{" + ", ".join(head) + ', "result": {'
    known: dict[int, str] = {}
    separator = "\n"
    for key, value in report["result"].items():
        yield f"{separator}{dumped(key)}: "
        if isinstance(value, (list, Table)) and value:
            yield from _rows_json(value, dump, known)
        else:
            yield dumped([] if isinstance(value, Table) else value)
        separator = ",\n"
    yield "\n}" if report["result"] else "\n\n}"
    if texts := shared.texts():
        yield f', "{KEY}": [\n' + ",\n".join(texts) + "\n]"
    if "evidence" in report:  # of files; one part on a line
        parts = [f"{dumped(key)}: {dumped(value)}" for key, value in report["evidence"].items()]
        yield ', "evidence": {\n' + ",\n".join(parts) + "\n}"
    yield "}"


def _rows_json(rows: Sequence[Any], dump: Callable[[Any], str], known: dict[int, str]) -> Iterator[str]:
    separator = "[\n"
    for part in rows.json_parts(dump) if isinstance(rows, Table) else joined_rows(rows, dump, known):
        yield separator
        yield part
        separator = ",\n"
    yield "\n]"
