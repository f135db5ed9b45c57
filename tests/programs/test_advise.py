"""Advice put to the test: what `advise` calls parallel is run in parallel as it says, and has to come to the same.

The loops of ``fixtures/advise`` say in a comment what is true of them: ``ADVICE`` a verdict (``never``: neither doall
nor doall-with) and what the directive has to contain; ``NO PRAGMA`` where there must be none; ``FORCE`` clauses with
which the loop, run in parallel in spite of the advice or without its recipe, gives something else. ``SPECULATE``: all
that blocks it is rare.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.naive import advise as naive
from tests.needs import needs
from tests.programs.parallel import outputs, parallel_outputs
from tests.programs.running import FIXTURES, TRACEKIT, build_flags, compile_program, record, run
from tracekit.api import analyze

SOURCES = sorted((FIXTURES / "advise").glob("*.c*"))
KERNELS = sorted((FIXTURES.parent / "benchmarks" / "kernels").glob("*.c"))
PARALLEL = ("doall", "doall-with")
REPEATS = 8
ATTEMPTS = 240
"""Runs in which a loop forced parallel has to go wrong at least once."""


class Truth(NamedTuple):
    """What the comment on a loop's line says."""

    line: int
    verdict: str
    pragma: tuple[str, ...]
    no_pragma: bool
    speculate: bool
    forced: str | None


def truths(source: Path) -> list[Truth]:
    found = []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.search(r"// ADVICE (\S+)(.*)$", line):
            words, _, forced = match.group(2).partition("FORCE")
            pragma = words.replace("NO PRAGMA", "").replace("SPECULATE", "")
            found.append(
                Truth(
                    number,
                    match.group(1),
                    tuple(re.findall(r"\w+(?:\(.*?\))?", pragma)),
                    "NO PRAGMA" in words,
                    "SPECULATE" in words,
                    forced.strip() if "FORCE" in match.group(2) else None,
                )
            )
    return found


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Source -> its advice, by line, and what the program prints; made when first asked for."""
    known: dict[Path, tuple[dict[int, Any], bytes]] = {}

    def advice(source: Path) -> tuple[dict[int, Any], bytes]:
        if source not in known:
            folder = tmp_path_factory.mktemp("advise")
            flags = ["-g", *(build_flags(source) or ["-O0"]), "-lm"]
            made = record(compile_program([source], folder / "app", flags, instrumented=True))
            rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
            printed = made.outcome.stdout + str(made.outcome.status).encode()
            here = {row["loop"]["line"]: row for row in rows if Path(row["loop"]["file"]).name == source.name}
            known[source] = here, printed
        return known[source]

    return advice


def small_kernel(kernel: Path, folder: Path) -> Path:
    """A PolyBench-like kernel with a problem that OpenMP regions in inner loops do not make slow; lines stay."""
    text = re.sub(r"(?m)^#define (\w+) \d+$", r"#define \1 18", kernel.read_text())
    small = folder / kernel.name
    small.write_text(text)
    return small


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_advice_is_what_is_true(source: Path, advised: Any) -> None:
    advice, _ = advised(source)
    expected = truths(source)
    assert {truth.line for truth in expected} == set(advice)
    for truth in expected:
        row = advice[truth.line]
        where = f"{source.name}:{truth.line}: {row['verdict']} {row['openmp']}"
        if truth.verdict == "never":
            assert row["verdict"] not in PARALLEL, where
        else:
            assert row["verdict"] == truth.verdict, where
        assert (row["openmp"] is not None) == (row["verdict"] in PARALLEL)
        if row["openmp"] is not None:
            pragma = row["openmp"]["pragma"]
            assert (pragma is None) == truth.no_pragma, where
            assert bool(row["openmp"]["missing"]) == truth.no_pragma, where
            assert pragma is None or all(part in pragma for part in truth.pragma), where
        assert any(case["speculation"] for case in row["cases"]) == truth.speculate, where
        for case in row["cases"]:
            assert bool(case["blocked_by"]) == (case["verdict"] not in PARALLEL)
            assert case["stages"] or case["verdict"] != "pipeline", where
            if case["stages"]:
                assert naive.verdict([(each["parallel"], each["share"]) for each in case["stages"]]) == case["verdict"]
                shares = sum(stage["share"] for stage in case["stages"]) + case["unplaced_share"]
                assert shares == pytest.approx(100, abs=0.01 * len(case["stages"])), where


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_of_flags_and_two_iterations_each_level_says_the_same(level: str, tmp_path: Path) -> None:
    """The optimiser keeps flags in registers, and makes truth values and constants of a counter that is 0 or 1."""
    source = FIXTURES / "advise" / "flags.c"
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: row for row in rows}
    for truth in truths(source):
        row = found[truth.line]
        verdict = row["verdict"] if row["verdict"] in PARALLEL else "never"
        assert verdict == truth.verdict, f"flags.c:{truth.line} {level}"
        assert verdict not in PARALLEL or (row["openmp"]["pragma"] is None) == truth.no_pragma


def test_stages_are_weighed_inside_a_recursion(advised: Any) -> None:
    """The profile has one context for all of a recursion; that a loop's call makes most of its accesses is known."""
    source = FIXTURES / "advise" / "stages.c"
    advice, _ = advised(source)
    line = next(number for number, text in enumerate(source.read_text().splitlines(), 1) if "// STAGES" in text)
    (case,) = advice[line]["cases"]
    assert case["unplaced_share"] == 0
    (calling,) = (stage for stage in case["stages"] if stage["calls"] == ["mix"])
    assert not calling["parallel"]
    assert 90 < calling["share"] < 100
    assert case["verdict"] == "sequential"
    assert all(stage["share"] > 0 for stage in case["stages"] if stage["lines"] and stage["parallel"])


