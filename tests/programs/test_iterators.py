"""Loops over C++'s containers: their verdicts and directives are the same at every level, and calls stay calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracekit
from tests.programs.running import FIXTURES, compile_program, record, run
from tests.programs.test_advise import PARALLEL, truths
from tracekit.api import analyze
from tracekit.formats.image import OpKind

SOURCE = FIXTURES / "advise" / "iterators.cpp"


@pytest.mark.parametrize("flags", [["-O1"], ["-O2"], ["-O0", "-std=c++20"]], ids=" ".join)
def test_what_is_said_of_iterators(flags: list[str], tmp_path: Path) -> None:
    made = record(compile_program([SOURCE], tmp_path / "app", ["-g", *flags], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: row for row in rows if row["loop"]["file"].endswith(SOURCE.name)}
    expected = truths(SOURCE)
    if "-std=c++20" in flags:  # which compares iterators by what `<=>` returns
        lines = SOURCE.read_text().splitlines()
        expected = [truth for truth in expected if " < " not in lines[truth.line - 1].replace("i < N", "")]
        expected = [truth for truth in expected if " >= " not in lines[truth.line - 1]]
    assert len(expected) > 8
    for truth in expected:
        row = found[truth.line]
        assert (row["verdict"] in PARALLEL) == (truth.verdict != "never"), row["loop"]
        if row["verdict"] in PARALLEL:
            pragma = row["openmp"]["pragma"]
            assert pragma, (row["loop"], row["openmp"])
            assert all(part in pragma for part in truth.pragma)
            assert "(i" not in pragma
            assert "(it" not in pragma


PROGRAM = """#include <algorithm>
#include <cstdio>
#include <vector>
struct Counter {
    int n = 0;
    void bump() { n++; }
    const int &greater(const int &other) const { return n < other ? other : n; }
};
static int misled(const std::vector<int> &v)
{
    int most = 1, again = 0;
    const int &kept = std::max(most, again);
    most = 7;                                       // kept is most
    for (int i = 0; i < 4; i++) {
        int a = v[i], b = i;
        std::swap(a, b);
        again += std::max(std::max(a, b), kept) + *std::max_element(&a, &a + 1);
        if (std::min(a, b) < 0) throw most;
    }
    return again + kept;
}
int main()
{
    std::vector<int> v = {3, 9, 2, -5};
    Counter counter;
    for (int i = 0; i < 3; i++) counter.bump();
    try {
        misled(v);
    } catch (int caught) {
        std::printf("%d %d\\n", caught, counter.greater(2));
    }
    v[3] = 5;
    std::printf("%d\\n", misled(v));
}
"""


def callees_of(trace: Path, function: str) -> set[str]:
    """What a function of a program calls, as the program was compiled."""
    program = tracekit.open(trace).program
    (row,) = (k for k in range(len(program.functions)) if program.function_name(k) == function)
    ops = program.ops[int(program.functions["first_op"][row]) :][: int(program.functions["ops"][row])]
    calls = ops["base"][ops["kind"] == OpKind.CALL]
    return {program.function_name(int(callee)) for call in calls for callee in program.call_callees(int(call))}


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_only_the_library_is_inlined_and_values_stay(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(PROGRAM)
    native = compile_program([source], tmp_path / "native", [level], instrumented=False)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    assert made.outcome.stdout == run([native]).stdout
    if level == "-O0":
        names = callees_of(made.trace, "main") | callees_of(
            made.trace, "misled(std::vector<int, std::allocator<int>> const&)"
        )
        assert {"Counter::bump()", "Counter::greater(int const&) const"} <= names
        assert any("std::max_element<" in name for name in names)
        assert not any(name.split("<")[0].split()[-1] in ("std::max", "std::min", "std::swap") for name in names)
