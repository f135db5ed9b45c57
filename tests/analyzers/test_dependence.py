"""The module ``dependence`` against its reference on random programs, and its known answers."""

from __future__ import annotations

from itertools import groupby
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dependence.test_dependence import Bench
from tests.naive.dependence import RAW, WAR, WAW, Event
from tests.naive.dependence_ladder import FoldingLadder, NaiveLadder
from tests.naive.dependence_machine import Machine, RandomProgram, interleaved
from tests.naive.dependence_programs import EventLog
from tests.naive.dependence_rows import from_profile, keys_of, paths_of
from tracekit.analyzers.dependence import Dependence, Options
from tracekit.containers import maps
from tracekit.containers.kernels.shadow import SCRATCH, WORDS
from tracekit.dependence import flow
from tracekit.dependence.kernels.dependence_table import DISTANCE_BITS
from tracekit.dependence.kernels.load_history import COLLECT_AT
from tracekit.dependence.result import profile_and_levels
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.program.program import Program

NAMES = {"raw": RAW, "war": WAR, "waw": WAW}


def run(program: Program, events: list[Event], options: Options, workers: int = 1, collect: bool = False) -> Any:
    """The module and its state after the events."""
    runner = CallbackRunner(Dependence(program, options), "dependence", workers)
    wanted = np.array([CODE[name] for name in runner.columns])
    for stream, rows in groupby(events, key=lambda event: event[0]):
        for part in _cut(list(rows)):
            kind, subject, address, size = (
                np.array(column, dtype) for column, dtype in zip(list(zip(*part))[1:], ("u1", "u4", "u8", "u8"))
            )
            kept = np.isin(kind, wanted)
            batch = SimpleNamespace(
                stream=stream, kind=kind[kept], subject=subject[kept], address=address[kept], size=size[kept]
            )
            for worker in range(workers):
                if collect:
                    runner._workers[worker].state.history.readers.control[COLLECT_AT] = 0
                runner.feed(batch, worker)
    return runner


def _cut(rows: list[Event]) -> list[list[Event]]:
    return [rows[first : first + 50] for first in range(0, len(rows), 50)]


def shown(runner: CallbackRunner, options: Options) -> dict[Any, Any]:
    """(kind, source, its context, destination, its context) -> [count, levels]; what was not asked for is None."""
    result, _ = runner.result()
    assert set(result) == {"dependences"}
    if runner.module.flow:
        merged = runner.module.reduce([worker.state for worker in runner._workers])
        none = len(runner.module.program.ops)
        ends = [(int(key >> 32) - 1, int(key & 0xFFFFFFFF)) for key in maps.rows(merged.pairs)["key"].tolist()]
        return {
            (RAW, _row(source, none), (), _row(destination, none), ()): (None, None) for source, destination in ends
        }
    found = runner.finished()
    profile, places = profile_and_levels(
        found, getattr(runner.module, "contexts", None), len(runner.module.program.ops)
    )
    folding = is_folding(options)
    rows, paths = from_profile(profile, folding)["dependences"], paths_of(profile, folding)
    keys = list(rows)
    assert len(keys) == len(profile.dependences)
    order = keys_of(profile, paths)
    histograms = _histograms(found, profile, places, order, paths)
    return {
        key: (
            count if options.counts else None,
            {node: (*level, histograms.get((key, node))) for node, level in levels.items()}
            if options.distance
            else None,
        )
        for key, (count, _, _, levels) in rows.items()
    }


def is_folding(options: Options) -> bool:
    """Whether there are contexts that fold recursion where it happens."""
    return options.context and options.contexts == "dynamic"


def _row(row: int, none: int) -> int:
    return 0xFFFFFFFF if row == none else row


def _histograms(found: Any, profile: Any, places: Any, order: list[Any], paths: list[Any]) -> dict[Any, dict[int, int]]:
    histograms: dict[Any, dict[int, int]] = {}
    for row in found.distances[1:]:
        level = profile.levels.carried[places[int(row["key"]) >> DISTANCE_BITS]]
        key = (order[level["dependence"]], paths[level["node"]])
        histograms.setdefault(key, {})[int(row["key"]) & ((1 << DISTANCE_BITS) - 1)] = int(row["times"])
    return histograms


