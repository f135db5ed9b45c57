"""Variables that iterations share, wherever the optimiser keeps them, as ``fixtures/known_privates.c`` says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import FIXTURES, compile_program, profiles, record

SOURCE = FIXTURES / "known_privates.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))
COPIES = {
    number: (found.group(1), found.group(2))
    for number, line in LINES
    if (found := re.search(r"// COPIES (.*) SAYS (.*)$", line))
}
"""Line -> what each iteration needs a copy of; what directive or reason hold."""
NEVER = [number for number, line in LINES if line.endswith("// NOT")]


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("privates")
    program = compile_program([SOURCE], folder / "app", ["-g", request.param], instrumented=True)
    trace = record(program).trace
    from tracekit.api import analyze

    advised = analyze(trace, "advise", jobs=1, top=0, min_share=0).result
    return {**profiles(trace, "camp", "lamp"), "advise": advised}


def copies(recipe: list[Any]) -> str:
    """The copies that a recipe names, in words of the fixture; other steps are left out."""
    named: dict[str, set[str]] = {}
    for step in recipe:
        if step["kind"] != "reduction":
            named.setdefault(step["kind"], set()).add(step["object"]["name"])
    return " ".join(f"{kind}({' '.join(sorted(names))})" for kind, names in sorted(named.items())) or "-"


@pytest.mark.parametrize("module", ["camp", "lamp"])
@pytest.mark.parametrize("line", COPIES)
def test_the_verdict_names_the_same_variables_at_each_level(found: Any, module: str, line: int) -> None:
    (row,) = (row for row in found[module]["loops"] if row["loop"]["line"] == line)
    assert copies(row["recipe"]) == COPIES[line][0]
    assert row["verdict"] == ("doall-with" if row["recipe"] else "doall")
    assert not row["blocked_by"]


@pytest.mark.parametrize("line", COPIES)
def test_the_directive_speaks_of_them(found: Any, line: int) -> None:
    (row,) = (row for row in found["advise"]["loops"] if row["loop"]["line"] == line)
    (case,) = row["cases"]
    assert copies(case["recipe"]) == COPIES[line][0]
    assert COPIES[line][1] in (row["openmp"]["pragma"] or row["openmp"]["missing"])


@pytest.mark.parametrize("module", ["camp", "lamp"])
@pytest.mark.parametrize("line", NEVER)
def test_what_an_iteration_reads_first_stays_in_the_way(found: Any, module: str, line: int) -> None:
    (row,) = (row for row in found[module]["loops"] if row["loop"]["line"] == line)
    assert row["verdict"] in ("pipeline", "sequential")
    assert row["blocked_by"] and not row["recipe"]


ELSEWHERE = """
extern double scratch, in[], out[];
void work(int n)
{
    for (int i = 0; i < n; i++) {
        scratch = in[i] * 2;
        out[i] = scratch + 1;
    }
}
"""
ITS_OWN = """
double scratch, in[300], out[300];
void work(int n);
int main(void)
{
    for (int i = 0; i < 300; i++) in[i] = i;
    work(300);
    return out[9] != 19;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_variable_of_another_file_has_a_name_too(level: str, tmp_path: Path) -> None:
    from tracekit.api import analyze

    sources = [tmp_path / "work.c", tmp_path / "main.c"]
    for source, text in zip(sources, (ELSEWHERE, ITS_OWN)):
        source.write_text(text)
    made = record(compile_program(sources, tmp_path / "app", ["-g", level], instrumented=True))
    assert made.outcome.status == 0
    loops = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    (row,) = (row for row in loops if row["loop"]["function"] == "work")
    assert copies(row["cases"][0]["recipe"]) == "lastprivate(scratch)"
    assert row["openmp"]["pragma"] == "#pragma omp parallel for lastprivate(scratch)"


POINTEES = FIXTURES / "known_pointees.c"


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_memory_behind_a_pointer_is_shared_though_the_optimiser_keeps_it_in_registers(
    level: str, tmp_path: Path
) -> None:
    from tracekit.api import analyze

    made = record(compile_program([POINTEES], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    found = {row["loop"]["line"]: row for row in rows}
    for number, line in enumerate(POINTEES.read_text().splitlines(), 1):
        if not (match := re.search(r"// NAMES (.*)SAYS ?(.*)$", line)):
            continue
        named, says = match.groups()
        openmp = found[number]["openmp"] or {"pragma": None, "missing": ""}
        if says == "pragma" or (level == "-O0" and says.startswith("out of memory")):
            assert openmp["pragma"], (line, openmp)
            continue
        assert openmp["pragma"] is None, line
        assert re.search(says, openmp["missing"]), line
        if named:
            assert found[number]["verdict"] == "doall-with"
            steps = found[number]["cases"][0]["recipe"]
            expected = f"private({named.strip()})" if level != "-O0" else "private("
            assert copies([{**step, "object": {"name": "", **step["object"]}} for step in steps]).startswith(expected)


RANGES = """
#include <array>
#include <cstdio>
#include <list>
static double a[400], scratch;
static std::array<double, 300> b;
__attribute__((noinline)) static double sum_of(std::list<double> &v)
{
    double sum = 0;
    for (double x : v) sum += x; // none
    return sum;
}
__attribute__((noinline)) static double work()
{
    double sum = 0;
    for (double &x : a) { // private(scratch)
        scratch = x * 2;
        x = scratch + 1;
    }
    for (double x : b) sum += x; // reduction(+:sum)
    return sum;
}
int main()
{
    for (int i = 0; i < 300; i++) b[i] = i % 91; // parallel for
    std::list<double> later(200, 2.5);
    std::printf("%f %f %f\\n", sum_of(later), work(), a[399]);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_range_that_pointers_run_over_has_a_directive(level: str, tmp_path: Path) -> None:
    """The list is declared behind the loop that calls a function, and so is none that the loop may reach."""
    from tracekit.api import analyze

    source = tmp_path / "app.cpp"
    source.write_text(RANGES)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    found = {row["loop"]["line"]: row["openmp"] for row in rows if row["loop"]["file"].endswith("app.cpp")}
    for number, line in enumerate(RANGES.splitlines(), 1):
        if match := re.search(r"for \(.*// (.*)$", line):
            directive = (found[number] or {"pragma": None})["pragma"]
            assert directive is None if match.group(1) == "none" else directive.endswith(match.group(1)), line