@needs("libomp")
@pytest.mark.parametrize("source", [*SOURCES, *KERNELS], ids=lambda path: path.stem)
def test_what_is_called_parallel_runs_in_parallel(source: Path, advised: Any, tmp_path: Path) -> None:
    if source in KERNELS:
        source = small_kernel(source, tmp_path)
    advice, printed = advised(source)
    tried = 0
    for line, row in advice.items():
        if row["openmp"] is None or row["openmp"]["pragma"] is None:
            continue
        assert row["openmp"]["line"] == line
        tried += 1
        for output in parallel_outputs(source, tmp_path / "parallel", line, row["openmp"]["pragma"], REPEATS):
            assert output == printed, f"{source.name}:{line}: {row['openmp']['pragma']}"
    assert tried or source.stem == "lists"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_program_itself_is_deterministic(source: Path, advised: Any, tmp_path: Path) -> None:
    """Or what is compared above says nothing."""
    _, printed = advised(source)
    program = compile_program([source], tmp_path / "app", ["-O2", "-lm"], instrumented=False)
    assert set(outputs(program, 2)) == {printed}


@pytest.fixture(scope="module")
def a_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("contexts") / "app"
    return record(compile_program([FIXTURES / "advise" / "contexts.c"], program, ["-g"], instrumented=True)).trace


def test_verdicts_are_camps(a_trace: Path) -> None:
    """The advice adds to what camp says of each loop in its contexts, and takes nothing back."""
    camp = {
        (row["loop"]["line"], tuple(row["context"]["path"])): row
        for row in analyze(a_trace, "camp", jobs=1).result["loops"]
    }
    result = analyze(a_trace, "advise", jobs=1, top=0, min_share=0.0).result
    seen = set()
    for row in result["loops"]:
        for case in row["cases"]:
            of = [camp[row["loop"]["line"], tuple(context["path"])] for context in case["contexts"]]
            seen |= {(row["loop"]["line"], tuple(context["path"])) for context in case["contexts"]}
            hopeless = case["verdict"] == "sequential" and bool(case["stages"])
            assert {each["verdict"] for each in of} == {"pipeline" if hopeless else case["verdict"]}
            assert sum(each["accesses"] for each in of) == case["accesses"]
            assert sum(each["invocations"] for each in of) == case["invocations"]
            assert sum(each["iterations"] for each in of) == case["iterations"]
            assert case["trips"]["min"] <= case["trips"]["mean"] <= case["trips"]["max"]
            assert [step for each in of for step in each["recipe"]][: len(case["recipe"])] == case["recipe"]
    assert seen == camp.keys()
    assert result["runs"][0]["command"][0].endswith("app")
    assert result["runs"][0]["status"] == 0


