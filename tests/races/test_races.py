"""The module ``races`` from the command line: suppressions, exit status, text, and what it says it does not see."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests import prepared
from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, record
from tracekit.formats.errors import TracekitError
from tracekit.races.suppressions import Suppressions

SOURCE = r"""
    #include <pthread.h>
    #include <stdlib.h>
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
    static int *shared;
    long sum;
    static void add(int number) { shared[1] += number; }
    static void *work(void *first)
    {
        pthread_mutex_lock(first ? &one : &two);
        for (int i = 0; i < 3; i++) add(i);
        pthread_mutex_unlock(first ? &one : &two);
        return NULL;
    }
    static void *look(void *none) { sum = 2; return none; }
    int main(void)
    {
        pthread_t threads[3];
        shared = calloc(4, sizeof *shared);
        pthread_create(&threads[0], NULL, work, NULL);
        pthread_create(&threads[1], NULL, work, &one);
        pthread_create(&threads[2], NULL, look, NULL);
        sum = 1;
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        free(shared);
        return 0;
    }"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("races")
    run = record(folder, build(folder, SOURCE, "-g", "-fno-inline", "-pthread"))
    assert run.returncode == 0, run.stderr
    return folder / "trace.zst"


def analyze(trace: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*TRACEKIT, "analyze", "-m", "races", *options, str(trace)]
    return prepared.run(command, env=ENVIRONMENT, capture_output=True, text=True)


def test_both_ends_the_object_locks_and_threads(trace: Path) -> None:
    result: dict[str, Any] = json.loads(analyze(trace, "--json").stdout)["result"]
    assert result["summary"]["races"] == len(result["races"]) >= 2
    for race in result["races"]:
        ends = race["first"], race["second"]
        if ends[0]["instruction"]["function"] == "add":
            assert race["object"]["kind"] == "heap" and race["object"]["site"]["function"] == "main"
            assert (race["number"], race["offset"]) == (0, 4)
            held = [lock for end in ends for locks in end["locks"] for lock in locks]
            assert sorted(lock["object"]["name"] for lock in held) == ["one", "two"]
            assert all(lock["offset"] == 0 and not lock["shared"] for lock in held)
            assert {stream for end in ends for stream in end["threads"]} == {1, 2}
            path = ends[0]["context"]["path"]
            assert ends[0]["context"]["root"] == "work" and path[0].startswith("loop work:") and len(path) == 2
        else:
            assert {end["instruction"]["function"] for end in ends} == {"look", "main"}
            assert race["object"] == {"kind": "global", "name": "sum"}
            assert ends[0]["access"] == ends[1]["access"] == "store" and ends[0]["locks"] == [[]]
    assert [(row["thread"], row["function"], row.get("creator")) for row in result["threads"]] == [
        (0, "main", None),
        (1, "work", 0),
        (2, "work", 0),
        (3, "look", 0),
    ]
    text = analyze(trace).stdout
    assert "race on global sum, byte 0\n" in text and "  thread 3 look, created by thread 0 in main\n" in text
    assert "holding one\n" in text and "holding two\n" in text and "holding nothing\n" in text


def test_suppressions_and_exit_status(trace: Path, tmp_path: Path) -> None:
    assert analyze(trace).returncode == 0
    assert analyze(trace, "--exit-code").returncode == 1
    assert analyze(trace, "--exit-code", "--json").returncode == 1
    done = analyze(trace, "--exit-code", "--suppress", "function:add,function:lo?k")
    assert done.returncode == 0 and "0 races, " in done.stdout and "suppressed" in done.stdout
    assert analyze(trace, "--exit-code", "--suppress", "function:work").returncode == 1  # the other race is left
    assert "race on global sum" in analyze(trace, "--suppress", "function:work").stdout  # callers count
    (tmp_path / "known").write_text("# known races\nfile:*app.c # all\n")
    assert analyze(trace, "--exit-code", "--suppress", f"@{tmp_path / 'known'}").returncode == 0
    for wrong in ("add", "place:add", "function:", "@/nowhere"):
        done = analyze(trace, "--suppress", wrong)
        assert (
            done.returncode == 2 and done.stdout == "" and "races: " in done.stderr and "Traceback" not in done.stderr
        )
        with pytest.raises(ValueError, match="suppression"):
            Suppressions.of(wrong)


def test_several_jobs_say_the_same(trace: Path) -> None:
    assert analyze(trace, "-j", "1", "--json").stdout == analyze(trace, "-j", "3", "--json").stdout


def test_atomic_operations_without_order_are_told_of(tmp_path: Path) -> None:
    source = r"""
        #include <pthread.h>
        static _Atomic int counted;
        static void *work(void *none) { counted++; return none; }
        int main(void)
        {
            pthread_t thread;
            pthread_create(&thread, NULL, work, NULL);
            counted++;
            pthread_join(thread, NULL);
            return 0;
        }"""
    record(tmp_path, build(tmp_path, source, "-pthread"))
    found = analyze(tmp_path / "trace.zst").stdout
    assert "0 races" in found
    assert "note: 2 atomic instructions ran whose order is not in the trace (compile with `tracekit cc" in found


def test_a_program_with_one_thread(tmp_path: Path) -> None:
    record(tmp_path, build(tmp_path, "int many[100]; int main(int n, char **v) { many[n] = 1; return many[n + 1]; }"))
    result = tracekit.analyze(str(tmp_path / "trace.zst"), "races").result
    assert result["races"] == [] and result["summary"]["threads"] == 1


OPENMP = """
    long shared;
    int main(void)
    {
    #pragma omp parallel num_threads(2)
    #pragma omp single
        for (int i = 0; i < 2; i++) {
    #pragma omp task
            shared += i;
        }
        return 0;
    }"""


@needs("libomp")
def test_tasks_are_named_by_where_they_are_made(tmp_path: Path) -> None:
    """Two tasks race, also if one thread ran both."""
    record(tmp_path, build(tmp_path, OPENMP, "-fopenmp", "-g"))
    done = analyze(tmp_path / "trace.zst", "--exit-code")
    assert done.returncode == 1 and "race on global shared, byte 0\n" in done.stdout, done.stdout
    result = tracekit.analyze(str(tmp_path / "trace.zst"), "races").result
    assert result["summary"]["tasks"] == 2 and result["summary"]["mingled_tasks"] == 0
    (task,) = result["tasks"]
    assert task["kind"] == "explicit" and task["instruction"]["line"] == 8  # of the file: `#pragma omp task`
    assert {number for race in result["races"] for number in race["first"]["tasks"]} == {task["task"]}
    assert f"    by task {task['task']} on thread " in done.stdout
    assert f"  task {task['task']}, explicit, created at app.c:8:" in done.stdout


@needs("libomp")
def test_openmp_without_its_tool_is_refused(tmp_path: Path) -> None:
    record(tmp_path, build(tmp_path, OPENMP, "-fopenmp"), environment={"OMP_TOOL": "disabled"})
    with pytest.raises(TracekitError, match="OpenMP"):
        tracekit.analyze(str(tmp_path / "trace.zst"), "races")
    done = analyze(tmp_path / "trace.zst")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
