"""Physical addresses of callbacks, batches and the simulator of caches against their reference."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_access_modules import batches, program, some_events
from tests.analyzers.test_cache import RULES, text_of
from tests.naive import caches, physical
from tests.naive import modules as naive_modules
from tests.naive import reuse as naive_reuse
from tests.naive.physical import Event, Snapshot
from tracekit.analyzers.bandwidth import Bandwidth, BandwidthOptions
from tracekit.analyzers.cache import Cache, CacheOptions
from tracekit.analyzers.reuse import Reuse, ReuseOptions
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_NAME, CODE
from tracekit.formats.reader import TraceReader
from tracekit.formats.writer import TraceWriter
from tracekit.module import Module, inlined
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.declarations import WrongModuleError, declared
from tracekit.modules.options import NoOptions, make_options
from tracekit.modules.scheduler import run
from tracekit.physical.kernels.frames import NO_FRAME
from tracekit.physical.table import FrameChanges, page_frames
from tracekit.render.registry import as_text
from tracekit.render.text import Style

FIXTURE = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v3.zst"
STREAMS = 3


class State(NamedTuple):
    rows: Any


@inlined
def note(state: State, time: int, group: int, physical: int) -> None:
    state.rows[time, 0] += 1
    state.rows[time, 1] += group
    state.rows[time, 2] += physical


class Noting(Module):
    """Where each load and store was."""

    shard_by = "instruction"

    def state(self) -> State:
        return State(np.zeros((5000, 3), np.int64))

    @staticmethod
    def load(state: State, time: int, physical: int) -> None:
        note(state, time, 0, physical)

    @staticmethod
    def store(state: State, time: int, physical: int) -> None:
        note(state, time, 0, physical)

    def reduce(self, states: Any) -> Any:
        return State(sum(state.rows for state in states))

    def result(self, state: State) -> dict[str, Any]:
        assert set(state.rows[:, 0].tolist()) <= {0, 1}
        return {"physical": state.rows[state.rows[:, 0] == 1, 2].tolist(), "group": int(state.rows[:, 1].sum())}


class WithObjects(Noting):
    """The same where live objects are kept, too."""

    @staticmethod
    def load(state: State, time: int, group: int, physical: int) -> None:
        note(state, time, group, physical)


def some_timed_events(rng: random.Random, count: int) -> list[Event]:
    """Loads and stores of several streams, and what tells their times, which need not ascend."""
    made: list[Event] = []
    for event in some_events(rng, count):
        stream = rng.randrange(STREAMS)
        made.append((stream, *event[1:]))
        if rng.random() < 0.1:
            time = rng.randrange(25_000)
            timed = ("hand_over", 0, time, 1) if rng.random() < 0.5 else ("window_begin", 1, 0, time)
            made.append((stream, *timed, 0))
    return made


def snapshots_for(rng: random.Random, events: list[Event]) -> list[Snapshot]:
    pages = {
        page
        for _, name, _, address, size, _ in events
        if name in ("load", "store")
        for page in (address // 4096, (address + size) // 4096)
    }
    return physical.some_snapshots(rng, sorted(pages))


def counted(module: Module, events: list[Event]) -> Module:
    """The module, told how many accesses there are."""
    module.accesses = sum(event[1] in ("load", "store") for event in events)
    return module


def analysed(module: Module, events: list[Event], snapshots: list[Snapshot], workers: int = 1) -> dict[str, Any]:
    snapshot_frames = physical.map_frames(snapshots)
    module.page_frames = page_frames([FrameChanges(each["time"], each["frames"]) for each in snapshot_frames])
    module.stream_count = STREAMS
    runner = CallbackRunner(module, type(module).__name__, workers)
    run(iter(batches(events, 7)), [runner], workers)
    return runner.result()[0]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 5, 100, 600)),
    kind=st.sampled_from((Noting, WithObjects)),
    workers=st.integers(1, 3),
)
def test_callbacks_are_given_the_reference(seed: int, count: int, kind: type[Module], workers: int) -> None:
    rng = random.Random(seed)
    events = some_timed_events(rng, count)
    snapshots = snapshots_for(rng, events)
    expected = [place for event, place in physical.located(events, snapshots) if event[1] in ("load", "store")]
    found = analysed(kind(program(8), NoOptions()), events, snapshots, workers)
    assert found["physical"] == expected


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 5, 100)),
    line=st.sampled_from((64, 4096)),
    shape=st.sampled_from((((4, 2),), ((2, 2), (4, 4)))),
    rules=RULES,
)
def test_caches_are_those_of_a_program_that_uses_physical_addresses(
    seed: int, count: int, line: int, shape: tuple[tuple[int, int], ...], rules: dict[str, Any]
) -> None:
    rules["private"] = min(rules["private"], len(shape))
    rng = random.Random(seed)
    events = some_timed_events(rng, count)
    snapshots = snapshots_for(rng, events)
    pieces = moved(events, snapshots)
    unlocated = unlocated_of(pieces)
    options = {"levels": text_of(shape, line), "addresses": "physical", **rules}
    result = analysed(Cache(program(8), make_options(CacheOptions, options)), events, snapshots)
    wanted = caches.simulate(pieces, shape, line, **rules)
    names = ("hits", "misses", "write_backs", "prefetches")
    assert [tuple(row[name] for name in names) for row in result["levels"]] == wanted["levels"]
    assert result["summary"]["memory_writes"] == wanted["memory_writes"]
    assert result["summary"]["unlocated"] == unlocated
    joined = Cache.merge([{"result": result}, {"result": result}], None)["result"]
    assert joined["summary"]["unlocated"] == 2 * unlocated


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 5, 100)),
    line=st.sampled_from((64, 4096)),
    shape=st.sampled_from((((4, 2),), ((2, 2), (4, 4)))),
    write=st.sampled_from(("back", "through")),
)
def test_bandwidth_is_that_of_a_program_that_uses_physical_addresses(
    seed: int, count: int, line: int, shape: tuple[tuple[int, int], ...], write: str
) -> None:
    rng = random.Random(seed)
    events = some_timed_events(rng, count)
    snapshots = snapshots_for(rng, events)
    pieces = iter(moved(events, snapshots))
    parts = [[next(pieces) for _ in physical.by_page([event])] for event in events if event[1] in ("load", "store")]
    options = {"levels": text_of(shape, line), "addresses": "physical", "write": write}
    result = analysed(
        counted(Bandwidth(program(8), make_options(BandwidthOptions, options)), events), events, snapshots
    )
    rules = {"replacement": "lru", "inclusive": False, "seed": 1, "prefetch": "none", "write": write}
    assert result["slices"] == naive_modules.bandwidth(events, shape, line, parts, **rules)
    assert result["summary"]["unlocated"] == unlocated_of([event for part in parts for event in part])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from((0, 5, 60)), line=st.sampled_from((64, 4096)))
def test_reuse_is_that_of_a_program_that_uses_physical_addresses(seed: int, count: int, line: int) -> None:
    rng = random.Random(seed)
    events = some_timed_events(rng, count)
    snapshots = snapshots_for(rng, events)
    pieces = moved(events, snapshots)
    options = make_options(ReuseOptions, {"line": line, "addresses": "physical"})
    result = analysed(Reuse(program(8), options), events, snapshots)
    found = [distance for *_, distance in naive_reuse.distances(pieces, line)]
    assert (result["summary"]["touches"], result["summary"]["lines"]) == (len(found), found.count(None))
    for point in result["curve"]:
        assert point["misses"] == naive_reuse.misses(found, point["size"] // line)
    assert result["summary"]["unlocated"] == unlocated_of(pieces)
    joined = Reuse.merge([{"result": result}, {"result": result}], None)["result"]
    assert joined["summary"]["unlocated"] == 2 * unlocated_of(pieces)


def test_lines_of_a_byte_that_are_in_no_frame_are_different_ones() -> None:
    events: list[Event] = [(0, "load", 0, address, 2, 0) for address in (4096, 4097, 2**64 - 4096, 4096)]
    options = make_options(ReuseOptions, {"line": 1, "sizes": "4K", "addresses": "physical"})
    result = analysed(Reuse(program(8), options), events, [(0, {})])
    assert result["summary"]["lines"] == 5 and result["summary"]["unlocated"] == 4


def moved(events: list[Event], snapshots: list[Snapshot]) -> list[Event]:
    """Loads and stores page by page, at their physical addresses, or above all of them."""
    return [
        (*event[:3], place if place >= 0 else NO_FRAME | event[3], *event[4:])
        for event, place in physical.located(physical.by_page(events), snapshots)
        if event[1] in ("load", "store")
    ]


def unlocated_of(pieces: list[Event]) -> int:
    return sum(event[3] >= NO_FRAME and event[4] > 0 for event in pieces)


def with_snapshots(target: Path, snapshots: list[Snapshot]) -> Path:
    """The fixture, with these snapshots."""
    with TraceReader(FIXTURE) as known, TraceWriter(target, version=known.version) as writer:
        for frame in known.frames[1:]:
            if frame.type == b"DONE":
                for each in physical.map_frames(snapshots):
                    rest = {"resident": 0, "proportional": 0, "swapped": 0, "threads": [], "regions": []}
                    writer.frame(b"MAPS", json.dumps({**each, **rest}).encode())
            writer.frame(frame.type, known.payload(frame), frame.stream, frame.items)
    return target


def events_of(path: Path) -> list[Event]:
    """All events of a trace."""
    made: list[Event] = []
    with tracekit.open(path) as trace:
        for batch in trace.batches():
            rows = zip(*(column.tolist() for column in (batch.kind, batch.subject, batch.address, batch.size)))
            names = {code: name for name, code in CODE.items()}
            made += [(batch.stream, names[kind], *row, 0) for kind, *row in rows]
    return made


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), names=st.sampled_from((["load", "store"], ["heap_alloc", "loop_exit", "hand_over"])))
def test_batches_have_the_column(tmp_path_factory: pytest.TempPathFactory, seed: int, names: list[str]) -> None:
    rng = random.Random(seed)
    events = events_of(FIXTURE)
    snapshots = snapshots_for(rng, events)
    path = with_snapshots(tmp_path_factory.mktemp("physical") / "trace.zst", snapshots)
    expected = [
        place if BY_NAME[event[1]].address and event[1] != "hand_over" else -1
        for event, place in physical.located(events, snapshots)
        if event[1] in names
    ]
    with tracekit.open(path) as trace:
        alone = [place for batch in trace.batches(names, ["physical"]) for place in batch.physical.tolist()]
        batches = trace.batches(names, ["physical", "group", "address"], stack=True)
        both = [row for batch in batches for row in zip(batch.physical.tolist(), batch.group.tolist())]
        groups = [group for batch in trace.batches(names, ["group"], stack=True) for group in batch.group.tolist()]
    assert alone == expected
    assert both == list(zip(expected, groups))
    if names[0] == "load":
        assert tracekit.analyze(path, Noting, jobs=1).result["physical"] == expected
        later = tracekit.analyze(path, Noting, jobs=2, window={"from": "50%"}).result["physical"]
        assert 0 < len(later) < len(expected) and later == expected[-len(later) :]


def test_without_page_frames_one_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"The module cache asks for physical.* record it with --physical"):
        tracekit.analyze(FIXTURE, "cache", addresses="physical")
    with tracekit.open(FIXTURE) as trace, pytest.raises(TracekitError, match=r"no page frames.*--physical"):
        trace.batches(["load"], ["physical"])
    for options in (CacheOptions, BandwidthOptions):
        with pytest.raises(ValueError, match="4096"):
            options(levels="64K:8:8192", addresses="physical")
    with pytest.raises(ValueError, match="4096"):
        ReuseOptions(line=8192, sizes="64K", addresses="physical")


def test_a_profile_says_that_it_is_of_physical_addresses(tmp_path: Path) -> None:
    path = with_snapshots(tmp_path / "trace.zst", [(0, {})])
    for module in ("cache", "reuse"):
        report = tracekit.analyze(path, module, addresses="physical").report
        accesses = report["result"]["summary"]["unlocated"]
        assert accesses > 0 and report["options"]["addresses"] == "physical"
        shown = as_text(report, {}, 0, Style(False))
        assert f"by physical addresses, but for {accesses:,} accesses to pages whose frame is not known" in shown


def test_an_event_without_an_address_lies_nowhere() -> None:
    class Wrong(Noting):
        @staticmethod
        def loop_exit(state: State, physical: int) -> None:
            """A loop has none."""

    with pytest.raises(WrongModuleError, match=r"loop_exit asks for 'physical'.* has no address"):
        declared(Wrong(program(1), NoOptions()))


def test_damaged_snapshots_are_refused() -> None:
    with pytest.raises(TracekitError, match="more pages than"):
        page_frames([FrameChanges(0.0, [[0, 1 << 40, 5]])])
    assert not len(page_frames([FrameChanges(0.0, [])]).pages)
