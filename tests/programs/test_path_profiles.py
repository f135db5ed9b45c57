"""The module ``paths`` on programs: the talk's table, the naive reader on fixtures, coverage as clang counts it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.naive.paths import Paths, line_counts, path_steps
from tests.naive.reader import read
from tests.needs import clang_folder, needs
from tests.paths.test_paths import assert_naive, counted_records
from tests.programs.running import FIXTURES, Recording, compile_program, record, run_here
from tracekit.paths.lines import Lines

SOURCE = FIXTURES / "path_table.c"
LETTER = {
    number: text.rpartition("// ")[2]
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
    if "seen[" in text and "// " in text
}
FIRST = {"ACDF": 90, "ACDEF": 60, "ABCDEF": 100, "ABDF": 20}
SECOND = {"ACDF": 110, "ACDEF": 40, "ABCDEF": 100, "ABDEF": 20}
"""The talk's table; of ABCDF there is none in either."""


def letters(path: dict[str, Any]) -> str:
    """The letters of a path's lines."""
    return "".join(LETTER[line] for line in path["lines"] if line in LETTER)


def of_walk(result: dict[str, Any], table: str, key: str) -> list[dict[str, Any]]:
    return [row for row in result[table] if row[key]["function"] == "walk"]


@pytest.mark.parametrize("level", [0, 1])
def test_the_talks_table_is_told_apart_where_edges_are_equal(
    level: int, recording: Callable[..., Recording], tmp_path: Path
) -> None:
    profiles = [tracekit.analyze(recording("path_table.c", level, which).trace, "paths") for which in ("1", "2")]
    rows = [of_walk(profile.result, "paths", "path") for profile in profiles]
    assert [{letters(row["path"]): row["frequency"] for row in found} for found in rows] == [FIRST, SECOND]
    edges = [of_walk(profile.result, "edges", "edge") for profile in profiles]
    assert edges[0] == edges[1] and sum(row["count"] for row in edges[0]) > 600
    functions = [of_walk(profile.result, "functions", "function") for profile in profiles]
    assert functions[0][0]["counts"] == functions[1][0]["counts"]
    if level:  # at -O0 arguments lie in memory, too
        for row in (row for found in rows for row in found):
            assert row["loads"] == row["stores"] == len(letters(row["path"])) * row["frequency"]
            assert row["bytes"] == 4 * (row["loads"] + row["stores"]) and row["inclusive"] == 2 * row["loads"]
    for profile, name in zip(profiles, "12"):
        profile.save(tmp_path / name)
    outcome = run_here("diff", tmp_path / "1", tmp_path / "2", "--json")
    tables = json.loads(outcome.stdout)["tables"]
    changed = {letters(row["path"]): row["changes"].get("frequency") for row in tables["paths"]["changed"]}
    assert [changed[name]["before"] for name in ("ACDF", "ACDEF")] == [90, 60]
    assert [changed[name]["after"] for name in ("ACDF", "ACDEF")] == [110, 40]
    assert set(changed) - {""} == {"ACDF", "ACDEF"}
    assert {letters(row["path"]) for row in tables["paths"]["gone"]} - {""} == {"ABDF"}
    assert {letters(row["path"]) for row in tables["paths"]["new"]} - {""} == {"ABDEF"}
    of_edges = [row["edge"]["function"] for kind in ("new", "gone", "changed") for row in tables["edges"][kind]]
    assert "walk" not in of_edges
    (merged,) = tracekit.merge([tmp_path / "1", tmp_path / "2"])
    both = {letters(row["path"]): row["frequency"] for row in of_walk(merged.result, "paths", "path")}
    assert both == {"ACDF": 200, "ACDEF": 100, "ABCDEF": 200, "ABDF": 20, "ABDEF": 20}


