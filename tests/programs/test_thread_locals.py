"""No directive for a loop that called, in another file, what uses a thread-local variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import needs
from tests.programs.running import TRACEKIT, compile_program, record, run
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


HEADER = """
#define BIG 1
extern double scale[3];
#pragma omp threadprivate(scale) // of all threads one
double scaled(double);
"""
PRAGMAS = """
#include <stdio.h>
#include "app.h"
/* #pragma omp threadprivate(output) */
enum { N = 64 };
double scale[3];
static double input[N], output[N], scratch[3];
static int hits;
struct S { static int calls; };
int S::calls;
#pragma omp threadprivate(scratch, \\
                          hits, S::calls)
int main()
{
    for (int d = 0; d < 3; d++) // OWN
        scale[d] = d + 2;
    for (int i = 0; i < N; i++) // SHARED
        input[i] = i;
    for (int i = 0; i < N; i++) // OWN
        scratch[1] = input[i] * 3, output[i] = scratch[1];
    for (int i = 0; i < N; i++) // OWN
        hits += output[i] > 9;
    for (int i = 0; i < N; i++) // OWN
        S::calls++;
    for (int i = 0; i < N; i++) // OWN
        output[i] += scaled(input[i]);
    printf("%g %d %d\\n", output[5], hits, S::calls);
    return 0;
}
"""
SCALED = """
#include "app.h"
double scaled(double x) { return x * scale[1]; }
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_loop_that_uses_what_a_directive_gives_each_thread_has_no_directive(level: str, tmp_path: Path) -> None:
    """Built without OpenMP the variable is one of all threads, and the run shows nothing of it."""
    (tmp_path / "app.h").write_text(HEADER)
    sources = [tmp_path / "app.cpp", tmp_path / "scaled.cpp"]
    for source, text in zip(sources, (PRAGMAS, SCALED), strict=True):
        source.write_text(text)
    compile_program(sources, tmp_path / "app", ["-g", level], instrumented=True)
    rows = analyze(record(tmp_path / "app").trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    lines = PRAGMAS.splitlines()
    found = {row["loop"]["line"]: row["openmp"] for row in rows if row["loop"]["file"] == str(sources[0])}
    expected = {number for number, line in enumerate(lines, 1) if "// OWN" in line or "// SHARED" in line}
    assert set(found) == (expected if level == "-O0" else expected & set(found))
    assert len(found) >= 4
    for number, openmp in found.items():
        if lines[number - 1].endswith("// OWN"):
            assert openmp["pragma"] is None and "threadprivate" in openmp["missing"], number
        else:
            assert openmp["pragma"] is not None, number


FORTRAN = """\
module shared
  integer :: hits = 0
  real :: scratch(3)
  !$omp threadprivate(hits, &
  !$omp   scratch)
end module
program own
  use shared
  real :: x(99), y(99)
  integer :: i
  common /block/ factor
  !$omp threadprivate(/block/)
  factor = 2
  do i = 1, 99 ! SHARED
    x(i) = i
  end do
  do i = 1, 99 ! OWN
    scratch(1) = x(i) * 2
    y(i) = scratch(1) + 1
  end do
  do i = 1, 99 ! OWN
    y(i) = y(i) + factor
  end do
  do i = 1, 99 ! OWN
    if (y(i) > 100) hits = hits + 1
  end do
  print *, hits, y(5)
end program
"""


@needs.needs("flang")
def test_no_directive_for_what_threadprivate_names_in_fortran(tmp_path: Path) -> None:
    source = tmp_path / "own.f90"
    source.write_text(FORTRAN)
    words = ["fc", "-g", "-O0", "-J", tmp_path, source, "-o", tmp_path / "own"]
    outcome = run([*TRACEKIT, *words])
    assert outcome.status == 0, outcome.stderr.decode()
    rows = analyze(record(tmp_path / "own").trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    lines = FORTRAN.splitlines()
    found = {row["loop"]["line"]: row["openmp"] for row in rows}
    assert set(found) == {number for number, line in enumerate(lines, 1) if " ! " in line}
    for number, openmp in found.items():
        is_own = lines[number - 1].endswith("! OWN")
        assert is_own == ("threadprivate" in (openmp["missing"] or "")) == (openmp["pragma"] is None), number
