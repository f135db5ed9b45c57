"""What the image says of the source's variables is the same at every level of optimisation, and what directives say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tracekit
from tests.programs.running import compile_program, record
from tests.programs.running import tracekit as command
from tracekit.api import analyze
from tracekit.formats.image import LoopFlag, VariableFlag

SOURCE = """#include <stdio.h>
#define NOINLINE __attribute__((noinline)) static
double a[500], out[500];
static double one, two, *kept;
static int notes, *kept_count, counts[500];
static struct pair { double x, y; } both;
NOINLINE void note(int i) { notes += i; }
static void get(int i, double *into) { *into = a[i] * 2; }
NOINLINE void statics(int n) {
  int i;
  for (i = 0; i < n; i++) { // for one two out: private(one, two)
    one = a[i] * 2;
    two = one + 1;
    out[i] = two * one;
  }
}
NOINLINE double locals(int n) {
  int i, j;
  double t = 0, u;
  for (i = 0; i < n; i++) { // for t u j out: lastprivate(t) private(j, u)
    t = a[i];
    u = t * t;
    for (j = 0; j < 3; j++) u += j;
    out[i] = u;
  }
  return t;
}
NOINLINE int append(int n) {
  int i, len = 0;
  for (i = 0; i < n; i++) { // for len! out: may read len before
    out[len++] = a[i];
  }
  return len;
}
NOINLINE int compact(int n) {
  int i, len = 0;
  for (i = 0; i < n; i++) { // for len! out
    if (a[i] > 3) out[len++] = a[i];
  }
  return len;
}
NOINLINE int by_two_steps(int n) {
  int i, len = 0;
  for (i = 0; i < n; i++) { // for len! out
    if (a[i] > 3) out[len++] = a[i];
    if (a[i] > 8) len += 2;
  }
  return len;
}
NOINLINE void comma(int n) {
  int i, len;
  for (i = 1, len = 0; i < n; i++) { // other out: OpenMP wants a for statement
    out[i] = a[i];
  }
}
NOINLINE void grows(int n) {
  for (int i = 0; i < n; i++) { // other out n!: OpenMP wants a for statement
    out[i] = a[i];
    if (i == 3) n = 400;
  }
}
NOINLINE void two_counters(int n) {
  int k = 0;
  for (int i = 0; i < n; i++, k += 3) { // other out k!: OpenMP wants a for statement
    out[i] = a[k % 500];
  }
}
NOINLINE void called(int n) {
  for (int i = 0; i < n; i++) { // for out notes!
    out[i] = a[i];
    note(i);
  }
}
NOINLINE void through_a_pointer(int n) {
  double x, *p = &x;
  for (int i = 0; i < n; i++) { // for x! out: kept x out of memory
    *p = a[i];
    out[i] = x * 2;
  }
}
NOINLINE double lent_elsewhere(int n, double *p) {
  double x = 1;
  for (int i = 0; i < n; i++) { // for : parallel for
    p[i] = i;
  }
  get(3, &x);
  return x;
}
NOINLINE double lent_inside(int n, double *p) {
  double x = 1;
  for (int i = 0; i < n; i++) { // for x!
    p[i] = i;
    get(i, &x);
  }
  return x;
}
NOINLINE double kept_elsewhere(int n, double *p) {
  double x = 1;
  kept = &x;
  for (int i = 0; i < n; i++) { // for x
    p[i] = *kept;
  }
  return x;
}
static void put(double *to, double value) { *to = value; }
NOINLINE int kept_by_a_pointer_to_another_type(int n, double *p) {
  int x = 1;
  kept_count = &x;
  for (int i = 0; i < n; i++) { // for : parallel for
    put(p + i, *kept_count);
  }
  return x;
}
static void put_count(int *to, int value) { *to = value; }
NOINLINE int kept_by_a_pointer_to_its_type(int n, int *p) {
  int x = 1;
  kept_count = &x;
  for (int i = 0; i < n; i++) { // for x
    put_count(p + i, *kept_count);
  }
  return x;
}
NOINLINE int kept_while_anything_is_called(int n, void (*how)(double *, double)) {
  int x = 1;
  kept_count = &x;
  for (int i = 0; i < n; i++) { // for x out!
    how(out + i, *kept_count);
  }
  return x;
}
NOINLINE void fill(int i, double *to) {
  for (int k = 0; k < 2; k++) to[k] = i + a[k];
}
NOINLINE void in_two_lines(int n) {
  double s[2],
    t[2];
  for (int i = 0; i < n; i++) { // for s! t! out: firstprivate(s, t)
    fill(i, s);
    fill(i + 1, t);
    out[i] = s[1] + t[0];
  }
}
NOINLINE int sometimes(int n) {
  int last = -1;
  for (int i = 0; i < n; i++) { // for last out
    if (a[i] > 5000) last = i;
    out[i] = a[i];
  }
  return last;
}
NOINLINE double structure(int n) {
  for (int i = 0; i < n; i++) { // for both out
    both.x = a[i];
    both.y = 1;
    out[i] = both.x + both.y;
  }
  return both.x;
}
NOINLINE void down(int n) {
  int k;
  for (k = n - 1; k >= 0; k -= 2) { // for out: parallel for
    out[k] = a[k];
  }
}
NOINLINE void lesser(int n, int m) {
  for (int i = n > m ? 3 : 2; i < (n < m ? n : m > 0 ? m : 1); i++) { // for out: parallel for
    out[i] = a[i];
  }
}
NOINLINE void chosen_anew(int n, int m) {
  for (int i = 0; i < (i > 7 ? n : m); i++) { // other out: OpenMP wants a for statement
    out[i] = a[i];
  }
}
NOINLINE void left_inside(int n) {
  for (int i = 0;; i++) { // other out: OpenMP wants a for statement
    if (i >= n) break;
    out[i] = a[i];
  }
}
NOINLINE void two_tests(int n) {
  for (int i = 0; i < n && i < 9; i++) { // other out: OpenMP wants a for statement
    out[i] = a[i];
  }
}
int main(void) {
  int n = 450;
  lesser(n, n - 1);
  chosen_anew(n, n - 1);
  left_inside(n);
  two_tests(n);
  statics(n);
  comma(n);
  grows(n - 100);
  two_counters(n);
  called(n);
  through_a_pointer(n);
  down(n);
  two = compact(n) + by_two_steps(n / 3);
  in_two_lines(n);
  one = lent_elsewhere(n, out) + lent_inside(n, out) + kept_elsewhere(n, out);
  notes += kept_by_a_pointer_to_another_type(n, out) + kept_by_a_pointer_to_its_type(n, counts);
  notes += kept_while_anything_is_called(n, put);
  double got;
  get(3, &got);
  printf("%f %d %d %f %f\\n", locals(n), append(n), sometimes(n), structure(n), got);
  return notes & 1;
}
"""
EXPECTED = {
    number: (found.group(1), set(found.group(2).split()), found.group(3) or "")
    for number, line in enumerate(SOURCE.splitlines(), 1)
    if (found := re.search(r"// (for|other) ([^:]*)(?:: (.*))?$", line))
}
"""Line -> is it a `for` that OpenMP accepts; the variables assigned, with a ! where an iteration may read it first."""


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("source")
    (folder / "app.c").write_text(SOURCE)
    app = compile_program([folder / "app.c"], folder / "app", ["-g", request.param], instrumented=True)
    return record(app).trace


def test_the_image_knows_the_variables_of_the_source(trace: Path) -> None:
    program = tracekit.open(trace).program
    seen: dict[int, tuple[str, set[str]]] = {}
    for number, loop in enumerate(program.loops):
        line = int(program.place(int(loop["location"]))["line"])
        assert int(loop["flags"]) & LoopFlag.SOURCE
        rows = program.variables[program.variables["loop"] == number]
        variables = {
            program.text(int(row["name"])) + "!" * bool(int(row["flags"]) & VariableFlag.READ_FIRST)
            for row in rows
            if not int(row["flags"]) & VariableFlag.INDUCTION
        }
        seen[line] = ("for" if int(loop["flags"]) & LoopFlag.FOR_STATEMENT else "other", variables)
    assert {line: seen[line] for line in EXPECTED if line in seen} == {
        line: (kind, names) for line, (kind, names, _) in EXPECTED.items() if line in seen
    }
    assert len(seen.keys() & EXPECTED.keys()) >= 9  # the optimiser may have replaced one or two


def test_the_reason_says_how_a_counter_advances(trace: Path) -> None:
    loops = analyze(trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    steps = {"compact": ["+1"], "by_two_steps": [None]}
    for row in loops:
        (case,) = row["cases"] or [{"blocked_by": []}]
        if row["loop"]["function"] in steps:
            reasons = [each for each in case["blocked_by"] if each["reason"] == "recurrence"]
            assert [each["source"].get("advances") for each in reasons] == steps.pop(row["loop"]["function"])
        elif row["loop"]["function"] == "append":
            assert "len advances by 1 in each" in row["openmp"]["missing"]
    assert not steps
    line = next(number for number, line in enumerate(SOURCE.splitlines(), 1) if "compact" in line) + 2
    text = " ".join(command("advise", f"app.c:{line}", trace).split())
    assert "which some iterations advance by 1: count these first, as a prefix sum" in text


def test_directives_speak_of_the_source(trace: Path) -> None:
    loops = analyze(trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    for row in loops:
        expected = EXPECTED.get(row["loop"]["line"], ("", set(), ""))[2]
        if row["openmp"] and expected:
            assert expected in (row["openmp"]["pragma"] or row["openmp"]["missing"]), row["loop"]


GIVEN_BACK = """#include <cstdio>
#include <cstdlib>
template <typename T> static T *take(int n) { return static_cast<T *>(std::malloc(n * sizeof(T))); }
template <typename T> inline void give_back(T **from) { std::free(*from); *from = nullptr; }
inline double half(double x) { return x * 0.5; }
__attribute__((noinline)) double work(int n)
{
    double *x = take<double>(n), sum = 0;
    for (int i = 0; i < n; i++) x[i] = half(i); // parallel for
    for (int i = 0; i < n; i++) sum += half(x[i]);
    give_back(&x);
    return sum;
}
int main() { std::printf("%g\\n", work(400)); }
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_loop_does_not_change_a_pointer_that_is_given_back_later(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(GIVEN_BACK)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    line = 1 + GIVEN_BACK.splitlines().index(next(line for line in GIVEN_BACK.splitlines() if "parallel for" in line))
    (row,) = (row for row in rows if row["loop"]["line"] == line)
    assert row["openmp"]["pragma"] == "#pragma omp parallel for"


@pytest.mark.parametrize("options", [["-O0"], ["-O2"], ["-O2", "-gline-tables-only"]])
def test_without_debug_information_the_reason_is_that(options: list[str], tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(GIVEN_BACK)
    made = record(compile_program([source], tmp_path / "app", options, instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    missing = [row["openmp"]["missing"] for row in rows if row["openmp"]]
    assert missing and all(reason.startswith("it was built without -g") for reason in missing), missing


CALLED_BOUNDS = """#include <algorithm>
#include <cstdio>
#include <vector>
struct Graph {
    long size;
    const long *degree;
    long nodes() const { return size; }
    const long *begin() const { return degree; }
    const long *end() const { return degree + size; }
};
static long most = 300, asked;
static long limit() { return most; }
static long counted() { return ++asked, most; }
struct Guard { ~Guard() { asked++; } };
__attribute__((noinline)) static void scale(const Graph &g, std::vector<double> &v, double *out, int n, int m)
{
    Guard guard;
    for (long i = 0; i < g.nodes(); i++) out[i] = g.degree[i]; // for
    for (auto at = g.begin(); at < g.end(); at++) out[*at] = 2; // for
    for (std::size_t i = 0; i < v.size(); i++) v[i] *= 2; // for
    for (long i = 0; i < limit(); i++) out[i] += i; // for
    for (int i = 0; i < std::min(n, m * 2); i++) out[i] += i; // for
    for (int i = 0; i < std::min<int>(v.size(), m); i++) out[i] += i; // for
    for (int i = 0; i < std::max(std::min(n, m), 3); i++) out[i] += i; // for
    for (long i = 0; i < counted(); i++) out[i] += i; // other
    for (int i = 0; i < std::min(n, i + 9); i++) out[i] += i; // other
    for (long i = 0; i < limit(); i++) { // other
        out[i] += i;
        if (i > 400) most = 5;
    }
    for (int i = 0; i < std::min(n, m); i++) { // other
        out[i] += i;
        if (i > 400) m = 5;
    }
}
int main()
{
    std::vector<double> v(300, 1.5), out(300);
    std::vector<long> degree(300);
    for (int i = 0; i < 300; i++) degree[i] = i; // for
    scale({300, degree.data()}, v, out.data(), 290, 150);
    std::printf("%g %g %ld\\n", out[7], v[7], asked);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_bounds_that_are_called_for(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(CALLED_BOUNDS)
    app = compile_program([source], tmp_path / "app", ["-g", level], instrumented=True)
    program = tracekit.open(record(app).trace).program
    lines = CALLED_BOUNDS.splitlines()
    seen = 0
    for loop in program.loops:
        place = program.place(int(loop["location"]))
        if found := str(place["file"]).endswith("app.cpp") and re.search(r"// (for|other)$", lines[place["line"] - 1]):
            is_for = bool(int(loop["flags"]) & LoopFlag.FOR_STATEMENT)
            assert is_for == (found.group(1) == "for"), lines[place["line"] - 1]
            seen += 1
    assert seen >= 9


@pytest.mark.parametrize("level", ["-O1", "-O2"])
def test_a_bound_that_is_called_for_gets_a_directive(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(CALLED_BOUNDS)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    wanted = {n for n, line in enumerate(CALLED_BOUNDS.splitlines(), 1) if line.endswith("// for")}
    pragmas = {row["loop"]["line"]: row["openmp"] for row in rows if row["loop"]["line"] in wanted and row["openmp"]}
    assert len(pragmas) >= 6
    assert {line: each["pragma"] for line, each in pragmas.items()} == dict.fromkeys(
        pragmas, "#pragma omp parallel for"
    )
