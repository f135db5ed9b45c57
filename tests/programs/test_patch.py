"""`tracekit advise --patch`: the diff applies, compiles with clang and gcc, and the program prints the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs, require
from tests.programs.parallel import outputs
from tests.programs.running import (
    FIXTURES,
    SECONDS,
    build_flags,
    compile_program,
    record,
    run,
    run_here,
    tracekit,
)
from tracekit.recorder.toolchain import find_clang

SOURCES = sorted((FIXTURES / "advise").glob("*.c"))
BOUNDS = [FIXTURES / "known_bounds.c", FIXTURES / "known_bounds.cpp"]
RUNS = 4

LOOPS = """\
#include <stdio.h>
struct grid { int nx; unsigned width : 9; double *x; };
double a[400], b[400];
int n = 400;
static void brace(struct grid *g, int on)
{
    if (on)
        for (int i = 0; i < g->width; i++)
            g->x[i] = i;
    else for (int i = 0; i < g->nx; i++) { g->x[i] = 2 * i; }
    switch (on) {
    case 1: for (int i = 0; i < n; i++) b[i] = a[i] + 1;
        break;
    default:
        for (int i = 0; i < n; i++)
            if (a[i] > 3)
                b[i] = a[i];
            else
                b[i] = 7;
    }
}
#define EACH(i) for (int i = 0; i < n; i++)
int main(void)
{
    struct grid g = { 400, 400, a };
    brace(&g, 1);
    brace(&g, 0);
    for (int i = 0; i < n; i++) for (int j = 0; j < 3; j++) b[i] += j;
    EACH(k) a[k] += b[k];
    double s = 0;
    for (int i = 0; i < 400; i++)
        s += a[i] * b[i];  /* ends without a newline */
    printf("%.0f\\n", s);
    return 0;
}"""


def patched(source: Path, folder: Path, level: str, *more: str) -> tuple[str, Path, bytes]:
    """What --patch prints of a run of a copy of `source`, the copy in a folder of its own, what the program prints."""
    folder.mkdir()
    copy = folder / source.name
    shutil.copy(source, copy)
    made = record(compile_program([copy], folder / "app", ["-g", level, "-lm"], instrumented=True))
    options = ["--patch", "--top", "0", "--min-share", "0", "--source", folder, *more]
    outcome = run_here("advise", *options, made.trace)
    if outcome.status:
        assert (
            b"not parallel as it stands" in outcome.stderr
            or b"is parallel as it stands" in outcome.stderr
            or (b"nothing to insert" in outcome.stderr)
        ), outcome.stderr.decode()
    return outcome.stdout.decode(), copy, made.outcome.stdout + str(made.outcome.status).encode()


def apply(diff: str, copy: Path) -> None:
    """With git and with patch, which have to come to the same."""
    require("patch")
    (name,) = {line[len("+++ b/") :] for line in diff.splitlines() if line.startswith("+++ ")}
    texts = []
    for tool in (["git", "apply", "-p1", "-"], ["patch", "-p1", "--quiet"]):
        target = copy.parent / tool[0] / name
        target.parent.mkdir(parents=True)
        shutil.copy(copy, target)
        root = copy.parent / tool[0]
        done = subprocess.run(tool, input=diff, text=True, cwd=root, capture_output=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        texts.append(target.read_bytes())
    assert texts[0] == texts[1] != copy.read_bytes()
    copy.write_bytes(texts[0])


def compilers(copy: Path) -> list[list[str]]:
    plus = copy.suffix != ".c"
    clang = [find_clang().path, *(["--driver-mode=g++"] if plus else [])]
    gcc = shutil.which("g++" if plus else "gcc")
    return [clang, *([[gcc]] if gcc else [])]


def check(source: Path, folder: Path, level: str) -> str:
    diff, copy, printed = patched(source, folder, level)
    if not diff:
        return ""
    apply(diff, copy)
    for compiler in compilers(copy):
        program = copy.parent / Path(compiler[0]).name
        flags = ["-std=c++17"] if copy.suffix != ".c" else []
        outcome = run([*compiler, "-w", *flags, "-O1", "-fopenmp", copy, "-o", program, "-lm"])
        assert outcome.status == 0, f"{diff}\n{outcome.stderr.decode()}"
        assert set(outputs(program, RUNS)) == {printed}, diff
    return diff


@needs("libomp")
@pytest.mark.parametrize("source", [*SOURCES, *BOUNDS], ids=lambda path: path.name)
def test_a_patched_program_prints_the_same(source: Path, tmp_path: Path) -> None:
    level = next((flag for flag in build_flags(source) if flag.startswith("-O")), "-O0")
    diff = check(source, tmp_path / "app", level)
    assert diff or source.stem == "lists"


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_wherever_a_loop_stands(tmp_path: Path, level: str) -> None:
    (tmp_path / "loops.c").write_text(LOOPS)
    diff = check(tmp_path / "loops.c", tmp_path / "app", level)
    added = [line for line in diff.splitlines() if line.startswith("+") and "#pragma omp" in line]
    assert len(added) == 6
    constants = [line.strip("+ ") for line in diff.splitlines() if line.startswith("+") and "const " in line]
    if level == "-O0":
        assert "const __typeof__(g->nx + 0) nx_bound = g->nx;" in constants
        assert len(constants) == 5


@needs("libomp")
def test_a_loop_of_a_macro_and_one_behind_another_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "loops.c").write_text(LOOPS)
    _, copy, _ = patched(tmp_path / "loops.c", tmp_path / "app", "-O0")
    line = 1 + LOOPS.splitlines().index("    EACH(k) a[k] += b[k];")
    trace = copy.parent / "app.trace.zst"
    outcome = run_here("advise", "--patch", f"loops.c:{line}", trace, "--source", copy.parent)
    assert outcome.status == 1
    assert outcome.stdout == b""
    assert b"is left out: " in outcome.stderr


def test_a_source_that_has_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loops.c").write_text(LOOPS)
    diff, copy, _ = patched(tmp_path / "loops.c", tmp_path / "app", "-O0")
    assert diff
    copy.write_text("\n" + LOOPS)
    trace = copy.parent / "app.trace.zst"
    outcome = run_here("advise", "--patch", "--source", copy.parent, trace)
    assert outcome.status == 1
    assert outcome.stdout == b""
    assert outcome.stderr.decode().endswith("has changed since it was compiled: build it again, and record again.\n")
    copy.unlink()
    outcome = run_here("advise", "--patch", trace)
    assert outcome.status == 1
    assert b"--source DIR" in outcome.stderr
    profile = tmp_path / "run.profile"
    copy.write_text(LOOPS)
    tracekit("analyze", "-m", "camp", "-o", profile, trace)
    options = ["--patch", "--top", "0", "--min-share", "0"]
    assert tracekit("advise", *options, "--source", copy.parent, profile) == diff


INSTANCES = """\
#include <cstdio>
#include <vector>
template <class T> void shift(T *p, int n, T *q) {
  for (int i = 1; i < n; i++)
    p[i] = q[i - 1] + 1;
}
template <class T> T total(const std::vector<T> &v) {
  T s = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    s += v[i];
  return s;
}
int main() {
  static int a[500], b[500]; static double c[500];
  std::vector<int> v(300, 2); std::vector<double> w(300, 2);
  shift(a, 500, b); shift(c, 500, c);
  std::printf("%d %g %d %g\\n", a[3], c[499], total(v), total(w));
}
"""


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_directive_is_about_all_instances_of_a_template(tmp_path: Path, level: str) -> None:
    (tmp_path / "instances.cpp").write_text(INSTANCES)
    diff = check(tmp_path / "instances.cpp", tmp_path / "app", level)
    assert [line.strip("+ ") for line in diff.splitlines() if "#pragma" in line] == [
        "#pragma omp parallel for reduction(+:s)"
    ]
    assert ("const auto size_bound = v.size();" in diff) == (level == "-O0")
