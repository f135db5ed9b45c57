"""Directives of loops that compute with complex numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze

COMPLEX = """
#include <complex.h>
#include <stdio.h>
static float complex small[99];
static double complex wide[99];
int main(void)
{
    for (int i = 0; i < 99; i++) // the loop
        small[i] = i + I, wide[i] = 3 - i * I;
    for (int i = 0; i < 99; i++) // the loop
        small[i] *= small[i];
    for (int i = 0; i < 99; i++) // the loop
        wide[i] = small[i] * wide[i] / (wide[i] + 2);
    printf("%g %g\\n", creal(wide[5]), cimagf(small[7]));
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_products_and_quotients_of_complex_numbers_have_no_effects(level: str, tmp_path: Path) -> None:
    """clang calls functions of its library for them, which check for infinities."""
    source = tmp_path / "app.c"
    source.write_text(COMPLEX)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    expected = [number for number, text in enumerate(COMPLEX.splitlines(), 1) if "// the loop" in text]
    assert sorted(row["loop"]["line"] for row in rows if row["openmp"]["pragma"]) == expected


FUNCTIONS = """
#include <complex.h>
#include <stdio.h>
static long double complex z[99];
static long double lengths[99];
int main(void)
{
    for (int i = 0; i < 99; i++) // the loop
        z[i] = i % 7 + i % 5 * I;
    for (int i = 0; i < 99; i++) // the loop
        lengths[i] = cabsl(z[i]) + cargl(z[i]);
    for (int i = 0; i < 99; i++) // the loop
        z[i] = csqrtl(z[i]);
    printf("%Lg %Lg\\n", lengths[5], creall(z[7]));
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_functions_of_long_double_have_no_effects_either(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(FUNCTIONS)
    made = record(
        compile_program([source], tmp_path / "app", ["-g", level, "-Wl,--no-as-needed", "-lm"], instrumented=True)
    )
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    expected = [number for number, text in enumerate(FUNCTIONS.splitlines(), 1) if "// the loop" in text]
    assert sorted(row["loop"]["line"] for row in rows if row["openmp"] and row["openmp"]["pragma"]) == expected
