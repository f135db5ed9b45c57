"""Every construct that orders threads, with and without its race: fixtures/races, each case `ok` and `race`.

What is reported has to lie on lines marked with a comment, and nothing is reported for a program that orders what it
does.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests import prepared
from tests.needs import needs
from tests.recorder.instrumented import toolchain
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, record
from tracekit.profiles import files
from tracekit.query.correctness_tables import TABLES

FOLDER = ROOT / "fixtures/races"
PROGRAMS = {
    "locks": "locks.c",
    "lock_orders": "lock_orders.c",
    "outside": "outside.cpp",
    "order": "order.c",
    "descriptors": "descriptors.c",
    "kernel": "kernel.c",
    "lifetimes": "lifetimes.c",
    "memory": "memory.c",
    "atomics": "atomics.c",
    "cxx": "cxx.cpp",
}
OPENMP = {"openmp": "openmp.c", "openmp_tasks": "openmp_tasks.c"}
CASES = [
    (program, case)
    for program, file in PROGRAMS.items()
    for case in re.findall(r'\{"(\w+)", \w+\}', (FOLDER / file).read_text())
]


@cache
def marked(file: str) -> frozenset[int]:
    """The lines of a file on which races may lie."""
    lines = (FOLDER / file).read_text().splitlines()
    return frozenset(
        number for number, line in enumerate(lines, 1) if re.search(r"(/\* race \*/|// race|! race)", line)
    )


def compiled(folder: Path, file: str, *options: str) -> Path:
    """A program of the folder, compiled."""
    toolchain()
    compiler = ["c++", "-std=c++20"] if file.endswith("cpp") else ["cc"]
    program = folder / Path(file).stem
    command = [
        *TRACEKIT,
        *compiler,
        "--threads",
        "-g",
        "-O1",
        "-pthread",
        *options,
        str(FOLDER / file),
        "-o",
        str(program),
    ]
    run = prepared.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs, compiled."""
    folder = tmp_path_factory.mktemp("programs")
    return {name: compiled(folder, file) for name, file in PROGRAMS.items()}


def races(folder: Path, program: Path, case: str, variant: str) -> dict[str, Any]:
    """What is found in a run."""
    run = record(folder, program, case, variant)
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = tracekit.analyze(str(folder / "trace.zst"), "races").result
    assert result["summary"]["unordered_atomics"] == result["summary"]["old_barriers"] == 0
    return result


def lines_of(end: dict[str, Any], file: str) -> set[int]:
    """The lines of the program's own file that an end of a race lies on, is inlined into, or is called from."""
    places = [end["instruction"], *end["instruction"]["inlined_at"]]
    lines = {place["line"] for place in places if place["file"].endswith(file)}
    return lines or {int(step.split(":")[-2]) for step in end["context"]["path"] if re.search(r":\d+:\d+$", step)}


@pytest.mark.parametrize(("program", "case"), CASES)
def test_ordered(tmp_path: Path, programs: dict[str, Path], program: str, case: str) -> None:
    result = races(tmp_path, programs[program], case, "ok")
    assert result["races"] == [] and result["summary"]["races"] == 0


@pytest.mark.parametrize(("program", "case"), CASES)
def test_racing(tmp_path: Path, programs: dict[str, Path], program: str, case: str) -> None:
    found = races(tmp_path, programs[program], case, "race")["races"]
    assert found
    file = PROGRAMS[program]
    for race in found:
        for end in (race["first"], race["second"]):
            assert lines_of(end, file) & marked(file), end


