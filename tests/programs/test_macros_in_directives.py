"""Macros of the program that compilers replace in OpenMP's directives, too."""

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
