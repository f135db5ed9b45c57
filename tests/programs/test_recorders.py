"""The recorders against each other: what --record=paths derives is what --record=blocks records in place.

With --record=both one run carries both, and `tracekit check` compares block for block and address for address. And the
plain recorders, in runs of their own, give the same events in the same order: only addresses and processes differ.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs.conftest import Build
from tests.programs.running import record, replayed, tracekit
from tests.programs.test_programs import CASES, Case
from tracekit.formats.events import BY_CODE

SEQUENTIAL = [
    case
    for case in CASES
    if case.source
    not in {
        "threads.c",
        "signals.c",
        "fork.c",
        "endings.c",
        "dlopen.c",
        "tail_calls.c",
        "siglongjmp.c",
        "containers.cpp",
    }
]
"""Two runs of these have the same events."""


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("case", [case for case in CASES if case.source != "dlopen.c"], ids=str)
def test_both_in_one_run(case: Case, level: int, build: Build) -> None:
    recording = record(build(case.source, level, how="both"), case.arguments, case.stdin)
    compared = re.search(r"([\d,]+) addresses and ([\d,]+) blocks", tracekit("check", recording.trace))
    assert compared, "nothing was compared"
    assert int(compared[2].replace(",", "")) > 0


@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("case", SEQUENTIAL, ids=str)
def test_two_recorders_two_runs(case: Case, level: int, build: Build) -> None:
    shapes = []
    for how in ("paths", "blocks"):
        recording = record(build(case.source, level, how=how), case.arguments, case.stdin)
        tracekit("check", recording.trace)
        shapes.append(shape(recording.trace))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("how", ["paths", "blocks"])
@pytest.mark.parametrize("level", [0, 2])
def test_nothing_is_lost_before_a_builtin_longjmp(how: str, level: int, build: Build) -> None:
    """It is an intrinsic that does not return: a record finished only after it would never be."""
    case = next(case for case in CASES if case.source == "builtin_longjmp.c")
    recording = record(build(case.source, level, how=how))
    found = replayed(recording.trace)
    entered = sum(
        BY_CODE[kind].name == "function_entry" and found.program.function_name(subject) == "leap"
        for _, kind, subject, _, _ in found.events
    )
    assert entered == 31  # three in each of ten rounds, and one sideways


def shape(trace: Path) -> list[tuple[Any, ...]]:
    """The events without what differs from run to run and from recorder to recorder: addresses, rows, buffers."""
    found = replayed(trace)
    places: dict[int, Any] = {}

    def place(row: int) -> Any:
        if row not in places:
            places[row] = (
                row
                if row >= len(found.program.ops)
                else tuple(found.program.instruction(row)[key] for key in ("file", "line", "column"))
            )
        return places[row]

    rows: list[tuple[Any, ...]] = []
    for stream, kind, subject, _, size in found.events:
        event = BY_CODE[kind]
        if event.name in ("program_start", "program_end", "hand_over"):
            continue
        rows.append(
            (
                stream,
                event.name,
                place(subject) if event.subject == "instruction" else subject,
                place(size) if event.size == "call" else size,
            )
        )
    return rows
