"""Dependences between threads against the naive reference, on random runs of random programs; and of real ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.dependence import Event, NaiveDependence
from tests.naive.dependence_engine import DependenceEngine
from tests.naive.dependence_machine import MEMORY, Machine, RandomProgram, interleaved
from tests.naive.dependence_programs import feed
from tests.naive.dependence_rows import from_naive, from_profile, paths_of
from tests.naive.folding import NaiveFolding
from tests.naive.inter_thread import inter_thread
from tests.needs import needs
from tests.programs.running import FIXTURES, compile_program, record, run_here
from tracekit.containers.hash_table import used_rows
from tracekit.dependence.kernels.dependence_table import END_BITS
from tracekit.dependence.kernels.inter_thread import InterThread
from tracekit.formats.events import CODE, NONE


def found(engine: DependenceEngine, folding: bool) -> dict[Any, int]:
    """(Kind, source, destination) -> count, the ends as the naive reference has them."""
    module, (state,) = engine.module, engine.states
    made: InterThread = state.inter_thread
    contexts = module.contexts
    paths = paths_of(cast(Any, SimpleNamespace(nodes=contexts.nodes)), folding) if module.context else []
    places, ends = used_rows(made.places)["key"], used_rows(made.ends)["key"]

    def end(number: int) -> Any:
        stream, place = int(ends[number]) >> 32, int(places[int(ends[number]) & NONE])
        instruction = place >> 32
        row = int(contexts.rows(np.array([place & NONE]))[0]) if module.context else -1
        context = paths[row] if module.context else ()
        return (instruction if instruction < len(module.program.ops) else NONE, context, stream)

    mask = (1 << END_BITS) - 1
    counts: dict[Any, int] = {}
    for row in used_rows(made.found)[1:]:
        key = int(row["key"])
        name = (key >> (2 * END_BITS), end(key >> END_BITS & mask), end(key & mask))
        counts[name] = counts.get(name, 0) + int(row["count"])
    return counts


def with_new_stacks(random: Random, events: list[Event]) -> list[Event]:
    """The events, and memory of new threads where another thread goes on, and tasks that begin and end there."""
    made: list[Event] = []
    for event in events:
        if made and made[-1][0] != event[0] and random.random() < 0.1:
            made.append((event[0], CODE["thread_memory"], 0, MEMORY + random.randrange(64), random.choice((0, 5, 16))))
            continue_with = random.randrange(6)
            made.append(
                (event[0], CODE["task_create"], NONE, random.choice((4, 4, 4 | 1 << 27)), random.randrange(1, 5))
            )
            made.append((event[0], CODE["task_schedule"], random.randrange(1, 9), continue_with, 1))
        made.append(event)
    return made


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(2, 4),
    st.sampled_from([30, 100, 300]),
    st.sampled_from(["", "static", "dynamic"]),
)
def test_dependences_between_threads_are_those_of_the_naive_reference(
    seed: int, streams: int, limit: int, contexts: str
) -> None:
    random = Random(seed)
    made = RandomProgram(random)
    numbers = random.sample(range(5), streams)
    runs = interleaved(random, [Machine(made, random, number, limit).run() for number in numbers])
    events = with_new_stacks(random, runs)
    cuts = [place for place in range(len(events)) if random.random() < 0.1]
    engine = DependenceEngine(made.program, bool(contexts), rule=contexts or "static", threads=True)
    feed(engine, events, cuts)
    naive = NaiveFolding(made.program) if contexts == "dynamic" else NaiveDependence(made.program, bool(contexts))
    expected = inter_thread(naive, events)
    profile = engine.result()
    assert found(engine, contexts == "dynamic") == expected
    got, want = from_profile(profile, folding=contexts == "dynamic"), from_naive(naive)
    assert got["dependences"] == want["dependences"]  # those of each thread by itself are as without


ENDS = ("source", "destination")
KEYS = ("kind", "source", "destination", "source_thread", "destination_thread")
LINES = {"key": 17, "value": 18, "get": 28, "table": 38, "fill": 57, "total": 49, "print": 64}
"""Of the fixture: where `put` stores, `get` loads, the table and the total are stored and loaded."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = tmp_path_factory.mktemp("between") / "app"
    compile_program([FIXTURES / "between_threads.c"], app, ["-O1", "-g", "-pthread"], instrumented=True)
    return record(app).trace


def lines(rows: list[dict[str, Any]]) -> dict[Any, int]:
    """Kind, lines of both ends and functions of both threads -> count."""
    counts: dict[Any, int] = {}
    for row in rows:
        ends = [(row[end]["line"], row[f"{end}_thread"]["function"]) for end in ENDS]
        counts[row["kind"], *ends] = counts.get((row["kind"], *ends), 0) + row["count"]
    return counts


