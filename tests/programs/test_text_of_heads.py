"""What only the text of a loop shows, and compilers do not take below a directive: macros, and casts of counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze

HEADER = "#define private static\n"
SOURCE = """#include <stdio.h>
{include}
static int a[90], out[90];
{static} void twice(int n)
{{
    int i, t;
    for (i = 0; i < n; i++) {{
        t = a[i] * 2;
        out[i] = t * t;
    }}
}}
int main(void)
{{
    twice(90);
    printf("%d\\n", out[7]);
    return 0;
}}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("replaced", [False, True])
def test_there_is_no_directive_whose_words_are_macros(replaced: bool, level: str, tmp_path: Path) -> None:
    """As Olden's bh has it: gcc refuses `#pragma omp parallel for private(t)` there."""
    (tmp_path / "own.h").write_text(HEADER)
    source = tmp_path / "app.c"
    include = '#include "own.h"' if replaced else ""
    source.write_text(SOURCE.format(include=include, static="private" if replaced else "static"))
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    (row,) = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    assert row["verdict"] == "doall-with"
    if replaced:
        assert not row["openmp"]["pragma"] and "a macro of its file has the name of a word" in row["openmp"]["missing"]
    else:
        assert row["openmp"]["pragma"] == "#pragma omp parallel for private(t)"


CASTS = """#include <stdio.h>
#include <vector>
static double a[99];
static int size(int n) { return n; }
int main()
{
    std::vector<double> v(99);
    unsigned k;
    int m = 99;
    for (int i = 0; (std::size_t)i < v.size(); i++) v[i] = i; // cast
    for (k = 0; (int)k < m; k++) a[k] += 1; // cast
    for (int i = 0; static_cast<std::size_t>(i) < v.size(); i++) a[i] += i; // cast
    for (int i = 0; m > int(i); i++) a[i] += i; // cast
    for (int i = 0; i < (int)v.size(); i++) a[i] += i; // plain
    for (int i = 0; (i) < size(m); i++) v[i] += i; // plain
    for (std::size_t i = 0; v.size() > i; i++) v[i] += i; // plain
    printf("%g %g\\n", a[7], v[8]);
    return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_a_counter_that_the_test_casts_gets_no_directive(level: str, tmp_path: Path) -> None:
    """clang says: condition must be a relational comparison of the loop variable."""
    source = tmp_path / "app.cpp"
    source.write_text(CASTS)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0).result["loops"]
    found = {row["loop"]["line"]: bool((row["openmp"] or {}).get("pragma")) for row in rows}
    expected = {
        number: line.endswith("// plain")
        for number, line in enumerate(CASTS.splitlines(), 1)
        if line.endswith(("// plain", "// cast"))
    }
    assert {line: found[line] for line in expected} == expected
