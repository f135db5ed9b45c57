"""Calls of the C library's leaves: they end no block, and nothing is lost or mixed up for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tracekit
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, record
from tracekit.formats.image import CallFlag

PROGRAM = r"""
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
double x[64];
char text[] = "Leaves call nothing back.";
int main(void) {
    int upper = 0;
    for (int i = 0; i < 64; i++)
        x[i] = i ? log(i) + pow(x[i - 1], 0.5) : 1;
    for (int i = 0; text[i]; i++)
        if (isalpha((unsigned char)text[i])) {
            text[i] = (char)(toupper)(text[i]);
            upper++;
        }
    errno = 0;
    double bad = acos(x[63]);
    printf("%.6f %d %s %d %d\n", x[63], upper, text, errno == EDOM, bad != bad);
}
"""

OWN = r"""
int seen[256], calls;
int toupper(int c) { seen[c & 255]++; return c ^ 32; }
double floor(double x) { calls++; return (double)(long)x; }
"""

CALLER = r"""
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    double sum = 0;
    for (int i = 0; i < 100; i++)
        sum += floor(atof(argv[argc - 1]) * i) + (toupper)('a' + i % 26);
    printf("%g\n", sum);
}
"""


def _check(folder: Path) -> None:
    check = subprocess.run(
        [*TRACEKIT, "check", "trace.zst"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_they_end_no_block(level: str, tmp_path: Path) -> None:
    program = build(tmp_path, PROGRAM, level, "--record=both", "-lm")
    native = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    run = record(tmp_path, program)
    assert run.returncode == 0, run.stderr
    assert run.stdout == native
    _check(tmp_path)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        unit = trace.program
        leaves = unit.calls[unit.calls["flags"] & CallFlag.LEAF != 0]
        names = {unit.text(int(call["callee"])) for call in leaves}
        assert {"log", "pow", "acos", "__ctype_b_loc", "__errno_location"} <= names
        ends = unit.blocks["call"]
        assert not set(leaves["op"].tolist()) & set(ends.tolist())


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_definition_of_the_programs_own_is_not_instrumented(level: str, tmp_path: Path) -> None:
    own = tmp_path / "own.c"
    own.write_text(OWN)
    program = build(tmp_path, CALLER, str(own), level, "--record=both", "-lm")
    native = subprocess.run([program, "3.5"], capture_output=True, text=True, check=True).stdout
    run = record(tmp_path, program, "3.5")
    assert (run.returncode, run.stdout) == (0, native), run.stderr
    _check(tmp_path)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        assert {trace.program.text(int(name)) for name in trace.program.functions["name"]} == {"main"}
