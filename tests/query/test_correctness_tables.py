"""Tables of races, errors of memory and leaks, of programs that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.naive.query import context_text
from tests.recorder.recording import build, record
from tracekit import api
from tracekit.modules.options import make_options
from tracekit.modules.registry import load
from tracekit.profiles import files
from tracekit.query.database import Database
from tracekit.query.run import Run
from tracekit.render.memory_errors import HEADINGS

pytest.importorskip("duckdb")

RACY = r"""
    #include <pthread.h>
    #include <stdlib.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static long counter;
    static long *shared;
    static void *adds(void *with_lock)
    {
        if (with_lock) pthread_mutex_lock(&lock);
        counter++;
        shared[3] = counter;
        if (with_lock) pthread_mutex_unlock(&lock);
        return NULL;
    }
    int main(void)
    {
        pthread_t one, two;
        shared = calloc(8, sizeof *shared);
        pthread_create(&one, NULL, adds, NULL);
        pthread_create(&two, NULL, adds, &lock);
        pthread_join(one, NULL);
        pthread_join(two, NULL);
        long last = shared[3];
        free(shared);
        long after = shared[0];
        long *never = malloc(24);
        if (never[1] == 5) last = after;
        return last > 1000;
    }"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    program = build(folder, RACY, "--threads", "-g", "-O0", "-pthread", "-w")
    assert record(folder, program).returncode == 0
    path = folder / "wrong.profile"
    modules = {name: make_options(load(name).Options, {}) for name in ("races", "memory_errors")}
    files.save(path, api.analyze_all(folder / "trace.zst", modules, 1))
    return path


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    result = Database(Run(str(path))).query(query)
    return [dict(zip(result.names, row)) for row in result.rows]


def results(path: Path) -> dict[str, Any]:
    return {each.module: each.result for each in files.load(path)}


def test_races(profile: Path) -> None:
    known = results(profile)["races"]["races"]
    found = rows(profile, "FROM races")
    assert len(found) == len(known) >= 3
    for number, (row, race) in enumerate(zip(found, known), 1):
        assert row["race"] == number and row["count"] == race["count"] and row["offset"] == race["offset"]
        assert row["object_kind"] == race["object"]["kind"] and row["shared_loop"] is None
        for end in ("first", "second"):
            place = race[end]["instruction"]
            assert (row[f"{end}_function"], row[f"{end}_line"]) == (place["function"], place["line"])
            assert row[f"{end}_access"] == race[end]["access"] and row[f"{end}_threads"] == race[end]["threads"]
            assert row[f"{end}_context"] == context_text(race[end]["context"])
            assert {"lock"} >= {name for name in row[f"{end}_locks"] if name != "nothing"}
    assert {row["object_name"] for row in found} == {"counter", None}
    assert {row["offset"] for row in found if row["object_kind"] == "heap"} == {24}
    held = {name for row in found for end in ("first", "second") for name in row[f"{end}_locks"]}
    assert held == {"lock", "nothing"}


def test_errors_of_memory(profile: Path) -> None:
    known = results(profile)["memory_errors"]["errors"]
    found = rows(profile, "FROM memory_errors")
    assert [row["kind"] for row in found] == [row["kind"] for row in known]
    assert {row["kind"] for row in found} <= HEADINGS.keys()
    (freed,) = [row for row in found if row["kind"] == "read_after_free"]
    assert freed["function"] == freed["freed_function"] == "main" and freed["freed_line"] == freed["line"] - 1
    assert (freed["size"], freed["object_kind"], freed["object_function"]) == (8, "heap", "main")
    (unwritten,) = [row for row in found if row["kind"] == "unwritten_read"]
    assert unwritten["freed_line"] is None and unwritten["freed_context"] is None


def test_leaks(profile: Path) -> None:
    known = results(profile)["memory_errors"]["leaks"]
    found = rows(profile, "FROM leaks")
    assert [(row["blocks"], row["bytes"], row["reached"]) for row in found] == [
        (row["blocks"], row["bytes"], row["reach"]) for row in known
    ]
    assert [(row["bytes"], row["allocated_by"]) for row in found] == [(24, "program")]


def test_a_trace_is_analysed_for_them(profile: Path) -> None:
    trace = profile.with_name("trace.zst")
    assert rows(trace, "SELECT count(*) AS races FROM races WHERE first_line IS NOT NULL")[0]["races"] >= 3
