"""Directives against the source: a second opinion on their clauses, and runs of each, also in other orders.

test_advise.py has the same at -O0 with one compiler; benchmarks/verdicts.py does all of it on real programs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.source_loops import ORDER, NotRewritable, in_another_order, with_directives
from tests.needs import needs
from tests.programs.clauses import Checked, Function, functions, parse
from tests.programs.running import FIXTURES, SECONDS, compile_program, record
from tracekit.api import analyze
from tracekit.recorder.toolchain import find_clang

LEVELS = ("-O0", "-O2")
CHECKED = (
    *(
        f"advise/{name}.cpp"
        for name in ("bound_references", "by_other_name", "classes", "counters", "iterators", "references", "strings")
    ),
    "advise/temporaries.cpp",
    *(f"advise/{name}.c" for name in ("by_pointer", "calls", "contexts", "copies", "effects", "exits", "extremes")),
    *(f"advise/{name}.c" for name in ("declared_inside", "globals_by_pointer")),
    *(f"advise/{name}.c" for name in ("extremes_of_types", "false_dependences", "lent", "lists", "memory_reductions")),
    *(
        f"advise/{name}.c"
        for name in ("not_private", "private", "rare", "recurrences", "reductions", "stages", "unused")
    ),
    *("control_flow.c", "known_bounds.c", "known_bounds.cpp", "known_joins.c", "known_verdicts.c"),
)
"""Those of fixtures/ with most loops; the others have next to no directives."""
TRIED = (
    *(f"advise/{name}.cpp" for name in ("by_other_name", "classes", "counters", "iterators", "references", "strings")),
    "advise/temporaries.cpp",
    *(f"advise/{name}.c" for name in ("by_pointer", "copies", "globals_by_pointer", "lent", "private", "reductions")),
    *("advise/allocas.c", "advise/unused.c", "known_bounds.c", "known_bounds.cpp"),
)
THREADS = (2, 3, 8)
SCHEDULES = ("static", "dynamic")
OF_ITERATORS = re.compile(r"\bfor \((?:[^;]*:[^:;]*\)|auto |\S*iterator )")
ORDERS = (1, 2, 7)
"""Backwards, and two random ones."""


class Advised(NamedTuple):
    """A fixture that was built and recorded: its directives by line, its columns by line, what it prints."""

    directives: dict[int, str]
    columns: dict[int, int]
    printed: bytes


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Advised]:
    """``advised(name, level)``, made when first asked for."""
    folder = tmp_path_factory.mktemp("directives")

    @cache
    def advice(name: str, level: str) -> Advised:
        program = folder / f"{Path(name).name}{level}"
        compile_program([FIXTURES / name], program, ["-g", level, "-lm"], instrumented=True)
        made = record(program)
        rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
        rows = [row for row in rows if row["openmp"] and row["openmp"]["pragma"]]
        rows = [row for row in rows if Path(row["loop"]["file"]).name == Path(name).name]
        return Advised(
            {row["loop"]["line"]: row["openmp"]["pragma"] for row in rows},
            {row["loop"]["line"]: row["loop"]["column"] for row in rows},
            made.outcome.stdout + str(made.outcome.status).encode(),
        )

    return advice


@cache
def defined(name: str) -> list[Function]:
    """The functions of a fixture."""
    return functions(parse(FIXTURES / name, []), FIXTURES / name)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CHECKED)
def test_clauses_are_those_of_the_source(name: str, level: str, advised: Callable[[str, str], Advised]) -> None:
    found = advised(name, level)
    of_file = defined(name) if found.directives else []
    for line, pragma in found.directives.items():
        place = line, found.columns[line]
        there = [each for each in of_file if place in each.loops]
        assert there, f"{name}:{line}: no such loop in the source"
        for function in there:  # of a template, or around a lambda
            assert Checked(function, function.loops[place], pragma).faults == [], f"{name}:{line}: {pragma}"


WRONG = {
    "private(t)": "u is assigned and has no clause",
    "private(t, u) lastprivate(len)": "an iteration may read len before it assigns it",
    "private(t, u, last)": "last is private, and what the loop leaves may be read",
    "private(t, u) lastprivate(last)": "last is lastprivate, and not every iteration assigns it",
    "private(u, t) reduction(+:len)": "len is reduced by +, and used otherwise",
    "private(t, u, absent)": "absent is no variable of the loop, or two",
}


@pytest.mark.parametrize("clauses", WRONG)
def test_the_checker_finds_faults(clauses: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text("""
double a[9], out[9];
int f(int n) {
  int i, len = 0, last = -1; double t, u;
  for (i = 0; i < n; i++) { t = a[i]; u = t * 2; out[len++] = u; if (u > 3) last = i; }
  return last + len;
}
""")
    (function,) = functions(parse(source, []), source)
    (loop,) = function.loops.values()
    assert WRONG[clauses] in Checked(function, loop, clauses).faults


KEPT = """
#include <stdio.h>
static int a[99], best, where;
__attribute__((noinline)) static void look(int i)
{
    int greater = a[i] > best;
    best = greater ? a[i] : best;
    where = greater ? i : where;
}
int main(void)
{
    for (int i = 0; i < 99; i++) a[i] = i * 7919 % 101;
    for (int i = 0; i < 99; i++) look(i); // the loop
    printf("%d %d\\n", best, where);
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_maximum_in_a_callee_that_keeps_its_place_is_no_reduction(level: str, tmp_path: Path) -> None:
    """Outside of loops the image has no edges that would show that the comparison goes to `where`, too."""
    source = tmp_path / "app.c"
    source.write_text(KEPT)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    line = next(number for number, text in enumerate(KEPT.splitlines(), 1) if "the loop" in text)
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    (row,) = (row for row in rows if row["loop"]["line"] == line)
    assert row["verdict"] in ("sequential", "pipeline")


NO_NUMBERS = """
#include <complex.h>
#include <stdio.h>
enum level { LOW, MIDDLE, HIGH };
static enum level levels[99];
static double complex signal[99];
static struct { double a, b; } both;
int main(void)
{
    enum level worst = LOW;
    double complex sum = 0;
    struct { double a, b; } sums = { 0, 0 };
    long double precise = 0;
    __int128 large = 0;
    for (int i = 0; i < 99; i++) levels[i] = i % 3, signal[i] = i;
    for (int i = 0; i < 99; i++) // the loop: worst
        if (levels[i] > worst) worst = levels[i];
    for (int i = 0; i < 99; i++) // the loop: sum
        sum += signal[i];
    for (int i = 0; i < 99; i++) // the loop: sums
        sums.a += i, sums.b += levels[i];
    for (int i = 0; i < 99; i++) // the loop: precise
        precise += levels[i];
    for (int i = 0; i < 99; i++) // the loop: large
        large += levels[i] * 3;
    both.a = sums.a + precise, both.b = sums.b + large;
    printf("%d %g %g %g\\n", worst, creal(sum), both.a, both.b);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_an_accumulator_that_is_no_number_is_named_where_there_is_no_directive(level: str, tmp_path: Path) -> None:
    """Optimised, a complex number is two registers without a name: the source's variable tells whose parts they are."""
    source = tmp_path / "app.c"
    source.write_text(NO_NUMBERS)
    made = record(compile_program([source], tmp_path / "app", ["-g", "-ffast-math", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    missing = {row["loop"]["line"]: row["openmp"]["missing"] or "" for row in rows}
    for number, text in enumerate(NO_NUMBERS.splitlines(), 1):
        if marked := re.search(r"// the loop: (\w+)", text):
            assert missing[number].startswith(f"OpenMP's reductions do not take {marked[1]}, which is no plain number ")


HEAP_SUMS = """#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int n = 300, *counts = calloc(50, sizeof *counts);
    double *sums = calloc(n, sizeof *sums), *a = malloc(n * n * sizeof *a);
    for (int i = 0; i < n * n; i++) a[i] = i % 7;
    for (int i = 0; i < n * n; i++) // a sum
        counts[i * 7 % 50]++;
    for (int i = 0; i < n; i++) // a sum
        for (int j = 0; j < n; j++)
            sums[j] -= a[i * n + j];
    printf("%d %g\\n", counts[3], sums[5]);
}
"""


@pytest.mark.parametrize("level", LEVELS)
@needs("libomp")
def test_a_sum_in_heap_memory_is_right_with_the_atomic_that_the_reason_asks_for(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(HEAP_SUMS)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    text = HEAP_SUMS.splitlines()
    marked = [number for number, each in enumerate(text, 1) if "// a sum" in each]
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    reasons = [row["openmp"]["missing"] for row in rows if row["loop"]["line"] in marked]
    found = [re.findall(r"`#pragma omp atomic` before .*app\.c:(\d+):\d+", each) for each in reasons]
    updates = [int(line) for (line,) in found]
    assert sorted(text[line - 1].split()[0] for line in updates) == ["counts[i", "sums[j]"]
    pragmas = dict.fromkeys(updates, "#pragma omp atomic") | dict.fromkeys(marked, "#pragma omp parallel for")
    for line in sorted(pragmas, reverse=True):
        text.insert(line - 1, pragmas[line])
    (tmp_path / "with.c").write_text("\n".join(text))
    for compiler in ("gcc", "clang"):
        program = compiled(compiler, tmp_path / "with.c", "-O1", "-fopenmp")
        for threads in THREADS:
            assert printed(program, {"OMP_NUM_THREADS": str(threads)}) == made.outcome.stdout + b"0"


SUMS_IN_ONE_PLACE = """#include <stdio.h>
#include <stdlib.h>
enum { N = 40 };
__attribute__((noinline)) static void add(double *total, const double *x)
{
    for (int i = 0; i < N; i++) // one place
        *total += x[i];
    for (int i = 0; i < N; i++) // one place
        if (i % 3 == 1)
            *total += x[i] + 1;
}
int main(void)
{
    double sum = 0;
    double (*a)[N] = malloc(N * sizeof *a), (*b)[N] = calloc(N, sizeof *b), *x = calloc(N, sizeof *x);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i * j % 7;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) // one place
            x[i] += a[i][j];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = i + 1; k < N; k++) // one place
                b[i][j] += a[i][k] * b[k][j];
    for (int i = 0; i < N; i++) // many
        for (int j = 0; j < N; j++)
            x[j] -= a[i][j];
    add(&sum, x);
    printf("%g %g %g\\n", x[3], b[3][5], sum);
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_sum_in_one_place_of_memory_is_to_be_accumulated_in_a_variable(level: str, tmp_path: Path) -> None:
    """Of many places each update has to be atomic; optimised, what is in one place lies in a register."""
    source = tmp_path / "app.c"
    source.write_text(SUMS_IN_ONE_PLACE)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    missing = {row["loop"]["line"]: (row["openmp"] or {}).get("missing") or "" for row in rows}
    for number, text in enumerate(SUMS_IN_ONE_PLACE.splitlines(), 1):
        if "// one place" in text:
            assert "accumulate in a local variable, which a `reduction` clause can name" in missing[number]
        elif "// many" in text:
            assert "put `#pragma omp atomic` before the statement" in missing[number]


COUNTED_FLOATS = """\
#include <stdio.h>
static double x[100], total[1];
static long hits[2];
int main(void) {
    for (int i = 0; i < 100; i++)
        x[i] = i / 100.0;
    for (int i = 0; i < 100; i++) // whole numbers
        hits[x[i] > 0.5]++;
    for (int i = 0; i < 100; i++) // rounded
        total[x[i] > 2] += x[i];
    long above = 0;
    double sum = 0;
    for (int i = 0; i < 100; i++) // both, in registers
        above += x[i] > 0.25;
    for (int i = 0; i < 100; i++)
        sum += x[i];
    printf("%ld %g %ld %g\\n", hits[0], total[0], above, sum);
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_count_of_floating_point_numbers_is_exact_in_any_order(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(COUNTED_FLOATS)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    directives = {row["loop"]["line"]: (row["openmp"]["pragma"], row["openmp"]["rounding"]) for row in rows}
    assert directives[7] == ("#pragma omp parallel for reduction(+:hits)", False)
    assert directives[9] == ("#pragma omp parallel for reduction(+:total)", True)
    assert directives[13] == ("#pragma omp parallel for reduction(+:above)", False)
    assert directives[15] == ("#pragma omp parallel for reduction(+:sum)", True)


# -- runs ------------------------------------------------------------------------------------------


def command(compiler: str, name: str) -> list[str]:
    """How a fixture is compiled natively."""
    plus = Path(name).suffix != ".c"
    if compiler == "gcc":
        return ["g++" if plus else "gcc"]
    return [find_clang().path, *(["--driver-mode=g++"] if plus else [])]


def compiled(compiler: str, source: Path, *flags: str) -> Path:
    program = source.with_suffix(".run")
    words = [*command(compiler, source.name), *flags, "-w", str(source), "-o", str(program), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return program


def printed(program: Path, environment: Mapping[str, str]) -> bytes:
    done = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, timeout=SECONDS)
    return done.stdout + str(done.returncode).encode()


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize(
    "compiler", [pytest.param("clang", marks=needs("libomp")), pytest.param("gcc", marks=needs("gcc"))]
)
def test_directives_one_by_one_and_together(
    compiler: str, name: str, level: str, advised: Callable[[str, str], Advised], tmp_path: Path
) -> None:
    found = advised(name, level)
    text = re.sub(r"\bN = 3000\b", "N = 300", (FIXTURES / name).read_text())  # regions in inner loops cost much
    copy = tmp_path / Path(name).name
    copy.write_text(text)
    expected = printed(compiled(compiler, copy), {})
    assert found.directives
    for directives in [*({line: pragma} for line, pragma in found.directives.items()), found.directives]:
        copy.write_text(with_directives(text, directives))
        program = compiled(compiler, copy, "-fopenmp")
        for threads in THREADS:
            for schedule in SCHEDULES:
                asked = {"OMP_NUM_THREADS": str(threads), "OMP_SCHEDULE": schedule, "OMP_WAIT_POLICY": "passive"}
                assert printed(program, asked) == expected, f"{threads} threads, {schedule}: {directives}"


@pytest.mark.parametrize("name", CHECKED)
def test_loops_called_doall_run_in_any_order(name: str, advised: Callable[[str, str], Advised], tmp_path: Path) -> None:
    found = advised(name, "-O0")
    text = (FIXTURES / name).read_text()
    for line in sorted(found.directives, reverse=True):  # so that what is rewritten stands behind what will be
        if OF_ITERATORS.search(text.splitlines()[line - 1]):
            continue  # no numbers, which could come in another order
        keep = "lastprivate" in found.directives[line]
        text = in_another_order(text, line, found.columns[line], keep_last=keep)
    copy = tmp_path / Path(name).name
    copy.write_text(ORDER + text)
    if found.directives:
        program = compiled("clang", copy)
        for order in (0, *ORDERS):
            assert printed(program, {"TRACEKIT_ORDER": str(order)}) == found.printed, f"order {order}"


def test_a_directive_goes_before_the_loop_and_behind_what_stands_before_it() -> None:
    text = with_directives("a;\n  for (;;)\nif (x) for (;;)", {2: "#p", 3: "#q"}, "c", {2: 3, 3: 8})
    assert text == "a;\n#p c\n  for (;;)\nif (x) \n#q c\nfor (;;)"


def test_another_order_shows_that_a_loop_is_not_doall(tmp_path: Path) -> None:
    """Or the test above says nothing."""
    source = tmp_path / "app.c"
    text = (
        "#include <stdio.h>\nint main(void) {\n  int k, s = 1;\n"
        "  for (int i = 0; i < 9; i++) s = s * 3 + i;\n"
        "  for (k = 9; k > 0; k -= 2) { if (k == 5) continue; s ^= k; }\n"
        '  printf("%d %d\\n", s, k);\n}\n'
    )
    expected = []
    for line in (4, 5):
        source.write_text(ORDER + in_another_order(text, line, 3, keep_last=False))
        program = compiled("clang", source)
        expected.append([printed(program, {"TRACEKIT_ORDER": str(order)}) for order in (0, *ORDERS)])
    carried, independent = expected
    assert len(set(carried)) > 1
    assert len({carried[0], *independent}) == 1


def test_the_other_order_does_not_meet_names_of_the_program(tmp_path: Path) -> None:
    """A parameter `free`, as in libimagequant, was called by the rewritten loop, and crashed it."""
    source = tmp_path / "app.c"
    text = (
        "#include <stdio.h>\nstatic int sum(void (*free)(void *), void *getenv, int (*realloc)[4]) {\n  int s = 0;\n"
        "  for (int i = 0; i < 4; i++) s += (*realloc)[i];\n"
        "  return s + !free + !getenv;\n}\n"
        'int main(void) { int a[4] = {1, 2, 3, 4}; printf("%d\\n", sum(0, 0, &a)); }\n'
    )
    source.write_text(ORDER + in_another_order(text, 4, 3, keep_last=False))
    program = compiled("clang", source)
    assert [printed(program, {"TRACEKIT_ORDER": str(order)}) for order in (0, *ORDERS)] == [b"12\n0"] * 4


HASHES = """#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>
int main() {
    std::vector<std::string> words;
    std::unordered_map<std::string, int> number;
    for (int i = 0; i < 300; i++) words.push_back("a word that is not short " + std::to_string(i % 50));
    for (int i = 0; i < 300; i++) number.emplace(words[i], i);
    std::vector<int> found(300);
    for (int i = 0; i < 300; i++) found[i] = number.find(words[i])->second; // independent
    std::string key = "a word that has letters";
    std::vector<size_t> hashes(300);
    for (int i = 0; i < 300; i++) { // reads what the one before wrote
        hashes[i] = std::hash<std::string>()(key);
        key[i % 20] = 'a' + i % 26;
    }
    printf("%d %d", found[77], hashes[1] != hashes[2]);
}
"""


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O2", "-static"]], ids=" ".join)
def test_a_hash_of_a_string_reads_it_and_does_nothing_else(flags: list[str], tmp_path: Path) -> None:
    """libstdc++ has it in the library: the runtime says what it reads."""
    source = tmp_path / "app.cpp"
    source.write_text(HASHES)
    made = record(compile_program([source], tmp_path / "app", ["-g", *flags], instrumented=True))
    assert made.outcome.stdout == b"27 1"
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: row for row in rows if row["loop"]["file"].endswith("app.cpp")}
    line = {text.split("// ")[1]: number for number, text in enumerate(HASHES.splitlines(), 1) if "// " in text}
    assert found[line["independent"]]["openmp"]["pragma"] == "#pragma omp parallel for"
    blocked = found[line["reads what the one before wrote"]]["cases"][0]["blocked_by"]
    assert {row["reason"] for row in blocked} == {"dependence"}
    assert ("store", "library") in {(row["source"]["kind"], row["destination"]["kind"]) for row in blocked}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_what_the_next_loop_would_load_again_is_no_value_left_behind(
    level: str, advised: Callable[[str, str], Advised]
) -> None:
    """The optimiser lets the next loop begin with the bound that this one has loaded last."""
    text = (FIXTURES / "known_joins.c").read_text().splitlines()
    always = {number for number, line in enumerate(text, 1) if "// ALWAYS" in line}
    found = advised("known_joins.c", level).directives
    assert found == dict.fromkeys(always, "#pragma omp parallel for")


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_loops_over_strings_have_directives(level: str, advised: Callable[[str, str], Advised]) -> None:
    """What is printed when a check of std::string fails is no value left behind, nor does it decide how far they go."""
    text = (FIXTURES / "advise" / "strings.cpp").read_text().splitlines()
    parallel = {number for number, line in enumerate(text, 1) if "// ADVICE doall" in line}
    assert set(advised("advise/strings.cpp", level).directives) == parallel


def test_a_head_that_cannot_be_rewritten_is_refused() -> None:
    for head in ("for (;;)", "for (i = 0, j = 0; i < 9; i++)", "for (a[0] = 0; a[0] < 9; a[0]++)", "while (1)"):
        with pytest.raises(NotRewritable):
            in_another_order(f"{head} f();", 1, 1, keep_last=False)
