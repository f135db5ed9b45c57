"""Compiled paths against the naive reader, event by event, and against the kernels that they stand in for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.random_program import RandomProgram
from tests.naive.random_trace import TICKETED, disturb, runs_of, some_events, walked
from tests.naive.reader import read
from tests.naive.trace_file import Record, write_trace
from tests.replay.event_log import EventLog
from tests.replay.test_snapshots import cuts_of, violated
from tracekit.formats.events import BY_CODE
from tracekit.replay import turn_length
from tracekit.replay.compiled.compiler import CompiledPaths
from tracekit.replay.compiled.cost_model import SETTING
from tracekit.replay.engine import Replay
from tracekit.replay.selection import parts_of
from tracekit.replay.snapshot import Snapshot

Event = tuple[int, str, int, int, int]


@pytest.fixture(autouse=True, scope="module")
def _always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, "always")
        yield


def replayed(
    path: Path, start: Snapshot | None = None, stop: Snapshot | None = None, mixes: bool = False
) -> tuple[list[Event], Replay, int]:
    """All events in order, the replay that made them, and how many records compiled paths replayed."""
    events: list[Event] = []
    log = EventLog()
    with tracekit.open(path) as trace:
        replay = Replay(trace.reader, trace.program, start=start, stop=stop)
        replay.compiled = CompiledPaths([log], b"", 0)
        if mixes:
            replay.mix_streams()
        for batch in replay.batches():
            events += log.taken()
            for part in parts_of(batch):
                columns = (part.kind, part.subject, part.address, part.size)
                rows = zip(*(column.tolist() for column in columns))
                events += [(part.stream, BY_CODE[kind].name, *rest) for kind, *rest in rows]
        events += log.taken()
        return events, replay, round(replay.compiled.share(replay.position()) * replay.position())


def recorded(
    made: RandomProgram, rng: random.Random, streams: int, broken: bool, others: int = 3
) -> dict[int, list[Record]]:
    """Records of random walks through a program, with some `others` at most in each stream."""
    walks: dict[int, list[Record]] = {}
    ticket = 0
    for stream in range(streams):
        walks[stream] = walked(made, rng)
        for _ in range(rng.randint(0, others)):
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
@example(seed=103, streams=2, broken=True)  # an unknown landing in the top frame, whose last block is a loop's header
def test_the_events_are_those_of_the_naive_reader(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool
) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, made.layout, recorded(made, rng, streams, broken), totals={}, chunk=rng.randint(1, 60))
    events, replay, _ = replayed(path)
    assert events == read(path.read_bytes()).process().events
    with tracekit.open(path) as trace:
        as_before = Replay(trace.reader, trace.program)
        for _ in as_before.batches():
            pass
    assert replay.violations() == as_before.violations()
    assert replay.compared() == as_before.compared()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    streams=st.integers(2, 4),
    broken=st.booleans(),
    short=st.sampled_from((2, 4, 8, 1000)),
    looks=st.integers(1, 4),
)
def test_turns_are_taken_one_by_one_or_together(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool, short: int, looks: int
) -> None:
    """However long a turn has to be for compiled paths, and however often that changes, the events are the same."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, made.layout, recorded(made, rng, streams, broken, 60), totals={}, chunk=rng.randint(1, 60))
    with mock.patch.multiple(turn_length, SHORT=short, TURNS=looks):
        mixed, replay, _ = replayed(path, mixes=True)
    events, one_by_one, _ = replayed(path)
    assert mixed == events
    assert replay.violations() == one_by_one.violations()
    assert replay.compared() == one_by_one.compared()


def test_compiled_paths_replay_a_good_part_of_random_walks(tmp_path: Path) -> None:
    records = compiled = 0
    for seed in range(40):
        rng = random.Random(seed)
        made = RandomProgram(rng)
        path = tmp_path / f"{seed}.zst"
        write_trace(path, made.layout, recorded(made, rng, 1, broken=False), totals={}, chunk=10_000)
        _, replay, by_paths = replayed(path)
        records, compiled = records + replay.position(), compiled + by_paths
    assert compiled > 0.52 * records > 350


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), broken=st.booleans())
def test_they_begin_and_end_at_snapshots(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool
) -> None:
    """Three parts of a trace, each by compiled paths: together all events, and the rules broken by all of them."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, made.layout, recorded(made, rng, streams, broken), totals={}, chunk=rng.randint(1, 60))
    expected = read(path.read_bytes()).process().events
    with tracekit.open(path) as trace:
        cuts = cuts_of(trace, rng.choice((1, 8, 64)), rng)
    if not cuts:
        return
    (low, first), (high, last) = sorted((rng.choice(cuts), rng.choice(cuts)), key=lambda cut: cut[0])
    assert replayed(path, stop=first)[0] == expected[:low]
    if low < high:
        assert replayed(path, first, last)[0] == expected[low:high]
    whole, tail = replayed(path), replayed(path, last)
    assert tail[0] == expected[high:]
    assert violated(tail[1]) == violated(whole[1])
    assert tail[1].compared() == whole[1].compared()


def test_compiled_paths_replay_a_good_part_behind_a_snapshot_too(tmp_path: Path) -> None:
    """The records at hand where it begins are looked at like those that come after them."""
    records = compiled = 0
    for seed in range(20):
        rng = random.Random(seed)
        made = RandomProgram(rng)
        path = tmp_path / f"{seed}.zst"
        write_trace(path, made.layout, recorded(made, rng, 1, broken=False), totals={}, chunk=10_000)
        with tracekit.open(path) as trace:
            cuts = cuts_of(trace, 8, rng)
        if cuts:
            start = cuts[0][1]
            _, replay, by_paths = replayed(path, start)
            records, compiled = records + replay.position() - start.records, compiled + by_paths
    assert compiled > 0.4 * records > 100
