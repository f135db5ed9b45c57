"""A replay that begins at a snapshot, or ends at one: the same events, in order, as the whole one has there."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.random_program import RandomProgram
from tests.naive.reader import read
from tests.naive.trace_file import Record, write_trace
from tests.naive.walker import Walk
from tests.replay.test_derive import some_wanted
from tests.replay.test_engine import TICKETED, disturb, runs_of, some_events
from tracekit.formats.events import BY_CODE
from tracekit.replay.engine import Replay
from tracekit.replay.kernels.layouts import PATIENCE
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.snapshots import Snapshots, make, snapshots_of
from tracekit.replay.trace import Trace

Event = tuple[int, str, int, int, int]
ROOT = Path(tracekit.__file__).resolve().parents[1]
COLUMNS = ("subject", "address", "size")
FIXTURES = sorted((ROOT / "fixtures/traces").glob("*.zst"))


def events_of(replay: Replay, columns: tuple[str, ...] = COLUMNS) -> list[Event]:
    """All events of a replay; columns that were not asked for are 0."""
    return [
        (batch.stream, BY_CODE[kind].name, *row)
        for batch in replay.batches()
        for kind, *row in zip(
            batch.kind.tolist(),
            *(getattr(batch, name).tolist() if name in columns else [0] * len(batch) for name in COLUMNS),
        )
    ]


def cuts_of(trace: Trace, batch: int, rng: random.Random) -> list[tuple[int, Snapshot]]:
    """Snapshots of a full replay, each with the events before it, after its trip through a file."""
    replay = Replay(trace.reader, trace.program, batch, columns=())
    if rng.random() < 0.5:
        make_templates(replay)
    found, seen = [], 0
    for events in replay.batches():
        seen += len(events)
        snapshot = replay.snapshot()
        if snapshot is not None:
            found.append((seen, Snapshot.from_bytes(snapshot.to_bytes())))
    return found


def make_templates(replay: Replay) -> None:
    for stream in replay.streams:
        stream.state.scalars[PATIENCE] = 0


def violated(replay: Replay) -> list[tuple[int, str, int, int]]:
    return [(one.stream, one.text, one.count, one.record) for one in replay.violations()]


def write_random(path: Path, rng: random.Random, streams: int, broken: bool) -> RandomProgram:
    """A trace of random walks, with events between their records whose tickets make the streams take turns."""
    made = RandomProgram(rng)
    recorded: dict[int, list[Record]] = {}
    for stream in range(streams):
        walk = Walk(made, rng, [], budget=100)
        walk.run()
        recorded[stream] = walk.records()
        for _ in range(rng.randint(0, 8)):
            recorded[stream].insert(rng.randrange(len(recorded[stream])), some_events(rng, streams))
        if broken:
            recorded[stream] = disturb(recorded[stream], rng, runs_of(made))
    ticket = 0
    for stream, records in recorded.items():
        for at, (identity, words) in enumerate(records):
            if identity in TICKETED:
                ticket += rng.randint(1, 3)
                records[at] = identity, [rng.choice((ticket, rng.randrange(200))) * streams + stream, *words[1:]]
    write_trace(path, made.layout, recorded, totals={}, chunk=rng.randint(1, 60))
    return made


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 4), broken=st.booleans(), batch=st.sampled_from((1, 8, 64)))
@example(seed=6060964, streams=1, broken=True, batch=1)  # a thread_start without room in its batch: one turn, not two
def test_replay_begins_and_ends_at_any_snapshot(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool, batch: int
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, rng, streams, broken)
    expected = read(path.read_bytes()).process().events
    wanted, columns = some_wanted(rng)
    with tracekit.open(path) as trace:
        whole = Replay(trace.reader, trace.program)
        assert events_of(whole) == expected
        cuts = cuts_of(trace, batch, rng)
        if not cuts:
            return
        (low, first), (high, last) = sorted((rng.choice(cuts), rng.choice(cuts)), key=lambda cut: cut[0])
        if low == high:
            return
        tail = Replay(trace.reader, trace.program, start=first, kept=rng.choice((1, 2)))
        if rng.random() < 0.5:
            make_templates(tail)
        assert events_of(tail) == expected[low:]
        assert violated(tail) == violated(whole)
        assert tail.compared() == whole.compared()
        middle = Replay(trace.reader, trace.program, rng.choice((8, 4096)), start=first, stop=last)
        assert events_of(middle) == expected[low:high]
        assert events_of(Replay(trace.reader, trace.program, stop=first)) == expected[:low]
        some = Replay(trace.reader, trace.program, events=wanted, columns=columns, start=first, stop=last)
        shown = [column in columns for column in COLUMNS]
        assert events_of(some, tuple(columns)) == [
            (stream, name, *(value if show else 0 for value, show in zip(row, shown)))
            for stream, name, *row in expected[low:high]
            if name in wanted
        ]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixtures_in_any_number_of_parts(path: Path) -> None:
    """Every part by itself, one after another: all events of the whole."""
    with tracekit.open(path) as trace:
        expected = events_of(Replay(trace.reader, trace.program))
        cuts = [snapshot for _, snapshot in cuts_of(trace, 16, random.Random(path.stem))]
        for step in (1, 3, 10):
            ends = [None, *cuts[::step], None]
            parts = [
                events_of(Replay(trace.reader, trace.program, start=start, stop=stop)) for start, stop in pairwise(ends)
            ]
            assert [event for part in parts for event in part] == expected


def test_snapshots_thin_out_and_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    path = tmp_path / "trace.zst"
    write_random(path, rng, 3, broken=False)
    with tracekit.open(path) as trace:
        events = events_of(Replay(trace.reader, trace.program))
        total = sum(event[1] in ("load", "store") for event in events)
        found = make(trace.reader, trace.program, most=8, apart=1, batch=1)
        assert 3 < len(found) < 8
        assert list(found.accesses) == sorted(found.accesses)
        assert found.before(found.accesses[0] - 1) is None
        for accesses in (found.accesses[0], found.accesses[1] + 1, total):
            start = found.before(accesses)
            assert start is not None and start.accesses <= accesses
            left = sum(
                event[1] in ("load", "store") for event in events_of(Replay(trace.reader, trace.program, start=start))
            )
            assert left == total - start.accesses
        again = Snapshots.from_bytes(found.to_bytes())
        assert again.accesses == found.accesses and again[1].to_bytes() == found[1].to_bytes()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
        made = snapshots_of(trace.reader, trace.program)
        (kept,) = (tmp_path / "cache/code").glob("snapshots-*")
        monkeypatch.setattr("tracekit.replay.snapshots.make", None)
        assert snapshots_of(trace.reader, trace.program).to_bytes() == made.to_bytes()
        assert kept.stat().st_size > 0