def expected(program: Program, events: list[Event], options: Options) -> dict[Any, Any]:
    naive = FoldingLadder(program) if is_folding(options) else NaiveLadder(program, options.context)
    naive.feed(events)
    kinds = {NAMES[kind] for kind in options.kinds.split(",")}
    return {
        key: (
            known.count if options.counts else None,
            {
                node: (
                    *flags,
                    (min(distances), max(distances)) if distances else None,
                    dict(naive.histograms[key, node]) or None,
                )
                for node, (flags, distances) in known.levels.items()
            }
            if options.distance
            else None,
        )
        for key, known in naive.dependences.items()
        if key[0] in kinds
    }


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), data=st.data())
def test_every_rung_of_the_ladder_is_its_reference(seed: int, streams: int, data: Any) -> None:
    random = Random(seed)
    made = RandomProgram(random)
    events = interleaved(random, [Machine(made, random, stream, 250).run() for stream in range(streams)])
    options = data.draw(
        st.sampled_from(
            [
                Options(),
                Options(counts=True),
                Options(kinds="raw,war,waw"),
                Options(kinds="war", counts=True),
                Options(kinds="raw,war,waw", distance=True, counts=True),
                Options(kinds="waw", distance=True),
                Options(kinds="raw,war,waw", distance=True, context=True, counts=True),
                Options(context=True),
                Options(kinds="raw,war,waw", distance=True, context=True, contexts="static", counts=True),
                Options(context=True, contexts="static"),
            ]
        )
    )
    collect = data.draw(st.booleans()) and "war" in options.kinds
    workers = data.draw(st.integers(1, 3))
    with patch.object(flow, "NARROW", data.draw(st.sampled_from([0, flow.NARROW]))):
        runner = run(made.program, events, options, workers, collect)
    assert shown(runner, options) == expected(made.program, events, options)


@pytest.mark.parametrize("row", ["u2", "u4"])
def test_a_row_of_flow_holds_every_instruction(row: str) -> None:
    instructions = flow.NARROW - 1 if row == "u2" else flow.NARROW
    program: Any = SimpleNamespace(ops=np.zeros(instructions - 1))
    last = instructions - 1  # stands for a call that is not known
    runner = CallbackRunner(Dependence(program, Options()), "dependence", 1)
    assert runner._workers[0].state.memory.rows.dtype == row
    accesses = [(CODE["store"], last, X), (CODE["load"], last, X), (CODE["load"], 5, X)]
    kind, subject, address = (np.array(column, dtype) for column, dtype in zip(zip(*accesses), ("u1", "u4", "u8")))
    runner.feed(SimpleNamespace(stream=0, kind=kind, subject=subject, address=address, size=address * 0 + 8), 0)
    pairs = maps.rows(runner._workers[0].state.pairs)["key"].tolist()
    assert sorted(pairs) == [(last + 1) << 32 | 5, (last + 1) << 32 | last]


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


X = 0x5000


def edges(bench: Bench, log: EventLog, kinds: str = "raw,war,waw") -> set[tuple[str, int, int]]:
    options = Options(kinds=kinds)
    keys = shown(run(bench.program, log.events, options), options)
    assert set(keys) == set(expected(bench.program, log.events, options))
    names = {number: name for name, number in NAMES.items()}
    return {(names[key[0]], key[1], key[3]) for key in keys}


def test_a_wide_store_feeds_a_narrow_load_inside_it(bench: Bench) -> None:
    log = EventLog()
    log.store(bench.store, X, 8)
    log.load(bench.load, X + 3, 1)
    assert edges(bench, log, "raw") == edges(bench, log) == {("raw", bench.store, bench.load)}


def test_each_byte_has_its_own_store(bench: Bench) -> None:
    log = EventLog()
    log.store(bench.store, X, 8)
    log.store(bench.store2, X + 6, 4)  # overlaps, and lies across two words
    log.load(bench.load, X + 4, 4)
    log.load(bench.load2, X + 8, 2)
    assert edges(bench, log, "raw") == {
        ("raw", bench.store, bench.load),
        ("raw", bench.store2, bench.load),
        ("raw", bench.store2, bench.load2),
    }


def test_every_reader_since_the_last_store_is_a_war_also_of_memory_that_nobody_stored(bench: Bench) -> None:
    log = EventLog()
    log.load(bench.load, X, 8)
    log.load(bench.load2, X + 4, 4)
    log.load(bench.load, X, 8)
    log.store(bench.store, X + 4, 1)
    log.store(bench.store2, X + 4, 1)
    assert edges(bench, log) == {
        ("war", bench.load, bench.store),
        ("war", bench.load2, bench.store),
        ("waw", bench.store, bench.store2),
    }