@pytest.mark.parametrize(
    ("program", "case", "variant", "until", "note"),
    [
        ("lock_orders", "behind", "race", "end", ""),
        ("memory", "neighbours", "race", "race", ""),
        ("lock_orders", "refused", "ok", "try", "up to the first lock that was tried in vain"),
    ],
)
def test_where_other_orders_of_locks_were_looked_for(
    tmp_path: Path, programs: dict[str, Path], program: str, case: str, variant: str, until: str, note: str
) -> None:
    assert races(tmp_path, programs[program], case, variant)["summary"]["lock_orders_until"] == until
    command = [*TRACEKIT, "analyze", "-m", "races", tmp_path / "trace.zst"]
    for options, said in (([], note), (["--no-lock-orders"], "")):
        text = prepared.run([*command, *options], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
        notes = [line for line in text.splitlines() if "other orders of locks" in line]
        assert len(notes) == bool(said) and all(said in line for line in notes)


def test_other_orders_of_locks_may_be_left_out(tmp_path: Path, programs: dict[str, Path]) -> None:
    assert races(tmp_path, programs["lock_orders"], "behind", "race")["races"]
    result = tracekit.analyze(str(tmp_path / "trace.zst"), "races", lock_orders=False).result
    assert result["races"] == [] and "lock_orders_until" not in result["summary"]


NUMBERS = """\
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static int table[64], number;
static void *closes(void *none)
{
    table[number] = 1;
    close(number);
    return none;
}
static void *opens(void *none)
{
    int got;
    while ((got = open("/dev/null", O_RDONLY)) != number)
        close(got);
    table[got]++;
    return none;
}
int main(void)
{
    pthread_t one, two;
    number = open("/dev/null", O_RDONLY);
    pthread_create(&one, NULL, closes, NULL);
    pthread_create(&two, NULL, opens, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
"""


def test_who_closes_a_descriptor_may_come_before_who_gets_its_number(tmp_path: Path) -> None:
    """memcached keeps its connections by number."""
    (tmp_path / "numbers.c").write_text(NUMBERS)
    result = races(tmp_path, compiled(tmp_path, str(tmp_path / "numbers.c")), "", "")
    assert {row["object"]["name"] for row in result["races"]} == {"table"}
    assert result["summary"]["reused_descriptors"] == 1
    command = [*TRACEKIT, "analyze", "-m", "races", tmp_path / "trace.zst"]
    for options, told in (([], True), (["--descriptor-order"], False)):
        text = prepared.run([*command, *options], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
        assert ("race on global table" in text) == ("note: 1 descriptor got the number of one" in text) == told


def test_another_order_of_locks_is_told(tmp_path: Path, programs: dict[str, Path]) -> None:
    """In the profile, in text, in SARIF and in the table."""
    (race,) = races(tmp_path, programs["lock_orders"], "behind", "race")["races"]
    assert race["other_lock_order"]["object"]["name"] == "mutex"
    trace, profile, sarif = tmp_path / "trace.zst", tmp_path / "races.profile", tmp_path / "races.sarif"
    command = [*TRACEKIT, "analyze", "-m", "races", trace]
    text = prepared.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
    assert "in this run mutex ordered the two" in text
    prepared.run([*command, "-o", profile], check=True, env=ENVIRONMENT)
    prepared.run([*TRACEKIT, "export", "sarif", profile, "-o", sarif], check=True, env=ENVIRONMENT)
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    assert "which mutex ordered in this run" in result["message"]["text"]
    (table,) = [table for table in TABLES if table.name == "races"]
    (row,) = table.rows(files.load(profile)[0].report)
    assert dict(zip((column.name for column in table.columns), row))["turned_lock"] == "mutex"


def names_of(race: dict[str, Any], tasks: dict[int, dict[str, Any]]) -> str:
    """The functions that both ends of a race are called from, and where their tasks are made."""
    contexts = [race[end]["context"] for end in ("first", "second")]
    contexts += [tasks[number]["created_in"] for end in ("first", "second") for number in race[end]["tasks"]]
    return " ".join(name for context in contexts for name in [context["root"], *context["path"]])


@needs("libomp")
@pytest.mark.parametrize("program", OPENMP)
def test_openmp(tmp_path: Path, program: str) -> None:
    """All cases of a program in one run: none races, and each of them does."""
    path = compiled(tmp_path, OPENMP[program], "-fopenmp")
    assert races(tmp_path, path, "all", "ok")["races"] == []
    (tmp_path / "trace.zst").unlink()
    result = races(tmp_path, path, "all", "race")
    tasks = {row["task"]: row for row in result["tasks"]}
    for race in result["races"]:
        for end in (race["first"], race["second"]):
            assert lines_of(end, OPENMP[program]) & marked(OPENMP[program]), end
    found = " ".join(names_of(race, tasks) for race in result["races"])
    cases = re.findall(r'\{"(\w+)", (\w+)\}', (FOLDER / OPENMP[program]).read_text())
    assert [case for case, function in cases if not re.search(rf"\b{function}\b", found)] == []
    assert len(cases) >= 35


def test_there_are_many() -> None:
    assert len(CASES) == len(set(CASES)) >= 80


@needs("libomp")
@needs("flang")
def test_fortran(tmp_path: Path) -> None:
    """OpenMP of flang: the one sum that nothing orders, and nothing else."""
    program = tmp_path / "sums"
    toolchain()
    command = [*TRACEKIT, "fc", "-O1", "-g", "-fopenmp", str(FOLDER / "fortran.f90"), "-o", str(program)]
    prepared.run(command, env=ENVIRONMENT, check=True, capture_output=True, timeout=300)
    assert races(tmp_path, program, "all", "ok")["races"] == []
    (tmp_path / "trace.zst").unlink()
    found = races(tmp_path, program, "race", "")["races"]
    assert found
    for race in found:
        lines = {race[end]["instruction"]["line"] for end in ("first", "second")}
        assert lines & marked("fortran.f90") and lines <= {0, *marked("fortran.f90")}, race
    shown = prepared.run(
        [*TRACEKIT, "analyze", "-m", "races", str(tmp_path / "trace.zst")], capture_output=True, text=True, timeout=300
    ).stdout
    assert "library code" not in shown and "fortran.f90:19" in shown


IN_TEAM = r"""
    #include <omp.h>
    static long sum;
    static void work(int times)
    {
    #pragma omp parallel num_threads(3)
        for (int i = 0; i < times; i++)
            sum += i; /* race */
    }
    int main(void)
    {
        work(40);
        work(50);
        return 0;
    }"""


@needs("libomp")
def test_what_a_team_does_has_the_context_that_made_the_team(tmp_path: Path) -> None:
    """Whether its master or a worker did it: one row for each two places."""
    file = tmp_path / "team.c"
    file.write_text(IN_TEAM)
    run = record(tmp_path, compiled(tmp_path, str(file), "-fopenmp", "-O0"))
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = tracekit.analyze(str(tmp_path / "trace.zst"), "races").result
    line = next(number for number, text in enumerate(IN_TEAM.splitlines(), 1) if "race" in text)
    ends = [row[end] for row in result["races"] for end in ("first", "second")]
    assert {end["instruction"]["line"] for end in ends} == {line}
    contexts = {(end["context"]["root"], *end["context"]["path"][:2]) for end in ends}
    assert {context[0] for context in contexts} == {"main"} and len(contexts) == 2
    assert {step.split(":")[0] for _, _, step in contexts} == {"work"}
    places = [
        tuple((row[end]["access"], str(row[end]["context"]["path"])) for end in ("first", "second"))
        for row in result["races"]
    ]
    assert len(set(places)) == len(places) <= 4
    threads = {thread["thread"]: thread["function"] for thread in result["threads"]}
    assert threads[0] == "main" and {name for stream, name in threads.items() if stream} == {"work.omp_outlined"}


WRAPPED = """
    #include <pthread.h>
    #include <stdlib.h>
    static __attribute__((noinline)) long *filled(size_t n) { long *made = malloc(n * 8); *made = n; return made; }
    static long *one, *two;
    static void *work(void *unused)
    {
        for (int i = 0; i < 100; i++) { one[0]++; two[0]++; }
        return unused;
    }
    int main(void)
    {
        pthread_t worker;
        one = filled(3); /* made */
        two = filled(4); /* made */
        pthread_create(&worker, NULL, work, NULL);
        work(NULL);
        pthread_join(worker, NULL);
        free(one);
        free(two);
        return 0;
    }"""


def test_memory_is_named_by_the_call_that_wants_it(tmp_path: Path) -> None:
    """Not by a function that allocates for its callers, as Rust's library does for vectors."""
    file = tmp_path / "wrapped.c"
    file.write_text(WRAPPED)
    assert record(tmp_path, compiled(tmp_path, str(file))).returncode == 0
    result: dict[str, Any] = tracekit.analyze(str(tmp_path / "trace.zst"), "races").result
    made = {number for number, text in enumerate(WRAPPED.splitlines(), 1) if "made */" in text}
    assert {row["object"]["site"]["line"] for row in result["races"]} == made


IN_TASKS = """
    static long sum;
    __attribute__((noinline)) static void spread(long n)
    {
        for (long i = 0; i < n; i++) {
    #pragma omp task
            {
                for (volatile int k = 0; k < 3000; k++)
                    continue;
                sum += i; /* race */
            }
        }
    #pragma omp taskwait
    }
    __attribute__((noinline)) static int again(int n)
    {
        int a = 0, b = 0;
        sum++; /* race */
        if (n < 2)
            return n;
    #pragma omp task shared(a)
        a = again(n - 1);
    #pragma omp task shared(b) if (n > 3)
        b = again(n - 2);
    #pragma omp taskwait
        return a + b;
    }
    int main(void)
    {
    #pragma omp parallel num_threads(4)
    #pragma omp single
        {
    #pragma omp task
            spread(20);
            again(7);
        }
        return 0;
    }"""


@needs("libomp")
def test_what_a_task_does_has_the_context_that_made_it(tmp_path: Path) -> None:
    """Whichever thread runs it, where that waits: one row for each two places, also of tasks that make their like."""
    file = tmp_path / "tasks.c"
    file.write_text(IN_TASKS)
    run = record(tmp_path, compiled(tmp_path, str(file), "-fopenmp", "-O1"))
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = tracekit.analyze(str(tmp_path / "trace.zst"), "races").result
    ends = [row[end] for row in result["races"] for end in ("first", "second")]
    contexts = {end["instruction"]["line"]: (end["context"]["root"], *end["context"]["path"]) for end in ends}
    shown = {(end["instruction"]["line"], end["context"]["root"], *end["context"]["path"]) for end in ends}
    assert len(shown) == len(contexts) == 2 and {context[0] for context in contexts.values()} == {"main"}
    spread, again = (contexts[line] for line in sorted(contexts))
    assert "loop spread:5" in spread and spread[-1].startswith("spread:6")
    assert not any("again" in step for step in again)
    tasks = [(row["kind"], str(row["instruction"]), str(row["created_in"])) for row in result["tasks"]]
    assert len(set(tasks)) == len(tasks)
