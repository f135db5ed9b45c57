"""A replay that begins at a snapshot, or ends at one: the same events, in order, as the whole one has there."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.random_trace import write_random
from tests.naive.reader import read
from tests.replay.test_derive import some_wanted
from tracekit.api import analyze_all
from tracekit.formats.events import BY_CODE
from tracekit.formats.snapshots import ARRAYS, STREAM, StreamState, parse
from tracekit.jit import object_cache
from tracekit.modules import registry
from tracekit.replay import snapshots, window
from tracekit.replay.engine import Replay
from tracekit.replay.event_range import batches_between
from tracekit.replay.kernels.layouts import PATIENCE
from tracekit.replay.selection import Batch
from tracekit.replay.snapshot import Snapshot, StreamSnapshot, Turn
from tracekit.replay.snapshots import Collected, Kept, Snapshots, make, nearest, unpacked
from tracekit.replay.totals import trace_totals
from tracekit.replay.trace import Trace
from tracekit.replay.window import Position

Event = tuple[int, str, int, int, int]
ROOT = Path(tracekit.__file__).resolve().parents[1]
COLUMNS = ("subject", "address", "size")
FIXTURES = sorted((ROOT / "fixtures/traces").glob("*.zst"))


def events_of(replay: Replay, columns: tuple[str, ...] = COLUMNS) -> list[Event]:
    """All events of a replay; columns that were not asked for are 0."""
    return events_of_batches(replay.batches(), columns)


def events_of_batches(batches: Iterable[Batch], columns: tuple[str, ...] = COLUMNS) -> list[Event]:
    return [
        (batch.stream, BY_CODE[kind].name, *row)
        for batch in batches
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
        snapshot = replay.snapshot(seen)
        if snapshot is not None:
            found.append(snapshot)
    return [(snapshot.accesses, snapshot) for snapshot in through_file(found)]


def through_file(snapshots: Iterable[Snapshot]) -> Snapshots:
    """What a file has of them; at different places."""
    collected = Collected(bytes(16).hex())
    for snapshot in snapshots:
        collected.add(snapshot)
    return Snapshots.packed(bytes(16).hex(), collected.payloads())


def make_templates(replay: Replay) -> None:
    for stream in replay.streams:
        stream.state.scalars[PATIENCE] = 0


def violated(replay: Replay) -> list[tuple[int, str, int, int]]:
    return [(one.stream, one.text, one.count, one.record) for one in replay.violations()]


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


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 4), broken=st.booleans(), batch=st.sampled_from((1, 8, 64)))
def test_replay_that_is_told_its_end_while_it_runs(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool, batch: int
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, rng, streams, broken)
    with tracekit.open(path) as trace:
        expected = events_of(Replay(trace.reader, trace.program))
        cuts = cuts_of(trace, batch, rng)
        if not cuts:
            return
        places = sorted({0, *(seen for seen, _ in cuts)})
        (low, start), (high, stop) = (0, None), rng.choice(cuts)
        if rng.random() < 0.5 and high > min(seen for seen, _ in cuts):
            low, start = rng.choice([cut for cut in cuts if cut[0] < high])
        asked_at = rng.choice(places)
        replay = Replay(trace.reader, trace.program, rng.choice((1, 8)), start=start)
        found: list[Event] = []
        answer: bool | None = None
        for events in replay.batches():
            found += events_of_batches([events])
            if answer is None and low + len(found) >= asked_at:
                answer = replay.stop_at(stop)
                assert low + len(found) <= high if answer else low + len(found) >= high
        assert found == expected[low : high if answer else None]


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


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A cache that is empty at first; snapshots may be as near to one another as can be."""
    cache: dict[str, bytes] = {}
    monkeypatch.setattr(object_cache, "read", cache.get)
    monkeypatch.setattr(object_cache, "write", cache.__setitem__)
    monkeypatch.setattr(snapshots, "APART", 1)
    monkeypatch.setattr(snapshots, "BATCH", 1)
    return cache


def accesses_among(events: list[Event]) -> int:
    return sum(name in ("load", "store") for _, name, *_ in events)


