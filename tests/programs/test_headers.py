"""Loops that stand in headers of the system and were inlined: they have the user's lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import compile_program, record, tracekit
from tracekit.api import analyze

SOURCE = """int data[64], twice;
# 5 "/usr/include/made/up.h"
static inline __attribute__((always_inline)) int sum(const int *from, int n) {
  int total = 0;
  for (int i = 0; i < n; i++) total = total * 3 ^ from[i];
  return total;
}
static inline __attribute__((always_inline)) int both(const int *from) {
  return sum(from, 20) + from[0];
}
static __attribute__((noinline)) int far(const int *from) {
  int total = 0;
  for (int i = 0; i < 9; i++) total = total * 5 ^ from[i];
  return total;
}
# 20 "FOLDER/user.c"
static __attribute__((noinline)) int once(void) {
  return both(data);
}
int main(void) {
  for (int i = 0; i < 64; i++) data[i] = i;
  twice = sum(data, 30);
  twice += sum(data + 10, 30);
  return (twice + once() + far(data)) & 1;
}
"""
HEADER = "/usr/include/made/up.h"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headers")
    (folder / "app.c").write_text(SOURCE.replace("FOLDER", str(folder)))
    return record(compile_program([folder / "app.c"], folder / "app", ["-g", "-O1"], instrumented=True)).trace


def test_loops_of_headers_have_the_lines_that_they_were_inlined_into(trace: Path) -> None:
    loops: list[dict[str, Any]] = [row["loop"] for row in analyze(trace, "camp", jobs=1).result["loops"]]
    found = {
        (loop["function"], loop["file"], loop["line"]): [
            (each["file"], each["line"], each["function"]) for each in loop.get("called_at", ())
        ]
        for loop in loops
    }
    user = str(trace.with_name("user.c"))
    assert found == {
        ("main", user, 24): [],
        ("main", HEADER, 7): [(user, 25, "main"), (user, 26, "main")],
        ("once", HEADER, 7): [(user, 21, "once")],
        ("far", HEADER, 15): [],
    }


def test_text_shows_them(trace: Path, tmp_path: Path) -> None:
    for module in ("camp", "lamp", "advise"):
        options = ("--top", "0") if module == "advise" else ()
        shown = tracekit("analyze", "-m", module, *options, trace)
        if module == "advise":  # which speaks of the loop in the source, in the function whose text it is
            assert "made/up.h:7:3 (from user.c:21:10, user.c:25:11, ...) sum" in shown
            assert "in main  [1], inlined at user.c:25:11" in shown
        else:
            assert "made/up.h:7:3 (from user.c:25:11, user.c:26:12) main" in shown
            assert "made/up.h:7:3 (from user.c:21:10) once" in shown
        assert "made/up.h:15:3 far" in shown
    tracekit("report", "-o", tmp_path / "page.html", trace)
    assert "made/up.h:7:3 (from user.c:25:11, user.c:26:12) main" in (tmp_path / "page.html").read_text()


ALLOCATING = """#include <stdlib.h>
# 5 "/usr/include/made/up.h"
static __attribute__((noinline)) int *filled(int n) {
  int *made = malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) made[i] = i;
  return made;
}
static __attribute__((noinline)) int *twice(int n) { int *made = filled(2 * n); made[0] = n; return made; }
# 20 "FOLDER/user.c"
int main(void) {
  int *one = twice(7);
  int *two = filled(5);
  int *volatile own = malloc(8); own[0] = 1;
  return (one[0] + two[0] + own[0]) & 1;
}
"""


def test_blocks_that_headers_allocate_have_the_lines_that_called_them(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(ALLOCATING.replace("FOLDER", str(tmp_path)))
    made = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O1"], instrumented=True)).trace
    rows = analyze(made, "object_lifetime", jobs=1).result["sites"]
    found = {
        row["bytes"]: [place["line"] for place in row["object"]["site"].get("called_at", ())]
        for row in rows
        if row["object"]["kind"] == "heap"
    }
    assert found == {56: [21], 20: [22], 8: []}
    for module in "object_lifetime", "memory_errors":
        shown = tracekit("analyze", "-m", module, made)
        assert "up.h:6:15 (from user.c:21:14)" in shown
