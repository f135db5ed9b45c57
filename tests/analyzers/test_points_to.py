"""The module ``points_to`` against its reference on random programs, and on fixtures/pointers.c."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_object_lifetime import fed, fresh, random_runs
from tests.naive.object_rows import ObjectRows
from tests.naive.points_to import NaivePointsTo
from tests.programs.running import FIXTURES, compile_program, record
from tracekit.analyzers.points_to import CLASSES, TOUCHED, PointsTo, PointsToOptions
from tracekit.formats.errors import TracekitError


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_it_is_its_reference(seed: int, streams: int) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = PointsTo(made.program, PointsToOptions(accesses=True))
    runner = fed(module, "points_to", events, 1 + seed % 60)
    result, _ = runner.result()
    naive = NaivePointsTo(made.program, fresh(module, runner._workers[0].state))
    naive.feed(events)
    rows = ObjectRows(made.program, module.profile)
    assert rows.found() == naive.found
    assert rows.plain() == naive.plain
    assert rows.never_dereferenced() == naive.never_dereferenced()
    made_pointers = Counter(min(event[2], len(made.program.ops)) for event in events if event[1] == 3)
    shown = [made.program.instruction(row) if row < len(made.program.ops) else None for row in sorted(made_pointers)]
    assert [row["instruction"] for row in result["pointers"]] == shown
    assert [row["count"] for row in result["pointers"]] == [made_pointers[row] for row in sorted(made_pointers)]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), limit=st.integers(1, 4))
def test_a_limit_leaves_large_sets_out_and_no_number(seed: int, limit: int) -> None:
    made, (events,) = random_runs(seed, 2, 1)
    events = [event for event in events if event[1] > 2]  # here a load may be one row with a pointer: in no program
    module = PointsTo(made.program, PointsToOptions(accesses=True, most=limit))
    rows = fed(module, "points_to", events, 50).result()[0]["pointers"]
    full = fed(PointsTo(made.program, PointsToOptions(accesses=True)), "points_to", events, 7).result()[0]["pointers"]
    assert [{**row, "objects": row["objects"] if len(row["objects"]) <= limit else None} for row in full] == rows


# -- known answers ---------------------------------------------------------------------------------

SOURCE = FIXTURES / "pointers.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))
POINTS = {
    number: {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", match.group(1))}
    for number, line in LINES
    if number > 2 and (match := re.search(r"// POINTS (.*)$", line))
}
ALL = (*CLASSES[:TOUCHED], "null", "elsewhere", "never_dereferenced")


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("pointers")
    flags = [request.param, "--pointers"]
    return record(compile_program([SOURCE], folder / "app", flags, instrumented=True)).trace


@pytest.fixture(scope="module")
def pointers(trace: Path) -> list[Any]:
    rows: list[Any] = tracekit.analyze(trace, "points_to", 1).result["pointers"]
    return rows


def at(pointers: list[Any], line: int) -> list[Any]:
    return [row for row in pointers if row["instruction"]["line"] == line]


@pytest.mark.parametrize("line", POINTS)
def test_the_classes_of_each_line(pointers: list[Any], line: int) -> None:
    (row,) = [row for row in at(pointers, line) if row["instruction"]["column"] > 5]
    assert {name: row[name] for name in ALL if row[name]} == POINTS[line]


def test_one_past_the_end_does_not_land_in_the_neighbour(pointers: list[Any]) -> None:
    blocks = next(number for number, line in LINES if "two blocks" in line)
    (row,) = [row for row in at(pointers, blocks + 2) if row["count"] == 6]
    (made,) = row["objects"]
    assert (made["site"]["line"], made["past_end"]) == (blocks, 1)
    first = min(each["column"] for each in _calls(pointers, blocks))
    assert made["site"]["column"] == first


def _calls(pointers: list[Any], line: int) -> list[Any]:
    return [row["instruction"] for row in at(pointers, line)]


def test_globals_are_named(pointers: list[Any]) -> None:
    names = {made["name"] for row in pointers for made in row["objects"] if made["kind"] == "global"}
    assert {"table", "edges"} <= names


def test_any_number_of_threads_says_the_same(trace: Path) -> None:
    reports = [tracekit.analyze(trace, "points_to", jobs).to_json() for jobs in (1, 2, 3)]
    assert reports[0] == reports[1] == reports[2]


def test_accesses_alone_say_which_objects_are_touched(trace: Path, tmp_path: Path) -> None:
    program = compile_program([SOURCE], tmp_path / "plain", ["-O1"], instrumented=True)
    plain = record(program).trace
    with pytest.raises(TracekitError, match=r"build the program again with tracekit cc --pointers, .* \(--accesses\)"):
        tracekit.analyze(plain, "points_to", 1)
    result = tracekit.analyze(plain, "points_to", 1, accesses=True).result
    assert result["pointers"] == []
    line = next(number for number, text in LINES if "*tail = 1" in text)
    (row,) = [row for row in result["accesses"] if row["instruction"]["line"] == line]
    assert [(made["kind"], made["accesses"]) for made in row["objects"]] == [("heap", 1)]