def test_snapshots_thin_out(tmp_path: Path, kept: dict[str, bytes]) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 3, broken=False)
    with tracekit.open(path) as trace:
        total = accesses_among(events_of(Replay(trace.reader, trace.program)))
        found = make(trace.reader, trace.program, most=8).snapshots(trace.reader)
        assert 3 < len(found) < 8
        assert found.accesses == sorted(found.accesses)
        assert found.before(found.accesses[0]) is None
        for accesses in (found.accesses[0] + 1, found.accesses[1] + 1, total):
            start = found.before(accesses)
            assert start is not None and start.accesses < accesses
            tail = events_of(Replay(trace.reader, trace.program, start=start))
            assert accesses_among(tail) == total - start.accesses


def test_snapshots_share_the_blocks_of_their_heaps_that_have_not_changed() -> None:
    addresses = np.arange(0x5000_0000_0000, 0x5000_0100_0000, 4096, np.uint64)  # 16 MiB: 64 blocks
    sizes = np.arange(len(addresses), dtype=np.uint64)
    heaps = [(addresses, sizes), (np.delete(addresses, 1000), np.delete(sizes, 1000)), (addresses[:0], sizes[:0])]
    heaps.append(heaps[0])
    collected = Collected(bytes(16).hex())
    for number, heap in enumerate(heaps):
        collected.add(Snapshot(Turn(1, 0, 0, 1), [stream_of(0)], heap, 7 + number))
    payloads = [parse(unpacked(data)) for data in collected.payloads()]
    assert [len(payload.blocks) for payload in payloads] == [64, 1, 0, 0]
    assert [len(payload.heap) for payload in payloads] == [64, 64, 0, 64]
    for number, found in enumerate(
        through_file(Snapshot(Turn(1, 0, 0, 1), [stream_of(0)], heap, 7 + k) for k, heap in enumerate(heaps))
    ):
        assert all(np.array_equal(one, other) for one, other in zip(found.heap, heaps[number]))
        assert (found.turn, found.accesses) == (Turn(1, 0, 0, 1), 7 + number)
    # Those that no snapshot needs any more are not written.
    collected.thin_out()
    assert [len(parse(unpacked(data)).blocks) for data in collected.payloads()] == [64, 1]


def test_a_heap_of_many_blocks_comes_in_several_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_BYTES", 1000)
    addresses = np.arange(1 << 20, 1 << 24, 4096, np.uint64)
    found = through_file([Snapshot(Turn(1, 0, 0, 1), [stream_of(0)], (addresses, addresses), 3)])
    assert len(found) == 1 and np.array_equal(found[0].heap[0], addresses)
    assert len(found._numbers) > 10


def stream_of(number: int) -> StreamSnapshot:
    """A stream that has not begun."""
    rows = {name: np.empty(0, dtype) for name, dtype in ARRAYS.items()}
    row = np.zeros(1, STREAM)
    row["number"] = number
    return StreamSnapshot(number, 0, StreamState(row, **rows))


def test_their_bytes_are_the_same_whatever_stands_between_the_fields_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "trace.zst"
    with_objects = 0
    for seed in range(8):
        write_random(path, random.Random(seed), 2, broken=False)
        with tracekit.open(path) as trace:
            kept = []
            for filling in (0, 0xAA):
                replay = Replay(trace.reader, trace.program, 8, columns=())
                for stream in replay.streams:
                    stream.state.objects.view(np.uint8)[:] = filling
                found = [replay.snapshot() for _ in replay.batches()]
                with_objects += any(len(one.state.objects) for cut in found if cut for one in cut.streams)
                kept.append([cut.to_snap(trace.content_hash).build() for cut in found if cut])
            assert kept[0] == kept[1]
    assert with_objects > 4


