"""Calls of the C library's leaves: they end no block, and nothing is lost or mixed up for it."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

import tracekit
from tests import prepared
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
    check = prepared.run([*TRACEKIT, "check", "trace.zst"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
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


PARTS = r"""
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
double table[8];
__attribute__((noinline)) double turn(double *x, int i) {
    table[i & 7] = x[i]; /* one register, whose word is recorded around the call that clang makes of both */
    double s = sin(x[i]), c = cos(x[i]);
    x[i] = s;
    return s * c;
}
__attribute__((noinline)) double parts(double x, long double y, double *to, long double *whole, int *power) {
    sincos(x, to, to + 1);
    double sum = modf(x, to + 2) + modfl(y, whole) + frexp(x, power) + remquo(x, 0.7, power + 1);
    return sum + lgamma_r(x, power + 2) + __builtin_frexpl(y, power + 3);
}
int main(void) {
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[3], sum = 0;
    long double whole;
    int power[4];
    for (int i = 0; i < 8; i++)
        sum += turn(x, i) + parts(x[i], x[i], to, &whole, power) + to[0] + to[2] + whole + power[0] + power[3];
    printf("%.6g\n", sum);
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2", "-O2 -ffast-math", "-O2 -ffast-math -static"])
def test_what_they_hand_back_is_stored_by_the_program_and_cuts_no_record(options: str, tmp_path: Path) -> None:
    program = build(tmp_path, PARTS, *options.split(), "--record=both", "-lm")
    native = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    run = record(tmp_path, program)
    assert (run.returncode, run.stdout) == (0, native), run.stderr
    _check(tmp_path)
    dump = prepared.run(
        [*TRACEKIT, "dump", "--function", "parts", "trace.zst"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    stores = [line.split()[-2:] for line in dump.splitlines() if line.split()[1] == "store"]
    times = Counter((address, size) for address, size in stores)
    sizes = Counter(size for (_, size), count in times.items() if count == 8)
    assert sizes["size=8"] >= 3 and sizes["size=4"] >= 4 and sizes["size=10"] + sizes["size=16"] >= 1, times


UNDECLARED = r"""
int printf(const char *, ...), time(), gettimeofday(), clock_gettime();
int main(int argc, char **argv) {
    long now[2];
    int first = time(0), second = clock_gettime(0, now), third = gettimeofday(now, 0);
    if (argc > 1)
        time(argc - 2), time(now), time(argv[1]);
    printf("%d %d %d\n", first > 0, second, third);
}
"""


RESOURCES = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/times.h>
int main(void) {
    struct rusage used;
    struct tms now;
    long sum = 0;
    for (int i = 0; i < 5; i++) {
        getrusage(RUSAGE_SELF, &used), times(&now);
        sum += used.ru_maxrss > 0 && used.ru_nivcsw >= 0 && now.tms_cutime >= 0;
    }
    printf("%ld\n", sum);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_clocks_that_store_more_than_a_time(level: str, tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, RESOURCES, level))
    assert run.stdout == "5\n", run.stderr
    _check(tmp_path)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        calls = trace.program.calls
        clocks = {trace.program.text(int(call["callee"])) for call in calls if call["flags"] & CallFlag.CLOCK}
    assert clocks == {"getrusage", "times"}
    found = tracekit.analyze(tmp_path / "trace.zst", "memory_errors", jobs=1).result
    assert found["errors"] == [] and not any(found["summary"]["undecided"].values())
    assert tracekit.analyze(tmp_path / "trace.zst", "camp", jobs=1).result["loops"][0]["verdict"] == "doall-with"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_clocks_that_a_program_does_not_declare(level: str, tmp_path: Path) -> None:
    """A program of old hands time a number, 0, for a null pointer: which it is, and no place where time stores."""
    program = build(tmp_path, UNDECLARED, level, "-std=c89", "-w")
    run = record(tmp_path, program)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "1 0 0\n"
    _check(tmp_path)
    with tracekit.open(tmp_path / "trace.zst") as trace:
        calls = trace.program.calls
        clocks = [trace.program.text(int(call["callee"])) for call in calls if call["flags"] & CallFlag.CLOCK]
    assert sorted(clocks) == ["clock_gettime", "gettimeofday", "time", "time"]
