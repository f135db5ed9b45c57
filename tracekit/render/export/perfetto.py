"""Schedules in the Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing open.

A track for each thread, with a slice for each stretch on one processor, and a counter of its accesses a second; and a
track for each processor, with a slice for each thread that ran there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tracekit.formats.errors import TracekitError

Json = Mapping[str, Any]

THREADS, PROCESSORS = 1, 2
"""Numbers of the processes that the tracks stand in."""


def fits(report: Json) -> bool:
    """Whether it is a schedule."""
    return "stretches" in report["result"]


def write(report: Json, table: str) -> bytes:
    """The events. Raises TracekitError for profiles of other modules."""
    if not fits(report):
        raise TracekitError(f"perfetto shows a schedule (-m schedule), and this is a profile of {report['module']}.")
    if table:
        raise TracekitError("perfetto takes the whole schedule: leave --table out.")
    events = [*_names(report["result"]), *_slices(report["result"])]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":")).encode() + b"\n"


def _names(result: Json) -> Iterator[dict[str, Any]]:
    for process, name in ((THREADS, "threads"), (PROCESSORS, "processors")):
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
    for row in result["threads"]:
        name = f"{row['thread']} {row['role']}".rstrip()
        yield {"ph": "M", "pid": THREADS, "tid": row["thread"], "name": "thread_name", "args": {"name": name}}
    for row in result["processors"]:
        name = f"processor {row['processor']}"
        yield {"ph": "M", "pid": PROCESSORS, "tid": row["processor"], "name": "thread_name", "args": {"name": name}}


def _slices(result: Json) -> Iterator[dict[str, Any]]:
    roles = {row["thread"]: f"{row['thread']} {row['role']}".rstrip() for row in result["threads"]}
    for row in result["stretches"]:
        took = row["end"] - row["begin"]
        times = {"ts": row["begin"] / 1000, "dur": took / 1000}
        arguments = {"processor": row["processor"], "thread": row["thread"], "accesses": row["accesses"]}
        on = f"processor {row['processor']}"
        yield {"ph": "X", "pid": THREADS, "tid": row["thread"], "name": on, **times, "args": arguments}
        yield {
            "ph": "X",
            "pid": PROCESSORS,
            "tid": row["processor"],
            "name": roles[row["thread"]],
            **times,
            "args": arguments,
        }
        rate = row["accesses"] * 1e9 / took if took else 0.0
        counter = {"ph": "C", "pid": THREADS, "name": f"accesses/s of {roles[row['thread']]}"}
        yield {**counter, "ts": row["begin"] / 1000, "args": {"accesses": round(rate)}}
        yield {**counter, "ts": row["end"] / 1000, "args": {"accesses": 0}}