@pytest.mark.parametrize(
    "name, level",
    [
        ("tail_calls.c", 2),
        ("longjmp.c", 1),
        ("siglongjmp.c", 1),
        ("signals.c", 1),
        ("threads.c", 1),
        ("exceptions.cpp", 0),
        ("exceptions.cpp", 2),
        ("recursion.c", 2),
        ("qsort.c", 2),
        ("bulk.c", 2),
        ("vectors.c", 2),
        ("control_flow.c", 1),
        ("control_flow.c", 0),
        ("endings.c", 1),
    ],
)
def test_fixtures_give_the_naive_paths(name: str, level: int, recording: Callable[..., Recording]) -> None:
    data = recording(name, level).trace.read_bytes()
    naive = read(data)
    runs = {number for number, row in naive.path_row.items() if naive.tables["paths"][row]["flags"]}
    for stream, records in naive.streams.items():  # long loops would take the naive reader too long
        naive.streams[stream] = [
            (number, [min(words[0], 20)] if number in runs else words) for number, words in records[:10_000]
        ]
    with tracekit.open(recording(name, level).trace) as trace:
        sums = counted_records(trace.program, naive.streams)
        shown = Lines(trace.program)
        lines = shown.counts(sums.block_counts())
    assert len(sums.paths()) > 3
    for path in sums.paths():
        steps = path_steps(naive, path.blocks)
        assert not steps or shown.of_blocks(path.blocks) == steps
    paths = Paths(naive)
    assert_naive(sums, paths)
    assert {(row["file"].rpartition("/")[2], row["line"]): row["count"] for row in lines} == line_counts(
        naive, paths.blocks
    )


INLINED = """#include <algorithm>
static volatile int odd, even;
static int count(int at)
{
    if (at & 1)
        odd = odd + 1;
    else
        even = even + 1;
    return at;
}
static int both(int at)
{
    return count(at) + std::max<volatile int>(odd, at);
}
__attribute__((noinline)) int walk(int at)
{
    odd = at;
    return both(at);
}
int main()
{
    return walk(3) + walk(4) == 0;
}
"""


def test_lines_of_inlined_functions_stand_behind_their_call(tmp_path: Path) -> None:
    """The two walks differ there alone. Of what stands in a system's file the line around it is named."""
    (tmp_path / "app.cpp").write_text(INLINED)
    program = compile_program([tmp_path / "app.cpp"], tmp_path / "app", ["-g", "-O1"], instrumented=True)
    result = tracekit.analyze(record(program).trace, "paths").result
    walks = [row["path"] for row in result["paths"] if row["path"]["function"] == "walk(int)"]
    assert {walk["name"] for walk in walks} == {"17, 18 (count 5-6; both 13)", "17, 18 (count 5, 8; both 13)"}
    assert all(walk["lines"] == [17, 18] for walk in walks)
    both = {"line": 18, "function": "both(int)", "lines": [13]}
    counts = [{"line": 18, "function": "count(int)", "lines": lines} for lines in ([5, 6], [5, 8])]
    assert sorted((walk["inlined"] for walk in walks), key=str) == [[count, both] for count in counts]
    edges = {row["edge"]["name"] for row in result["edges"] if row["edge"]["function"] == "walk(int)"}
    assert {"18 (count 5) to 18 (count 6)", "18 (count 8) to 18 (both 13)"} <= edges


EXPLAINED = {
    "path_table.c": {},
    # clang counts how often a region goes on into a closing brace, tracekit how often its code ran, which leaves the
    # function or the loop; and clang takes the label behind a computed goto for a part of the statement before.
    "control_flow.c": {34: (1, 10), 61: (153, 630), 64: (137, 140)},
    "recursion.c": {39: (230, 120)},
    "endings.c": {},
    "qsort.c": {},
    "known_verdicts.c": {101: (40, 41)},
}
"""Lines that clang counts otherwise: (tracekit's number, clang's)."""


def lines_of(tracefile: str, name: str) -> dict[int, int]:
    """The counts of a file's lines in lcov's form."""
    (record,) = [part for part in tracefile.split("end_of_record") if f"/{name}\n" in part]
    pairs = [line[3:].split(",")[:2] for line in record.splitlines() if line.startswith("DA:")]
    return {int(line): int(count) for line, count in pairs}


