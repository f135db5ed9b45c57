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
