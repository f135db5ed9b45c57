"""No directive for a loop that called, in another file, what uses a thread-local variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze

APP = """
#include <stdio.h>
double by_factor(double), deep(double, int), square(double), may_scale(double, int), shallow(double, int);
void set_factor(double);
enum { N = 64 };
static double input[N], output[N];
static double (*volatile kinds[])(double) = {square, by_factor};
int main(void)
{
    double (*kind)(double) = kinds[0], (*other)(double) = kinds[1];
    set_factor(3);
    for (int i = 0; i < N; i++) // SHARED
        input[i] = i;
    for (int i = 0; i < N; i++) // OWN
        output[i] = by_factor(input[i]);
    for (int i = 0; i < N; i++) // SHARED
        output[i] += square(input[i]);
    for (int i = 0; i < N; i++) // SHARED
        output[i] += may_scale(input[i], 0);
    for (int i = 0; i < N; i++) // OWN
        output[i] += may_scale(input[i], 1);
    for (int i = 0; i < N; i++) // SHARED
        output[i] += kind(input[i]);
    for (int i = 0; i < N; i++) // OWN
        output[i] += other(input[i]);
    for (int i = 0; i < N; i++) // OWN
        output[i] += deep(input[i], 3);
    for (int i = 0; i < N; i++) // SHARED
        output[i] += shallow(input[i], 3);
    printf("%g\\n", output[5]);
    return 0;
}
"""
OTHER = """
static _Thread_local double factor = 1;
void set_factor(double to) { factor = to; }
double by_factor(double x) { return x * factor; }
double square(double x) { return x * x; }
"""
THIRD = """
double by_factor(double);
double may_scale(double x, int really) { return really ? by_factor(x) : x + 1; }
double deep(double x, int depth) { return depth ? deep(x, depth - 1) + 1 : by_factor(x); }
double shallow(double x, int depth) { return depth ? shallow(x, depth - 1) + 1 : x; }
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("rule", ["dynamic", "static"])
def test_a_loop_that_used_another_files_thread_local_has_no_directive(level: str, rule: str, tmp_path: Path) -> None:
    sources = []
    for name, text in (("app", APP), ("other", OTHER), ("third", THIRD)):
        sources.append(tmp_path / f"{name}.c")
        sources[-1].write_text(text)
    compile_program(sources, tmp_path / "app", ["-g", level], instrumented=True)
    trace = record(tmp_path / "app").trace
    rows = analyze(trace, "advise", jobs=1, top=0, min_share=0.0, contexts=rule).result["loops"]
    rows = [row for row in rows if row["loop"]["file"] == str(sources[0])]
    lines = APP.splitlines()
    assert {row["loop"]["line"]: row["verdict"] for row in rows} == {
        number: "doall" for number, line in enumerate(lines, 1) if "// " in line
    }
    for row in rows:
        if lines[row["loop"]["line"] - 1].endswith("// OWN"):
            assert row["openmp"]["pragma"] is None and "thread-local" in row["openmp"]["missing"], row["loop"]
        else:
            assert row["openmp"]["pragma"] is not None, row["loop"]