@pytest.mark.parametrize("begin, end", [("heap_alloc", "heap_free"), ("stack_alloc", "stack_free")])
def test_memory_that_was_freed_or_returned_from_has_no_history(bench: Bench, begin: str, end: str) -> None:
    log = EventLog()
    for instruction in (bench.store, bench.store2):
        log.add(begin, bench.call, X, 12)
        log.store(instruction, X, 8)
        log.load(bench.load, X + 4, 4)
        log.add(end, bench.call, X, 12)
    log.load(bench.load2, X, 8)
    log.store(bench.store, X + 8, 4)
    assert edges(bench, log) == {("raw", bench.store, bench.load), ("raw", bench.store2, bench.load)}


def test_a_copy_reads_and_writes_for_its_instruction_and_not_after_itself(bench: Bench) -> None:
    log = EventLog()
    log.store(bench.store, X, 64)
    log.load(bench.copy, X, 64)
    log.store(bench.copy, X + 32, 64)
    log.load(bench.load, X + 80, 8)
    log.store(bench.store2, X + 8, 8)
    assert edges(bench, log) == {
        ("raw", bench.store, bench.copy),
        ("raw", bench.copy, bench.load),
        ("waw", bench.store, bench.copy),
        ("waw", bench.store, bench.store2),
        ("war", bench.copy, bench.store2),
    }


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), collect=st.booleans())
def test_what_is_loaded_often_and_stored_seldom(bench: Bench, seed: int, collect: bool) -> None:
    random = Random(seed)
    loads = [bench.load, bench.load2, bench.copy, bench.atomic][: random.randint(2, 4)]
    log = EventLog()
    log.enter(bench.main)
    for outer in range(random.randint(1, 6)):
        log.loop(bench.outer, outer)
        inner = random.randint(0, 60)
        for iteration in range(inner):
            log.loop(bench.inner, iteration)
            for _ in range(random.randint(0, 6)):
                offset, size = random.choice([(0, 8), (0, 8), (0, 4), (4, 4), (2, 1)])
                log.load(random.choice(loads), X + offset, size)
            if random.random() < 0.02:
                log.store(bench.store, X + random.choice([0, 4]), 4)
        if inner:
            log.exit(bench.inner)
    log.exit(bench.outer)
    log.store(bench.store2, X)
    options = Options(kinds="raw,war,waw", distance=True, context=random.random() < 0.5, counts=True)
    runner = run(bench.program, log.events, options, collect=collect)
    assert shown(runner, options) == expected(bench.program, log.events, options)


def test_lists_that_grow_fast_are_merged(bench: Bench) -> None:
    log = EventLog()
    for _ in range(1000):
        for load in (bench.load, bench.load2, bench.load):
            log.load(load, X)
    runner = run(bench.program, log.events, Options(kinds="war", distance=True))
    history = runner._workers[0].state.history
    memory, loads = history.memory, history.readers.rows
    word = (SCRATCH + 1) * WORDS + (X >> 3) % WORDS
    entry, length = int(memory.rows[memory.granules.size + word]["before"]), 0
    assert entry > 0
    while entry != 0:
        entry, length = int(loads[entry]["before"]), length + 1
    assert length < 50


def test_rows_have_the_columns_that_were_asked_for(bench: Bench) -> None:
    log = EventLog()
    log.enter(bench.main)
    for iteration in range(5):
        log.loop(bench.outer, iteration)
        log.load(bench.load, X)
        log.store(bench.store, X)
        if iteration == 3:
            log.store(bench.store, X + 8 * iteration)
    log.exit(bench.outer)
    log.load(bench.load2, X)

    def rows(**options: Any) -> list[dict[str, Any]]:
        return run(bench.program, log.events, Options(**options)).result()[0]["dependences"]

    plain = {"kind", "source", "destination"}
    assert [set(row) for row in rows()] == [plain] * 2
    assert sorted(row["count"] for row in rows(counts=True)) == [1, 4]
    assert set(rows(context=True)[0]) == plain | {"source_context", "destination_context"}
    level = next(row["levels"] for row in rows(distance=True) if row["levels"])[0]
    assert (level["intra"], level["inter"], level["min_distance"], level["max_distance"]) == (False, True, 1, 1)
    assert level["histogram"] == [[1, 4]]
    outer = bench.program.loop(bench.outer)
    for kinds, carried in (("raw", 1), ("raw,war,waw", 2)):
        for file in (outer["file"], outer["file"].rpartition("/")[2]):
            assert len(rows(carried_by=f"{file}:{outer['line']}", kinds=kinds)) == carried
        with pytest.raises(TracekitError, match=r"no loop at nowhere.c:7"):
            rows(carried_by="nowhere.c:7", kinds=kinds)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^kinds are raw, war and waw"):
        Options(kinds="raw,all")
    with pytest.raises(ValueError, match=r"^carried-by is a FILE:LINE or `hottest`"):
        Options(carried_by="main.c")
