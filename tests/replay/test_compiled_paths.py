"""Compiled paths against the naive reader, event by event, and against the kernels that they stand in for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.formats.test_hostile import damage, parts, wrap
from tests.naive.random_program import RandomProgram
from tests.naive.reader import read
from tests.naive.trace_file import Record, write_trace
from tests.naive.walker import Walk
from tests.replay.event_log import EventLog
from tests.replay.test_engine import TICKETED, disturb, engine_events, runs_of, some_events
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.replay.compiled.compiler import SETTING, CompiledPaths
from tracekit.replay.engine import Replay

MOST = 1 << 14
"""Events that are compared of a trace that may claim any number."""
Event = tuple[int, str, int, int, int]


@pytest.fixture(autouse=True, scope="module")
def _always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, "always")
        yield


def replayed(path: Path) -> tuple[list[Event], Replay, int]:
    """All events in order, the replay that made them, and how many records compiled paths replayed."""
    events: list[Event] = []
    log = EventLog()
    with tracekit.open(path) as trace:
        replay = Replay(trace.reader, trace.program)
        replay.compiled = CompiledPaths([log], b"", 0)
        for batch in replay.batches():
            events += log.taken()
            columns = (batch.kind, batch.subject, batch.address, batch.size)
            events += [
                (batch.stream, BY_CODE[kind].name, *rest)
                for kind, *rest in zip(*(column.tolist() for column in columns))
            ]
        events += log.taken()
        return events, replay, round(replay.compiled.share(replay.position()) * replay.position())


def outcome(data: bytes, with_paths: bool) -> tuple[list[Event], str]:
    """The first events of a trace that may be forged, and the error that ended it."""
    events: list[Event] = []
    log = EventLog(MOST)
    try:
        trace = TraceReader(data)
        program = Program.from_images(trace.images())
        replay = Replay(RecordSource(trace, program.arity), program)
        replay.compiled = CompiledPaths([log], b"", 0) if with_paths else None
        for batch in replay.batches():
            columns = (batch.kind, batch.subject, batch.address, batch.size)
            rows = zip(*(column[:MOST].tolist() for column in columns))
            events += log.taken()
            events += [(batch.stream, BY_CODE[kind].name, *rest) for kind, *rest in rows]
            if len(events) >= MOST:
                break
    except TracekitError as error:
        return (events + log.taken())[:MOST], "" if "The log is full" in str(error) else str(error)
    return (events + log.taken())[:MOST], ""


def recorded(made: RandomProgram, rng: random.Random, streams: int, broken: bool) -> dict[int, list[Record]]:
    """Records of random walks through a program."""
    walks: dict[int, list[Record]] = {}
    ticket = 0
    for stream in range(streams):
        walk = Walk(made, rng, [], budget=100)
        walk.run()
        walks[stream] = walk.records()
        for _ in range(rng.randint(0, 3)):
            walks[stream].insert(rng.randrange(len(walks[stream])), some_events(rng, streams))
        if broken:
            walks[stream] = disturb(walks[stream], rng, runs_of(made))
        for at, (identity, words) in enumerate(walks[stream]):
            if identity in TICKETED:
                ticket += rng.randint(1, 3)
                walks[stream][at] = identity, [ticket * streams + stream, *words[1:]]
    return walks


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), broken=st.booleans())
def test_the_events_are_those_of_the_naive_reader(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool
) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, made.layout, recorded(made, rng, streams, broken), totals={}, chunk=rng.randint(1, 60))
    events, replay, _ = replayed(path)
    assert events == (engine_events(path) if broken else read(path.read_bytes()).process().events)
    with tracekit.open(path) as trace:
        as_before = Replay(trace.reader, trace.program)
        for _ in as_before.batches():
            pass
    assert replay.violations() == as_before.violations()
    assert replay.compared() == as_before.compared()


def test_compiled_paths_replay_a_good_part_of_random_walks(tmp_path: Path) -> None:
    records = compiled = 0
    for seed in range(40):
        rng = random.Random(seed)
        made = RandomProgram(rng)
        path = tmp_path / f"{seed}.zst"
        write_trace(path, made.layout, recorded(made, rng, 1, broken=False), totals={}, chunk=10_000)
        _, replay, by_paths = replayed(path)
        records, compiled = records + replay.position(), compiled + by_paths
    assert compiled > records / 6 > 50


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.booleans())
def test_forged_payloads(seed: int, in_image: bool) -> None:
    rng = random.Random(seed)
    image, (stream, records, chunk) = parts(rng.randrange(20))
    image, chunk = (damage(image, rng), chunk) if in_image else (image, damage(chunk, rng))
    data = wrap([image], [(stream, records, chunk)])
    assert outcome(data, True) == outcome(data, False)