@pytest.mark.parametrize("module", ["camp", "lamp", "advise"])
def test_a_producer_and_a_consumer(trace: Path, module: str) -> None:
    profile = tracekit.analyze(trace, module, threads=True)
    rows = profile.result["between_threads"]
    get, put = (LINES["get"], "consumer"), [(LINES[name], "producer") for name in ("key", "value")]
    assert lines(rows) == {
        **{("RAW", store, get): 201 for store in put},  # 200 items, and the one that ends it
        **{("WAR", get, store): 193 for store in put},  # each slot but the first time that it is filled
        ("RAW", (LINES["fill"], "main"), (LINES["table"], "producer")): 200,
        ("RAW", (LINES["total"], "consumer"), (LINES["print"], "main")): 1,
    }
    made_in = {row[f"{end}_thread"]["function"]: row[f"{end}_thread"]["created"] for row in rows for end in ENDS}
    if module == "lamp":
        assert set(made_in.values()) == {None}
    else:
        main = {name: made and (made["root"], made["path"]) for name, made in made_in.items()}
        assert main == {"main": None, "producer": ("main", []), "consumer": ("main", [])}
        assert {row["source_context"]["root"] for row in rows} == {"main", "producer", "consumer"}
    without = tracekit.analyze(trace, module)
    assert "between_threads" not in without.result and "threads" not in without.report["options"]
    if module != "advise":
        assert {**profile.result, "between_threads": None} == {**without.result, "between_threads": None}
    else:
        for row, other in zip(profile.result["loops"], without.result["loops"], strict=True):
            assert row == {**other, "between_threads": row["between_threads"]}
        reaching = {row["loop"]["function"]: row["between_threads"] for row in profile.result["loops"]}
        assert reaching["producer"] == {"raw": 3, "war": 2, "waw": 0}


@needs("libomp")
def test_tasks(tmp_path: Path) -> None:
    """Who has what a task made is another one, also if one thread happened to run both."""
    app = tmp_path / "app"
    compile_program([FIXTURES / "between_tasks.c"], app, ["-O1", "-g", "-fno-inline", "-fopenmp"], instrumented=True)
    rows = tracekit.analyze(record(app).trace, "lamp", threads=True).result["between_threads"]
    counts = {(row["kind"], row["source"]["line"], row["destination"]["line"]): row["count"] for row in rows}
    fill, take, total = 5, 6, 18
    assert counts["RAW", fill, take] == counts["RAW", take, total] == 50
    assert {row["kind"] for row in rows} == {"RAW"}  # memory of tasks that are over is new


def test_variants_of_dependence(trace: Path) -> None:
    wanted: dict[str, Any] = {"threads": True, "kinds": "war,raw", "counts": True}
    rows = tracekit.analyze(trace, "dependence", **wanted).result["between_threads"]
    whole = tracekit.analyze(trace, "camp", threads=True).result["between_threads"]
    assert lines(rows) == lines(whole)
    assert {key for row in rows for key in row} == {*KEYS, "pairs", "count"}
    with_contexts = tracekit.analyze(trace, "dependence", **wanted, context=True).result["between_threads"]
    assert with_contexts == whole
    few = tracekit.analyze(trace, "dependence", threads=True)
    assert {row["kind"] for row in few.result["between_threads"]} == {"RAW"}
    assert few.result["dependences"] == tracekit.analyze(trace, "dependence").result["dependences"]


def test_what_is_asked_together(trace: Path, tmp_path: Path) -> None:
    """Workers, segments, merge, diff, advice from a profile, and what excludes what."""
    one, other = (run_here("analyze", "-m", "camp", "--threads", "--json", "-j", jobs, trace).stdout for jobs in "14")
    assert one == other
    refused = run_here("analyze", "-m", "camp", "--threads", "--segments", "3", trace)
    assert refused.status == 1 and b"with --threads what each byte was last used for goes on" in refused.stderr
    refused = run_here("analyze", "-m", "camp", "--threads", "--carried-by", "x.c:1", trace)
    assert refused.status == 2 and b"carried-by and threads exclude one another" in refused.stderr
    again = record(Path(shutil.copy(trace.parent / "app", tmp_path))).trace
    for name, made in (("first", trace), ("second", again)):
        run_here("analyze", "-m", "camp", "--threads", "-o", tmp_path / name, made)
    merged = json.loads(run_here("merge", "--json", tmp_path / "first", tmp_path / "second").stdout)["result"]
    table = json.loads(one)["result"]["between_threads"]
    assert merged["between_threads"] == [{**row, "count": 2 * row["count"]} for row in table]
    shown = run_here("diff", tmp_path / "first", tmp_path / "second").stdout.decode()
    assert "BETWEEN THREADS: 0 new, 0 gone, 0 changed, 10 the same" in shown
    text = run_here("analyze", "-m", "camp", "--threads", trace).stdout.decode()
    assert "threads producer (created in main) -> consumer (created in main)" in text
    assert "dependences between threads. Test" not in text
    advice = run_here("advise", "--threads", tmp_path / "first").stdout.decode()
    assert "5 dependences between threads (3 RAW, 2 WAR) have ends in it" in " ".join(advice.split())
    run_here("analyze", "-m", "camp", "-o", tmp_path / "plain", trace)
    refused = run_here("advise", "--threads", tmp_path / "plain")
    assert refused.status == 1 and b"made without --threads" in refused.stderr
    run_here("report", "-o", tmp_path / "page.html", tmp_path / "first")
    page = (tmp_path / "page.html").read_text()
    assert 'id="between-threads"' in page and "producer created in main" in page