@needs("profile runtime")
@needs("llvm tools")
@pytest.mark.parametrize("name", EXPLAINED)
def test_lines_ran_as_often_as_clang_counts(name: str, recording: Callable[..., Recording], tmp_path: Path) -> None:
    ours = run_here("analyze", "-m", "paths", "--format", "lcov", recording(name, 0).trace).stdout.decode()
    flags = ["-g", "-O0", "-fprofile-instr-generate", "-fcoverage-mapping"]
    program = compile_program([FIXTURES / name], tmp_path / "counted", flags, instrumented=False)
    raw, merged, tools = tmp_path / "raw", tmp_path / "merged", clang_folder() / "bin"
    subprocess.run([program], env={**os.environ, "LLVM_PROFILE_FILE": str(raw)}, capture_output=True, timeout=60)
    subprocess.run([tools / "llvm-profdata", "merge", "-o", merged, raw], check=True)
    export = [tools / "llvm-cov", "export", "-format=lcov", f"-instr-profile={merged}", program]
    clangs = subprocess.run(export, check=True, capture_output=True, text=True).stdout
    own, other = lines_of(ours, name), lines_of(clangs, name)
    assert own.keys() <= other.keys() and len(own) > 20
    different = {line: (count, other[line]) for line, count in own.items() if count != other[line]}
    assert different == EXPLAINED[name]


@needs("lcov")
def test_genhtml_shows_the_coverage(recording: Callable[..., Recording], tmp_path: Path) -> None:
    tracefile = tmp_path / "coverage.info"
    tracefile.write_bytes(
        run_here("analyze", "-m", "paths", "--format", "lcov", recording("path_table.c", 0, "1").trace).stdout
    )
    done = subprocess.run(
        ["genhtml", "-q", "-o", tmp_path / "html", tracefile], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    page = next((tmp_path / "html").rglob("path_table.c.gcov.html")).read_text()
    line = next(number for number, letter in LETTER.items() if letter == "B")
    (shown,) = [text for text in page.splitlines() if "seen[1]++" in text]
    assert "120" in shown and str(line) in shown


def test_the_command_line(recording: Callable[..., Recording], tmp_path: Path) -> None:
    trace = recording("path_table.c", 0, "1").trace
    shown = run_here("analyze", "-m", "paths", trace).stdout.decode()
    assert "run: 3 of 3 functions" in shown and "back to" in shown and "hot path across calls" in shown
    alone, beside = (
        run_here("analyze", *words, "-j", jobs, "--json", trace).stdout
        for words, jobs in ((("-m", "paths"), "1"), (("-m", "paths", "-m", "accesses"), "2"))
    )
    both = json.loads(beside)
    assert both[0] == json.loads(alone)
    loads = both[1]["result"]["summary"]["loads"]
    assert both[0]["result"]["summary"]["loads"] == loads > 0
    assert both[0]["result"]["hot"][0]["inclusive"] == loads + both[1]["result"]["summary"]["stores"]
    profile = tmp_path / "profile"
    assert run_here("analyze", "-m", "paths", "-o", profile, trace).status == 0
    lcov = run_here("analyze", "-m", "paths", "--format", "lcov", trace).stdout
    assert run_here("merge", profile, "--format", "lcov").stdout == lcov
    assert run_here("report", profile, "-o", tmp_path / "page.html").status == 0
    assert "<caption>Functions that ran</caption>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    "words, status, message",
    [
        (("-m", "paths", "--function", "walk"), 1, "The module paths looks at whole runs: leave out the window."),
        (("-m", "paths", "--segments", "2"), 1, "The module paths is not analysed in segments"),
        (("-m", "paths", "--most", "0"), 2, "most is 1 to"),
        (
            ("-m", "accesses", "--format", "lcov"),
            2,
            "--format lcov writes what one module counts, paths, not accesses.",
        ),
        (("-m", "paths", "-m", "camp", "--format", "lcov"), 2, "paths, not paths and camp"),
    ],
)
def test_what_it_cannot_do_it_says(
    words: tuple[str, ...], status: int, message: str, recording: Callable[..., Recording]
) -> None:
    outcome = run_here("analyze", *words, recording("path_table.c", 0, "1").trace)
    assert outcome.status == status and message in outcome.stderr.decode() and b"Traceback" not in outcome.stderr
