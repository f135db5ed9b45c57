"""Heap blocks that a wrapper of malloc made: camp and advise tell them apart by its calls, and say where these are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import compile_program, record, tracekit
from tracekit.api import analyze
from tracekit.render.dependence import object_text

APART = "static __attribute__((noinline))"
SOURCE = f"""#include <stdlib.h>
static int last;
{APART} int *wrapped(size_t n) {{ int *made = malloc(n * 4); if (!made) exit(1); return made; }}  // MADE
{APART} int *busy(size_t n) {{ int *made = malloc(n * 4); for (size_t i = 0; i < n; i++) made[i] = i; return made; }}
{APART} int *deep(int n) {{ int *made = malloc(400); made[0] = n; return made; }}
{APART} int *down(int n) {{ if (n) return down(n - 1); last++; return deep(n); }}  // DOWN
static inline __attribute__((always_inline)) int *inlined(void) {{ return malloc(400); }}  // INLINED
static inline __attribute__((always_inline)) int *middle(void) {{ return wrapped(100); }}
{APART} int *many(void) {{ return malloc(400); }}
{APART} void chain(int *block) {{
  for (int i = 1; i < 100; i++) block[i] = block[i - 1] * 3 + i; last = block[99];  // CHAIN
}}
int main(int count, char **arguments) {{
  int *first = wrapped(100 + count);  // FIRST
  first[0] = 1; for (int i = 1; i < 100; i++) first[i] = first[i - 1] * 3 + i;  // WRAPPED
  int *second = middle(); second[0] = 2; chain(second);  // SECOND
  int *own = busy(100); for (int i = 1; i < 100; i++) own[i] = own[i - 1] * 3 + i;  // BUSY
  int *low = count > 1 ? deep(0) : down(3); free(deep(1));  // CALL
  for (int i = 1; i < 100; i++) low[i] = low[i - 1] * 3 + i;  // DEEP
  int *near = inlined(); near[0] = 1; for (int i = 1; i < 100; i++) near[i] = near[i - 1] * 3 + i;  // NEAR
  int *all[] = {{many(),
    many(), many(),
    many(), many()}};
  all[4][0] = 1; for (int i = 1; i < 100; i++) all[4][i] = all[4][i - 1] * 3 + i;  // MANY
  return (first[99] + second[99] + own[99] + low[99] + near[99] + all[4][99]) & 1 & (last == 77);
}}
"""


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"// {mark}"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("allocators")
    (folder / "app.c").write_text(SOURCE)
    return record(compile_program([folder / "app.c"], folder / "app", ["-g", "-O1"], instrumented=True)).trace


@pytest.fixture(scope="module")
def made(trace: Path) -> Any:
    """The heap object of the dependence that blocks the loop at a mark's line."""
    return objects_of(trace)


def objects_of(trace: Path, **options: Any) -> Any:
    rows = analyze(trace, "advise", jobs=1, top=0, min_share=0.0, **options).result["loops"]

    def found(mark: str) -> dict[str, Any]:
        (loop,) = (row for row in rows if row["loop"]["line"] == line_of(mark))
        blocked = [each for each in loop["cases"][0]["blocked_by"] if each["reason"] == "dependence"]
        (thing,) = blocked[0]["objects"]
        assert thing["kind"] == "heap"
        return dict(thing)

    return found


def test_what_a_wrapper_made_is_told_apart_by_the_calls_of_it(made: Any) -> None:
    thing = made("WRAPPED")
    assert thing["site"]["line"] == line_of("FIRST")
    assert "called_at" not in thing
    shown = object_text(made("CHAIN"))
    assert " in middle, called at " in shown
    assert f"app.c:{line_of('SECOND')}:" in shown


