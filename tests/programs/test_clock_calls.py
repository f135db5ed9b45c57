"""Which loops are said to read the clock: those that did in the run, not those that might by the program's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze

SOURCE = """
#include <stdio.h>
#include <time.h>
enum { N = 64 };
static double input[N], output[N];
#define APART __attribute__((noinline)) static
APART double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}
APART double square(double x) { return x * x; }
APART double measured(double x) { double from = now(); return x * x + (now() < from); }
static double (*volatile kinds[])(double) = {square, measured};
APART double checked(double x) { return x < -1 ? now() : x + 1; }
APART double deep(double x, int depth) { return depth ? deep(x, depth - 1) : measured(x); }
APART double shallow(double x, int depth) { return depth ? shallow(x, depth - 1) + 1 : x > 99 ? now() : x; }
int main(void)
{
    double (*kind)(double) = kinds[0], (*other)(double) = kinds[1];
    for (int i = 0; i < N; i++)
        input[i] = i;
    for (int i = 0; i < N; i++)
        output[i] += kind(input[i]);
    for (int i = 0; i < N; i++)
        output[i] += checked(input[i]);
    for (int i = 0; i < N; i++) // MAY
        output[i] += shallow(input[i], 3);
    for (int i = 0; i < N; i++) // CLOCK
        output[i] += other(input[i]);
    for (int i = 0; i < N; i++) // CLOCK
        for (int k = 0; k < 9; k++) // CLOCK
            output[i] += deep(input[i], 3);
    for (int i = 0; i < N; i++) { // CLOCK
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        output[i] += t.tv_sec > 0;
    }
    printf("%d\\n", output[5] > 0);
    return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("rule", ["dynamic", "static"])
def test_a_loop_reads_the_clock_if_something_in_it_did(level: str, rule: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(SOURCE)
    trace = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True)).trace
    result = analyze(trace, "advise", min_share=0, top=0, contexts=rule).result
    told = {row["loop"]["line"] for row in result["loops"] for case in row["cases"] if case["clocks"]}
    marks = ("// CLOCK", "// MAY") if rule == "static" else ("// CLOCK",)  # by that, a recursion is one context
    assert told == {number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(marks)}
