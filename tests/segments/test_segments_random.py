"""Analyses in segments against those of the whole, on random runs of random programs, cut anywhere."""

from __future__ import annotations

from itertools import groupby, pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.dependence import Event
from tests.naive.dependence_machine import Machine, RandomProgram, interleaved
from tests.naive.final_stores import passed
from tracekit.analyzers.camp import Camp
from tracekit.analyzers.dependence import Dependence, Options
from tracekit.analyzers.lamp import Lamp
from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.contract import Module
from tracekit.segments.ahead import Start, begin, start_of
from tracekit.verdicts.module import ContextOptions, DependenceOptions


def feed(runner: CallbackRunner, events: list[Event]) -> None:
    """The events that a runner wants, in batches of one stream."""
    wanted = np.array([CODE[name] for name in runner.columns])
    takes_values = any("value" in columns for columns in runner.columns.values())
    for stream, rows in groupby(events, key=lambda event: event[0]):
        kind, subject, address, size = (
            np.array(column, dtype) for column, dtype in zip(list(zip(*rows))[1:], ("u1", "u4", "u8", "u8"))
        )
        kept = np.isin(kind, wanted)
        columns = {"kind": kind, "subject": subject, "address": address, "size": size}
        if takes_values:
            columns["value"] = address % np.uint64(5)
        runner.feed(SimpleNamespace(stream=stream, **{name: column[kept] for name, column in columns.items()}), 0)


def in_segments(module: Module, events: list[Event], cuts: list[int]) -> CallbackRunner:
    """The runner of a module that was given the events in segments."""
    runner = CallbackRunner(module, "whole", 1)
    segments = module.segments()
    assert segments is not None
    ahead = CallbackRunner(segments.pilot, "ahead", 1)
    start: Start | None = None
    for first, last in pairwise([0, *cuts, len(events)]):
        one = runner.again()
        if start is not None:
            begin(segments, one, start)
        feed(one, events[first:last])
        feed(ahead, events[first:last])
        segments.add(one.worker.state, start.began if start else {}, one.worker.levels)
        runner.take_contexts(one)
        accesses = sum(event[1] in ACCESSES for event in events[:last])
        start = start_of(segments, ahead, sorted({event[0] for event in events[:last]}), accesses)
    runner.finish(segments.reduce)
    return runner


ACCESSES = {CODE[name] for name in ACCESS_EVENTS}


def whole(module: Module, events: list[Event]) -> CallbackRunner:
    """The runner of a module that was given the events as they are."""
    runner = CallbackRunner(module, "whole", 1)
    feed(runner, events)
    return runner


def run_of(seed: int, streams: int, limit: int, share: float) -> tuple[Any, list[Event], list[int]]:
    """A program, the events of a run, and places between them, none of them inside an execution."""
    random = Random(seed)
    made = RandomProgram(random)
    numbers = random.sample(range(4), streams)
    events = interleaved(random, [Machine(made, random, number, limit).run() for number in numbers])
    places = [place for place in range(1, len(events)) if events[place - 1][2] != events[place][2]]
    return made.program, events, [place for place in places if random.random() < share]


TABLES = ("nodes", "dependences", "exposed", "accesses", "objects")


def columns(table: Any) -> dict[str, list[Any]]:
    """The columns of a profile's table."""
    return {field: table[field].tolist() for field in table.dtype.names}


def knowing(module: Any, program: Any, events: list[Event], looks_ahead: bool) -> Any:
    """The module, which knows which stores are final if it `looks_ahead`."""
    if looks_ahead:
        module.found_first = {"final": passed(program, events)}
    return module


RUN = (st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([30, 100, 300]), st.sampled_from([0.01, 0.1, 0.5]))


@settings(deadline=None)
@given(*RUN, st.sampled_from([Camp, Lamp]), st.sampled_from(["dynamic", "static"]), st.booleans())
def test_camp_and_lamp(
    seed: int, streams: int, limit: int, share: float, kind: Any, contexts: str, looks_ahead: bool
) -> None:
    program, events, cuts = run_of(seed, streams, limit, share)
    options = ContextOptions(contexts=contexts) if kind is Camp else DependenceOptions()
    other = knowing(kind(program, options), program, events, looks_ahead)
    tables = []
    for runner in (whole(kind(program, options), events), in_segments(other, events, cuts)):
        runner.finished()
        profile: Any = runner.module.profile  # type: ignore[attr-defined]
        tables.append({name: columns(getattr(profile, name)) for name in TABLES})
        carried, within, sets = profile.levels
        tables[-1] |= {"carried": columns(carried), "within": within.tolist(), "sets": list(map(list, sets))}
    assert tables[0] == tables[1]


def test_a_store_to_the_upper_half_of_the_address_space() -> None:
    made, *_ = run_of(1, 1, 30, 0.1)
    load, store, loop, left = (CODE[name] for name in ("load", "store", "loop_invocation", "loop_exit"))
    for address in (1000, 1 << 50, (1 << 63) - 4, 1 << 63, (1 << 64) - 8):
        events = [(0, load, 0, address + 1, 4), (0, loop, 0, 0, 0), (0, left, 0, 0, 0), (0, store, 1, address, 8)]
        options = Options(kinds="war", counts=True)
        found = in_segments(Dependence(made, options), events, [2]).result()
        assert found == whole(Dependence(made, options), events).result()
        assert [row["count"] for row in found[0]["dependences"]] == [1]


@settings(deadline=None)
@given(
    *RUN,
    st.sampled_from(
        [
            Options(),
            Options(counts=True),
            Options(kinds="raw,war,waw"),
            Options(kinds="war", counts=True),
            Options(kinds="war", counts=True, distance=True),
            Options(kinds="raw,war,waw", distance=True, counts=True),
            Options(kinds="raw,war,waw", distance=True, context=True, counts=True),
            Options(kinds="raw,war,waw", distance=True, context=True, contexts="static", counts=True),
        ]
    ),
    st.booleans(),
)
# Dependences that are found twice at one address.
@example(354, 1, 300, 0.1, Options(kinds="raw,war,waw", distance=True, counts=True), False)
def test_variants_of_dependence(
    seed: int, streams: int, limit: int, share: float, options: Options, looks_ahead: bool
) -> None:
    program, events, cuts = run_of(seed, streams, limit, share)
    one = whole(Dependence(program, options), events)
    other = in_segments(knowing(Dependence(program, options), program, events, looks_ahead), events, cuts)
    assert one.result() == other.result()