MATRICES = f"""#include <stdlib.h>
{APART} double **rows(int n, int m) {{
  double **made = malloc(n * sizeof *made);
  if (!made) abort();
  for (int i = 0; i < n; i++) made[i] = malloc(m * sizeof **made);
  return made;
}}
{APART} double **pieces(int n, int m) {{
  double **made = malloc(n * sizeof *made), *all = malloc(n * m * sizeof *all);
  for (int i = 0; i < n; i++) made[i] = all + i * m;
  return made;
}}
{APART} double ***cube(int n, int m, int k) {{
  double ***made = malloc(n * sizeof *made);
  for (int i = 0; i < n; i++) {{
    made[i] = malloc(m * sizeof *made[i]);
    for (int j = 0; j < m; j++) made[i][j] = malloc(k * sizeof ***made);
  }}
  return made;
}}
int main(int n, char **arguments) {{
  n += 19;
  double **in = rows(n, n), **out = pieces(n, n), ***more = cube(2, 2, n);
  double **one = rows(1, n);  // ONE
  double **two = pieces(1, n);  // TWO
  double ***three = cube(1, 1, n);  // THREE
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) in[i][j] = more[1][1][j] = i + j;
  for (int i = 0; i < n; i++) {{  // PRIVATE
    for (int j = 0; j < n; j++) {{ one[0][j] = in[i][j] * 2; two[0][j] = in[i][j]; three[0][0][j] = more[1][1][j]; }}
    for (int j = 0; j < n; j++) out[i][j] = one[0][n - 1 - j] + two[0][j] + three[0][0][n - 1 - j];
  }}
  return out[n - 1][0] < 0;
}}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_matrices_of_one_function_are_told_apart(level: str, tmp_path: Path) -> None:
    """Rows lie in what the function returns; those that the loop writes anew are private, `in` and `out` are not."""
    (tmp_path / "app.c").write_text(MATRICES)
    made = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", level], instrumented=True))
    lines = {mark: number for number, line in enumerate(MATRICES.splitlines(), 1) for mark in line.split("// ")[1:]}
    rows = analyze(made.trace, "camp", jobs=1).result["loops"]
    (loop,) = (row for row in rows if row["loop"]["line"] == lines["PRIVATE"])
    assert {(step["kind"], step["object"]["kind"]) for step in loop["recipe"]} == {("private", "heap")}
    sites = [step["object"]["site"]["line"] for step in loop["recipe"]]
    assert sorted(sites) == [lines["ONE"], lines["TWO"], lines["THREE"]]


def test_a_function_with_a_loop_is_no_wrapper(made: Any) -> None:
    thing = made("BUSY")
    assert "called_at" not in thing
    assert "called" not in object_text(thing)


def test_what_a_recursion_has_called_is_listed(made: Any) -> None:
    thing = made("DEEP")
    assert [call["line"] for call in thing["called_at"]] == [line_of("DOWN"), line_of("CALL")]
    assert not thing["called_elsewhere"]


def test_what_a_recursion_may_have_called_is_not_said_to_be_all(trace: Path) -> None:
    thing = objects_of(trace, contexts="static")("DEEP")
    assert [call["line"] for call in thing["called_at"]] == [line_of("CALL")]
    assert thing["called_elsewhere"]
    assert object_text(thing).endswith("...")


def test_a_wrapper_that_was_inlined_is_shown_with_the_line_that_it_is_in(made: Any) -> None:
    thing = made("NEAR")
    assert "called_at" not in thing
    shown = object_text(thing)
    assert f"app.c:{line_of('INLINED')}:" in shown
    assert " in inlined, called at " in shown
    assert f"app.c:{line_of('NEAR')}:" in shown


def test_of_many_calls_some_are_listed(made: Any) -> None:
    thing = made("MANY")
    assert len(thing["called_at"]) == 4
    assert thing["called_elsewhere"]


def test_the_text_of_camp_and_advise_says_it(trace: Path) -> None:
    shown = tracekit("analyze", "-m", "advise", "--top", "0", trace)
    assert f"heap memory allocated at app.c:{line_of('FIRST')}:" in shown
