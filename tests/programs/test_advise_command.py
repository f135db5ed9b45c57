"""`tracekit advise`: one loop by its place, the profile file instead of the trace, copies that inlining made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import TRACEKIT, compile_program, record, run, tracekit

SOURCE = """\
#include <stdio.h>
static double a[300], b[300];
static int n = 300;
static inline void scan(double *p) {
  for (int i = 1; i < n; i++)
    p[i] = p[i - 1] * 0.5 +
           p[i];
}
static inline void scale(double *p, int m) {
  for (int i = 0; i < m; i++)
    p[i] = p[i] * 1.5 + 1;
}
int main(void) {
  scale(a, n); scale(b, n);
  scan(a); scan(b);
  printf("%g\\n", a[299] + b[299]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("advise")
    (folder / "scan.c").write_text(SOURCE)
    return {
        level: record(
            compile_program([folder / "scan.c"], folder / f"app{level}", ["-g", level], instrumented=True)
        ).trace
        for level in ("-O0", "-O2")
    }


def advice(*words: Any) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(tracekit("advise", "--json", *words))
    return printed


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_loop_is_one_in_the_source_wherever_its_function_was_inlined(traces: dict[str, Path], level: str) -> None:
    (row,) = advice("scan.c:5", traces[level])["result"]["loops"]
    assert (row["loop"]["function"], row["loop"]["line"], row["loop"]["depth"]) == ("scan", 5, 1)
    (case,) = row["cases"]
    assert len(case["contexts"]) == 2
    homes = [[place["line"] for place in context["inlined_at"]] for context in case["contexts"]]
    assert homes == ([[], []] if level == "-O0" else [[15], [15]])
    (blocker,) = case["blocked_by"]
    assert blocker["executions"] == 2 * 298
    assert blocker["thing"] == 0
    shown = tracekit("advise", "scan.c:5", traces[level])
    contexts = [line for line in shown.splitlines() if line.startswith("     in main")]
    assert len({line.partition("  [")[0] + line.partition("]")[2] for line in contexts}) == 2


def test_a_line_inside_a_loop_stands_for_the_innermost_loop_around_it(traces: dict[str, Path]) -> None:
    (row,) = advice("scan.c:7", traces["-O0"])["result"]["loops"]
    assert row["loop"]["line"] == 5
    refused = run([*TRACEKIT, "advise", "scan.c:16", traces["-O0"]])
    assert refused.status == 1
    assert b"no loop at scan.c:16; there is" in refused.stderr


def test_without_a_place_it_is_what_analyze_prints(traces: dict[str, Path]) -> None:
    trace = traces["-O0"]
    assert tracekit("advise", trace) == tracekit("analyze", "-m", "advise", "--limit", "0", trace)
    assert tracekit("advise", "--top", "1", trace) == tracekit("analyze", "-m", "advise", "--top", "1", trace)


@pytest.mark.parametrize("module", ["camp", "advise"])
def test_a_profile_file_is_enough(traces: dict[str, Path], tmp_path: Path, module: str) -> None:
    profile = tmp_path / "run.profile"
    tracekit("analyze", "-m", module, "-o", profile, traces["-O2"])
    expected = advice("scan.c:5", traces["-O2"])
    found = advice("scan.c:5", profile)
    assert found["result"]["loops"] == expected["result"]["loops"]
    assert found["options"] == expected["options"]


def test_the_trace_that_record_writes_is_the_default(traces: dict[str, Path], tmp_path: Path) -> None:
    from contextlib import chdir

    (tmp_path / "trace.zst").write_bytes(traces["-O0"].read_bytes())
    with chdir(tmp_path):
        assert tracekit("advise", "scan.c:5") == tracekit("advise", "scan.c:5", "trace.zst")


@pytest.mark.parametrize("words", [["a.c:1", "b.c:2"], ["a.zst", "b.zst"], ["--top=-1"], ["a.c:1", "b", "c"]])
def test_misuse_is_refused(words: list[str]) -> None:
    assert run([*TRACEKIT, "advise", *words]).status == 2


def test_an_older_image_is_what_is_blamed_if_it_does_not_say_how_a_head_counts(
    traces: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that the number of iterations of `i < 100` were unknown."""
    from tracekit.formats.image import LoopFlag
    from tracekit.program.program import Program

    whole = Program.from_images

    def older(images: Any) -> Program:
        program = whole(images)
        flags = program.loops["flags"].astype("i8")
        program.loops["flags"] = flags & ~int(LoopFlag.SOURCE | LoopFlag.COUNTABLE)
        return program

    monkeypatch.setattr(Program, "from_images", older)
    (row,) = advice("scan.c:10", traces["-O0"])["result"]["loops"]
    assert row["verdict"] == "doall"
    assert row["openmp"]["missing"].startswith("the optimised program, all that this trace knows, does not show how")


ASSEMBLY = """\
static unsigned flags[300];
int main(void) {
  for (int i = 0; i < 300; i++)
    __asm__ __volatile__("lock; addl %1, %0" : "+m"(flags[i]) : "r"(i));
  return flags[299] != 299;
}
"""


def test_inline_assembly_is_called_so(tmp_path: Path) -> None:
    """PostgreSQL's atomic operations are: they were called a function through a pointer."""
    (tmp_path / "flags.c").write_text(ASSEMBLY)
    program = compile_program([tmp_path / "flags.c"], tmp_path / "app", ["-g", "-O1"], instrumented=True)
    trace = record(program).trace
    ((case,),) = [row["cases"] for row in advice("flags.c:3", trace)["result"]["loops"]]
    assert [(row["reason"], row["callee"]) for row in case["blocked_by"]] == [("external", "inline assembly")]
    shown = " ".join(tracekit("advise", "flags.c:3", trace).split())
    assert "inline assembly at flags.c:4:5 has effects that the trace does not show." in shown