def test_what_is_shown_can_be_limited(a_trace: Path) -> None:
    everything = analyze(a_trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    few = analyze(a_trace, "advise", jobs=1, top=2, min_share=6.0).result
    assert few["loops"] == everything[:2]
    hot = [row for row in everything if row["share"] >= 6.0]
    assert few["summary"]["hot"] == len(hot) > 2
    expected = [row["loop"]["line"] for row in hot[2:] if row["verdict"] in PARALLEL]
    assert [row["loop"]["line"] for row in few["further_parallel"]] == expected != []


@pytest.mark.parametrize("option", ["--top=-1", "--min-share=101", "--rare=-1"])
def test_nonsense_is_refused(a_trace: Path, option: str) -> None:
    outcome = run([*TRACEKIT, "analyze", "-m", "advise", option, a_trace])
    assert outcome.status == 2
    assert option[2:].partition("=")[0] in outcome.stderr.decode()


FORCED = [(source, truth) for source in SOURCES for truth in truths(source) if truth.forced is not None]


def test_enough_loops_are_forced() -> None:
    assert sum(truth.verdict in ("never", "sequential", "pipeline") for _, truth in FORCED) >= 5


@needs("libomp")
@pytest.mark.parametrize(("source", "truth"), FORCED, ids=lambda part: getattr(part, "stem", getattr(part, "line", "")))
def test_a_loop_forced_parallel_against_the_advice_goes_wrong(
    source: Path, truth: Truth, advised: Any, tmp_path: Path
) -> None:
    _, printed = advised(source)
    pragma = f"#pragma omp parallel for {truth.forced}"
    for _ in range(ATTEMPTS // REPEATS):
        if any(output != printed for output in parallel_outputs(source, tmp_path, truth.line, pragma, REPEATS)):
            return
    pytest.fail(f"{source.name}:{truth.line} came to the same in {ATTEMPTS} runs with {pragma}")


SHARED_ALREADY = """
#include <stdio.h>
enum { N = 60 };
static double a[N][N], b[N];
int main(void)
{
    for (int step = 0; step < 3; step++) {
        #pragma omp parallel
        {
            #pragma omp for
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    a[i][j] += i * j;
            #pragma omp for schedule(dynamic, 4)
            for (int i = 0; i < N; i++)
                b[i] += a[i][i];
        }
    }
    printf("%g %g\\n", a[3][4], b[5]);
    return 0;
}
"""


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_a_loop_that_openmp_shares_out_already_is_told_so(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    source = tmp_path / "app.c"
    source.write_text(SHARED_ALREADY)
    program = compile_program([source], tmp_path / "app", ["-g", level, "-fopenmp"], instrumented=True)
    trace = record(program).trace
    result = analyze(trace, "advise", min_share=0, top=0).result
    told = {row["loop"]["line"]: row["openmp"]["missing"] for row in result["loops"] if row["openmp"]}
    assert told[10] and "stands there already" in told[10]
    assert told[14] and "stands there already" in told[14]
    assert told[12] is None  # the inner one might have a directive of its own
    text = run([*TRACEKIT, "advise", "--min-share=0", trace]).stdout.decode()
    assert "OpenMP's threads meet there" in text


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_a_loop_that_is_simd_already_is_told_so(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(
        "int a[100];\nint main(void)\n{\n#pragma omp simd\n    for (int i = 0; i < 100; i++)\n        a[i] = i;\n"
        "    return a[7] != 7;\n}\n"
    )
    flags = [level, "-g", "-fopenmp-simd"]
    trace = record(compile_program([source], tmp_path / "app", flags, instrumented=True)).trace
    (row,) = analyze(trace, "advise", min_share=0).result["loops"]
    assert (row["verdict"], row["openmp"]["pragma"]) == ("doall", None)
    assert "`omp parallel for simd`" in row["openmp"]["missing"]


GLOBALS = """
namespace deep { int total; }
struct Scale { static double weight; };
double Scale::weight = 1;
int main() {
  static int held;
  for (int i = 0; i < 100; i++) {
    deep::total += i;
    Scale::weight *= 1.01;
    held += i;
  }
  return deep::total + held != 9900 || Scale::weight < 2.7;
}
"""


def test_without_g_names_are_readable_and_the_option_is_asked_for(tmp_path: Path) -> None:
    """It asked to write a for statement as a for statement, and named the linker's symbols."""
    source = tmp_path / "app.cpp"
    source.write_text(GLOBALS)
    for flags, names in ([], {"deep::total", "Scale::weight", "main::held"}), (["-g"], {"total", "weight", "held"}):
        program = compile_program([source], tmp_path / "app", ["-O0", *flags], instrumented=True)
        text = run([*TRACEKIT, "advise", "--min-share=0", record(program).trace]).stdout.decode()
        assert set(re.findall(r"- reduce global (\S+) with", text)) == names
        assert ("built without -g" in text) == (not flags)
