"""Loops of the source that the optimiser has replaced: what the image says of them, and what advise answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.programs.running import TRACEKIT, compile_program, record, run
from tests.programs.running import tracekit as command
from tracekit.program.fates import fate_at, fates

SOURCE = """#include <stdio.h>
enum { N = 200 };
static double a[N][N], b[N], c[N], unused[N];
static int k[N];
__attribute__((noinline)) void fill(int n) {
  for (int i = 0; i < n; i++)
#pragma unroll
    for (int j = 0; j < 3; j++) // unrolled 6
      a[i][j] = i + j * b[i];
  for (int i = 0; i < N; i++) // machine: set
    c[i] = 0;
  for (int i = 0; i < n; i++) // machine: copy
    b[i] = c[i];
  for (int i = 0; i < n; i++) // deleted
    unused[i] = i;
#pragma unroll
  for (int i = 0; i < 4; i++) // unrolled
    k[i] = 3 * k[i];
  for (int i = 0; i < n; i++)
    k[i] += 2;
}
__attribute__((noinline)) int closed(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) // computed
    s += i;
  return s;
}
static int three(int *p) {
  int s = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) // unrolled 44
    s += p[i];
  return s;
}
__attribute__((noinline)) void nest(void) {
  for (int j = 0; j < N; j++) // interchange: interchanged 37
    for (int i = 0; i < N; i++)
      a[i][j] = a[i][j] + 1;
}
int main(void) {
  fill(150);
  nest();
  int s = closed(20);
  for (int i = 0; i < 100; i++)
    s += three(k + i);
  printf("%d %g\\n", s, a[3][2] + c[3] + b[2]);
  return 0;
}
"""
BUILDS = {
    "O0": ["-O0"],
    "O1": ["-O1"],
    "O2": ["-O2"],
    "O3": ["-O3"],
    "machine": ["-O2", "--at=machine"],
    "interchange": ["-O2", "-mllvm", "-enable-loopinterchange"],
}


def expected(build: str) -> dict[int, tuple[str, int | None]]:
    """Line of a loop -> its fate, and the line of the loop that it has become a part of."""
    found: dict[int, tuple[str, int | None]] = {}
    for number, line in enumerate(SOURCE.splitlines(), 1):
        match = re.search(r"// (?:(\w+): )?(\w+)(?: (\d+))?$", line)
        if match and build != "O0" and match.group(1) in (None, build):
            found[number] = match.group(2), int(match.group(3)) if match.group(3) else None
    return found


@pytest.fixture(scope="module", params=BUILDS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("fates")
    (folder / "app.c").write_text(SOURCE)
    app = compile_program([folder / "app.c"], folder / "app", ["-g", *BUILDS[request.param]], instrumented=True)
    return request.param, record(app).trace


def test_each_loop_of_the_source_is_a_loop_or_has_a_fate(built: tuple[str, Path]) -> None:
    build, trace = built
    program = tracekit.open(trace).program
    found = {row["loop"]["line"]: (row["fate"], row["into"] and row["into"]["line"]) for row in fates(program)}
    assert found == expected(build)
    heads = {number for number, line in enumerate(SOURCE.splitlines(), 1) if "for (" in line}
    there = {program.place(int(loop["location"]))["line"] for loop in program.loops}
    interchanged = {line for line, (fate, _) in found.items() if fate == "interchanged"}
    assert there == heads - found.keys() | interchanged


def test_advise_answers_in_a_sentence(built: tuple[str, Path]) -> None:
    build, trace = built
    for line, (fate, into) in expected(build).items():
        text = " ".join(command("advise", f"app.c:{line}", trace).split())
        if fate == "interchanged":
            assert f"The loops at app.c:{line} and app.c:{into} are interchanged" in text
        else:
            assert f"The loop at app.c:{line} is not in the program as compiled: the optimiser" in text
        found = json.loads(command("advise", "--json", f"app.c:{line}", trace))["result"]
        assert found["replaced"]["fate"] == fate
        shown = line if fate == "interchanged" else into
        assert [row["loop"]["line"] for row in found["loops"]] == ([shown] if shown else [])
        if into and fate != "interchanged":
            assert f"runs in the loop at app.c:{into}." in text
            assert "Part of it since the program was optimised: the loop at " in text
            assert line in [held["loop"]["line"] for held in found["loops"][0]["holds"]]


def test_a_line_belongs_to_the_innermost_loop_around_it(built: tuple[str, Path]) -> None:
    build, trace = built
    program = tracekit.open(trace).program
    inside = fate_at(program, ("app.c", 9))
    assert (inside["loop"]["line"] if inside else None) == (None if build == "O0" else 8)
    assert fate_at(program, ("app.c", 6)) is None
    assert fate_at(program, ("app.c", 20)) is None
    assert fate_at(program, ("other.c", 8)) is None


def test_what_is_done_with_a_loop_says_why_it_is_not_there(built: tuple[str, Path]) -> None:
    build, trace = built
    for words in (["advise", "--patch", "app.c:14"], ["analyze", "-m", "footprint", "--loop", "app.c:14"]):
        refused = run([*TRACEKIT, *words, trace])
        if build != "O0":
            assert refused.status == 1
            assert b"app.c:14 is not in the program as compiled" in refused.stderr


def test_an_image_with_a_fate_that_nobody_knows_is_refused(built: tuple[str, Path]) -> None:
    from tracekit.formats.errors import TracekitError
    from tracekit.formats.reader import TraceReader
    from tracekit.program.linker import link

    class Changed:
        def __init__(self, unit: Any) -> None:
            rows = unit.tables["loop_fates"].copy()
            rows["fate"] = 99
            self.tables, self.hash = {**unit.tables, "loop_fates": rows}, unit.hash

    with TraceReader(built[1]) as reader:
        units = [unit for image in reader.images() for unit in image.units]
    if built[0] == "O0":
        link([Changed(unit) for unit in units])
    else:
        with pytest.raises(TracekitError, match="loop_fates"):
            link([Changed(unit) for unit in units])


LINES = """int printf(const char *, ...);
enum { N = 64 };
static int b[N];
int main(int argc, char **argv) {
  int i, k = argc, m = argc;
  for (i = 0; i < N; i++) b[i] = i * 3;
  for (i = 0; i < argc * N; i++) k += 2; for (i = 0; i < N; i++) b[i] += i;
  for (i = 0; i < 1; i++) m += b[i]; for (i = 0; i < N; i++) b[i] += m;
  return printf("%d %d %d\\n", b[N - 1], k, m) < 0;
}
"""


def test_a_loop_behind_one_in_its_line_that_is_gone_has_no_directive(tmp_path: Path) -> None:
    """A directive before that line would be about the other loop, whose iterations share a sum."""
    (tmp_path / "lines.c").write_text(LINES)
    app = compile_program([tmp_path / "lines.c"], tmp_path / "lines", ["-g", "-O1", "-w"], instrumented=True)
    rows = json.loads(command("advise", "--json", "--top", "0", "--min-share", "0", record(app).trace))
    found = {row["loop"]["line"]: row["openmp"] for row in rows["result"]["loops"]}
    assert {line for line, openmp in found.items() if openmp["pragma"]} == {6}
    assert all(found[line]["missing"].startswith("another loop begins before it") for line in (7, 8))