def test_they_are_made_as_far_as_somebody_asks_and_kept(tmp_path: Path, kept: dict[str, bytes]) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 3, broken=False)
    with tracekit.open(path) as trace:
        total = trace_totals(trace.reader, trace.program)["accesses"]
        whole = make(trace.reader, trace.program).snapshots(trace.reader)
        assert nearest(trace.reader, trace.program, 0) is None
        assert not any(key.startswith("snapshots-") for key in kept)
        reached = 0
        for place in (total // 4, total // 8, total // 2, total // 2, total, total // 3, total + 10):
            found, expected = nearest(trace.reader, trace.program, place), whole.before(place)
            assert (found and found.accesses) == (expected and expected.accesses)
            ((_, data),) = ((key, data) for key, data in kept.items() if key.startswith("snapshots-"))
            reached = max(reached, place)
            # Whether a replay to the last access meets the end hangs on what stands behind it.
            expected_reach = reached if reached <= total else snapshots.EVERYWHERE
            met_the_end = {snapshots.EVERYWHERE} if reached == total else set()
            assert Kept.from_bytes(data).reach in {expected_reach} | met_the_end
            assert events_of(Replay(trace.reader, trace.program, start=found)) == events_of(
                Replay(trace.reader, trace.program, start=expected)
            )


def values_of(batches: Iterable[Batch]) -> list[int]:
    return [value for batch in batches for value in batch.values()]


def positions_of(total: int, rng: random.Random) -> tuple[int | None, int | None]:
    """The bounds of a stretch; None for one that is not given."""
    first = rng.choice((rng.randint(0, total), rng.randint(total // 2, total)))
    last = rng.randint(first, total + 2)
    return rng.choice((first, first, first, None)), rng.choice((last, last, None))


def test_a_stretch_has_the_events_between_its_bounds(tmp_path: Path, kept: dict[str, bytes]) -> None:
    """With and without snapshots."""
    wide = 0
    for seed in range(60):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.zst"
        write_random(path, rng, rng.randint(1, 3), broken=False)
        with tracekit.open(path) as trace:
            whole = events_of(Replay(trace.reader, trace.program))
            before = [0, *accumulate(name in ("load", "store") for _, name, *_ in whole)]
            first, last = positions_of(trace_totals(trace.reader, trace.program)["accesses"], rng)
            bounds = [None if at is None else Position.of("from", at) for at in (first, last)]
            part = batches_between(trace.reader, trace.program, *bounds, COLUMNS)
            chosen = [(first is None or count >= first) and (last is None or count < last) for count in before]
            assert events_of_batches(part) == list(compress(whole, chosen))
            if trace.program.has_values:
                everything = values_of(Replay(trace.reader, trace.program, columns=["value"]).batches())
                part = batches_between(trace.reader, trace.program, *bounds, ["value"])
                assert values_of(part) == list(compress(everything, chosen))
                wide += any(value >> 64 for value in everything)
    assert sum(key.startswith("snapshots-") for key in kept) > 10
    assert wide > 5


@pytest.mark.parametrize("module", ["accesses", "footprint", "heatmap"])
def test_windows_by_position_have_the_same_profile(
    module: str, tmp_path: Path, kept: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without snapshots, to the byte."""
    began = []

    def noted(*arguments: Any) -> Any:
        began.append(nearest(*arguments))
        return began[-1]

    for seed in range(20):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.zst"
        write_random(path, rng, rng.randint(1, 3), broken=False)
        with tracekit.open(path) as trace:
            first, last = positions_of(trace_totals(trace.reader, trace.program)["accesses"], rng)
        given = {"from": first, "to": last, "thread": rng.choice((0, None))}
        monkeypatch.setattr(window, "nearest", noted)
        profile = tracekit.analyze(path, module, rng.randint(1, 2), window=given)
        monkeypatch.setattr(window, "nearest", lambda *_: None)
        plain = tracekit.analyze(path, module, 1, window=given)
        assert profile.to_json() == plain.to_json()
        assert profile.accesses_inside == plain.accesses_inside
    assert sum(snapshot is not None for snapshot in began) > 3


def test_it_is_said_where_the_replay_began(tmp_path: Path, kept: dict[str, bytes]) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 3, broken=False)
    with tracekit.open(path) as trace:
        total = trace_totals(trace.reader, trace.program)["accesses"]
        snapshot = nearest(trace.reader, trace.program, total - 1)
    assert snapshot is not None and snapshot.accesses > 1
    said: list[str] = []
    options = {"footprint": registry.load("footprint").Options()}
    analyze_all(path, options, 1, said.append, {"from": total - 1})
    assert f"the replay began at a snapshot behind {snapshot.accesses:,} accesses" in said


def test_a_module_that_needs_what_came_before_begins_at_the_beginning(tmp_path: Path, kept: dict[str, bytes]) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 3, broken=False)
    for bounds in ({"from": "80%"}, {"from": "80%", "function": "f0"}):
        with tracekit.open(path) as trace:
            restricted = window.Restriction(bounds, trace.reader, trace.program)
            beginning = restricted.beginning(trace.reader, trace.program, ("load", "function_entry"))
            assert beginning is None
            beginning = restricted.beginning(trace.reader, trace.program, ("load", "store"))
            assert (beginning is None) == ("function" in bounds)
