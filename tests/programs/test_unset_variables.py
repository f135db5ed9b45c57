"""Variables that a loop's body declares and does not set on every path: no iteration has what the one before left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze

SOURCE = """#include <stdio.h>
#define NOINLINE __attribute__((noinline)) static
enum { N = 300 };
static int kinds[N], in[2 * N], out[N], rest = 400;
NOINLINE void by_switch(int n, int kind) {
  for (int i = 0; i < n; i++) { // free
    int stride;
    switch (kind) {
    case 0: stride = 1; break;
    case 1: stride = n; break;
    }
    out[i] = in[i + stride];
  }
}
NOINLINE void by_two_tests(int n) {
  for (int i = 0; i < n; i++) { // free
    int k;
    if (kinds[i] == 0) k = 3;
    if (kinds[i] != 0) k = in[i];
    out[i] = k;
  }
}
NOINLINE void in_a_loop_around(int n) {
  for (int j = 0; j < 3; j++) { // carried: each of them stores all of out
    for (int i = 0; i < n; i++) { // free
      double factor;
      if (kinds[i] == 0) factor = j;
      if (kinds[i] != 0) factor = j + 0.5;
      out[i] += factor * in[i];
    }
  }
}
NOINLINE void used_in_a_loop_inside(int n) {
  for (int i = 0; i < n - 3; i += 4) { // free
    int k;
    if (kinds[i] == 0) k = 5;
    if (kinds[i] != 0) k = 7;
    for (int j = 0; j < 4; j++)
      out[i + j] = k * j;
  }
}
NOINLINE void while_there_are(int n) {
  while (n-- > 0) { // free
    int k;
    if (kinds[n] == 0) k = 5;
    if (kinds[n] != 0) k = 7;
    out[n] = k;
  }
}
NOINLINE void declared_outside(int n) {
  int k;
  for (int i = 0; i < n; i++) { // carried
    if (i % 3 == 0) k = in[i];
    out[i] = k;
  }
}
NOINLINE void declared_in_the_head(int n) {
  for (int i = 0, k; i < n; i++) { // carried
    if (i % 3 == 0) k = in[i];
    out[i] = k;
  }
}
NOINLINE void has_it_from_outside(int n) {
  int last;
  for (int i = 0; i < n; i++) { // carried
    int k;
    if (i > 0) k = last;
    if (i == 0) k = n;
    out[i] = k;
    last = (k * 5 + in[i]) % 9;
  }
}
NOINLINE void declared_around(int n) {
  for (int j = 0; j < 2; j++) {
    int k;
    for (int i = 0; i < n; i++) { // carried
      if (i % 3 == 0) k = in[i];
      out[i] = k;
    }
  }
}
NOINLINE void goes_back(int n) {
  int i = 0;
  while (i < n) {
    int k;
  again: // carried
    if (i % 3 == 0) k = in[i];
    out[i++] = k;
    if (i < n && i % 5) goto again;
  }
}
NOINLINE void in_an_endless_loop(int n) {
  for (;;) {
    int k;
    int i = 0;
    do { // carried
      if (i % 3 == 0) k = in[i];
      out[i] = k;
    } while (++i < n);
    if (--rest < 398) return;
  }
}
int main(void) {
  for (int i = 0; i < N; i++) kinds[i] = i % 2, in[i] = in[N + i] = i * 7 % 31;
  by_switch(N, kinds[2]);
  by_two_tests(N);
  in_a_loop_around(N);
  used_in_a_loop_inside(N);
  while_there_are(N);
  declared_outside(N);
  declared_in_the_head(N);
  has_it_from_outside(N);
  declared_around(N);
  goes_back(N);
  in_an_endless_loop(N);
  printf("%d %d\\n", out[5], out[17]);
  return 0;
}
"""
LINES = SOURCE.splitlines()
FREE = {number for number, line in enumerate(LINES, 1) if line.endswith("// free")}
CARRIED = {
    next(at for at in range(number, 0, -1) if LINES[at - 1].startswith("NOINLINE"))
    for number, line in enumerate(LINES, 1)
    if line.endswith("// carried")
}
"""Where functions begin that have a loop in which a variable is carried."""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_what_an_iteration_does_not_set_comes_from_no_other(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(SOURCE)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    carried, free = set(), set()
    for row in analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]:
        line = row["loop"]["line"]
        begins = next(at for at in range(line, 0, -1) if "(" in LINES[at - 1] and not LINES[at - 1].startswith(" "))
        names = {
            each["source"]["name"]
            for case in row["cases"]
            for each in case["blocked_by"]
            if each["reason"] == "recurrence"
        }
        if names & {"k", "last"}:
            carried.add(begins)
        if line in FREE:
            free.add(line)
            assert not any(each["reason"] == "recurrence" for case in row["cases"] for each in case["blocked_by"])
            if LINES[line - 1].lstrip().startswith("for"):
                assert (row["openmp"] or {}).get("pragma") == "#pragma omp parallel for", row["loop"]
    assert free == FREE
    assert carried == CARRIED
