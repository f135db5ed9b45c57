"""Segments of traces as bytes, analysed by whoever gets them: the same bytes as the whole; what goes wrong is told."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.naive.random_trace import write_random
from tests.segments.random_traces import write_affordable
from tests.segments.test_summaries import COMBINING, InBatches, InContext
from tracekit import api
from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow, reading, turn_to, writing
from tracekit.containers.serialization import deserialized, serialized
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.jit.kernel import kernel
from tracekit.modules import registry
from tracekit.modules.options import make_options
from tracekit.modules.runners import runner, segment_runners
from tracekit.program.program import Program
from tracekit.replay import snapshot_index, snapshots
from tracekit.replay.totals import trace_totals
from tracekit.segments import distribution
from tracekit.segments.distribution import DistributedAnalysis, cuts_for, why_not
from tracekit.segments.pool import Said, Task, Workers
from tracekit.segments.work_item import WorkItem, analysed

# -- states as bytes -------------------------------------------------------------------------------


class State(NamedTuple):
    """One of each structure."""

    table: HashTable
    rows: Arena
    memory: Shadow
    sums: NDArray[np.int64]


@kernel
def go_on(state: State, streams: Any, addresses: Any, sizes: Any) -> None:
    """Use all of it."""
    for k in range(len(addresses)):
        turn_to(state.memory, streams[k])
        for row in reading(state.memory, addresses[k], sizes[k]):
            state.sums[0] += np.int64(state.memory.rows[row]) * (k + 1)
        for row in writing(state.memory, addresses[k], sizes[k]):
            state.memory.rows[row] = np.uint32(k)
        state.sums[1] += np.int64(row_of(state.table, addresses[k])) * (k + 1)
        place = take(state.rows, 1)
        state.rows.rows[place] = k
        state.sums[2] += place


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), per_stream=st.booleans(), parts=st.integers(1, 3))
def test_a_state_goes_on_elsewhere_as_it_would_have_here(seed: int, per_stream: bool, parts: int) -> None:
    rng = np.random.default_rng(seed)
    state = State(
        hash_table([("count", "<i8")]), arena.arena("i8"), shadow.empty("u4", per_stream), np.zeros(3, np.int64)
    )
    elsewhere = state
    far = np.array([0, 1 << 30, 1 << 47, 1 << 60], np.uint64)
    for part in range(parts + 1):
        count = int(rng.integers(1, 300))
        given_events = (
            rng.integers(0, 20 if per_stream else 1, count),
            rng.integers(0, 9000, count).astype(np.uint64) + rng.choice(far, count),
            rng.integers(1, 40, count),
        )
        if part:
            elsewhere = deserialized(serialized(elsewhere))
            assert type(elsewhere) is State
        go_on(state, *given_events)
        if part:
            go_on(elsewhere, *given_events)
        assert np.array_equal(elsewhere.sums, state.sums)
        if not part:
            elsewhere = deserialized(serialized(state))
    assert np.array_equal(used_rows(elsewhere.table), used_rows(state.table))
    assert len(serialized(state)) < 1 << 20


# -- segments --------------------------------------------------------------------------------------


class Here:
    """A pool in this process: what its tasks do is given."""

    def __init__(self, tasks: Iterable[Task], done: Callable[[Task], Said]) -> None:
        self._tasks, self._done = tasks, done

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def said(self) -> Iterator[Said]:
        for task in self._tasks:
            yield Said(task[0], "at", 0.5)
            yield self._done(task)


def spread(
    trace: TraceReader,
    program: Program,
    module: Any,
    cuts: list[int],
    spoil: Callable[[Task], Said | None] = lambda task: None,
    memory: int | None = None,
) -> tuple[dict[str, Any], int]:
    """What a module finds in segments, and how many there were. `spoil`: what becomes of a task, if not its work."""

    def done(task: Task) -> Said:
        number, words = task
        if (said := spoil(task)) is not None:
            return said
        item = WorkItem.from_bytes(base64.b64decode(words["segment"]))
        Path(words["output"]).write_bytes(analysed(trace, program, {"it": runners["it"].again().module}, item))
        return Said(number, "done", {})

    runners = segment_runners({"it": runner(module, "it", 1)})
    workers = Workers(lambda tasks, most: Here(tasks, done), 2)
    count = DistributedAnalysis(trace, program, runners, {}, memory).run(workers, cuts)
    return runners["it"].result()[0], count


def made_of(trace: TraceReader, program: Program, module: Any, options: dict[str, str] | None = None) -> Any:
    kind = registry.load(module) if isinstance(module, str) else module
    made = kind(program, make_options(kind.Options, options or {}))
    try:
        made.accesses = trace_totals(trace, program)["accesses"]
    except TracekitError:
        assume(False)
    return made


CHOSEN: list[tuple[Any, dict[str, str]]] = [
    ("accesses", {}),
    ("heatmap", {}),
    ("footprint", {}),
    ("leap", {}),
    ("object_lifetime", {}),
    (InContext, {}),
    (InBatches, {}),
    ("camp", {}),
    ("dependence", {}),
    ("dependence", {"kinds": "raw,war,waw", "distance": "true", "counts": "true"}),
]


@settings(max_examples=90, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    streams=st.integers(1, 4),
    broken=st.booleans(),
    chosen=st.sampled_from(CHOSEN),
    indexed=st.booleans(),
    memory=st.sampled_from((None, 0)),
)
def test_pieces_come_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    streams: int,
    broken: bool,
    chosen: tuple[Any, dict[str, str]],
    indexed: bool,
    memory: int | None,
) -> None:
    module, options = chosen
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    accesses = write_affordable(path, rng, streams, broken)
    cuts = sorted(rng.randrange(accesses + 1) for _ in range(rng.randint(0, 6)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distribution, "BATCH", rng.choice((1, 8, 64)))
        patched.setattr(snapshots, "APART", 1)
        patched.setattr(snapshots, "BATCH", 1)
        with TraceReader(path) as trace:
            made_of(trace, Program.from_images(trace.images()), module, options)
        if indexed:
            snapshot_index.put_into(str(path))
        with TraceReader(path) as trace:
            program = Program.from_images(trace.images())
            found, _ = spread(trace, program, made_of(trace, program, module, options), cuts, memory=memory)
    kind = registry.load(module) if isinstance(module, str) else module
    (whole,) = api.analyze_all(path, {module: make_options(kind.Options, options)}, 1)
    assert found == whole.report["result"]


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceReader]:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(4), 2, broken=False)
    with pytest.MonkeyPatch.context() as patched, TraceReader(path) as reader:
        patched.setattr(distribution, "BATCH", 1)
        yield reader


def test_a_segment_whose_process_is_lost_runs_again(trace: TraceReader) -> None:
    program = Program.from_images(trace.images())
    module = made_of(trace, program, "accesses")
    lost: list[int] = []

    def lose_each_once(task: Task) -> Said | None:
        number = task[0]
        if number in lost:
            return None
        lost.append(number)
        return Said(number, *(("broke", -9), ("starved", "Ran out of memory."))[number % 2])

    expected, count = spread(trace, program, module, [2, 4, 6])
    assert spread(trace, program, module, [2, 4, 6], lose_each_once) == (expected, count) and count > 2
    assert lost == list(range(count))
    with pytest.raises(TracekitError, match="Segment 0 of the trace broke off twice, with exit status -9"):
        spread(trace, program, module, [2], lambda task: Said(task[0], "broke", -9))
    with pytest.raises(TracekitError, match=r"^It failed\.$"):
        spread(trace, program, module, [2], lambda task: Said(task[0], "failed", "It failed."))


def test_how_many_segments_there_are() -> None:
    assert cuts_for(100, 2, 4) == [25, 50, 75]
    assert cuts_for(100, 2, 1) == cuts_for(100, 64, None) == []
    assert len(cuts_for(1 << 30, 64, None)) == 63
    assert len(cuts_for(1 << 32, 2, None)) == 7


def test_what_cannot_be_taken_elsewhere_is_said(trace: TraceReader) -> None:
    program = Program.from_images(trace.images())
    for name in COMBINING:
        if name != "value_pattern":
            assert why_not({name: made_of(trace, program, name)}) is None
    for name in ("camp", "lamp", "advise", "dependence", "object_lifetime", "leap"):
        assert why_not({name: made_of(trace, program, name)}) is None

    class Reserved(InContext):
        def state(self) -> Any:
            return (arena.reserve("u1", 1 << 40),)

    class Doing(InBatches):
        def found(self) -> Any:
            return (each for each in self.seen)

    assert why_not({"it": made_of(trace, program, InBatches)}) is None
    it = made_of(trace, program, Doing)
    assert why_not({"it": it}) == "The state of the module it cannot be taken elsewhere"
    it = made_of(trace, program, Reserved)
    assert why_not({"it": it}) == "The state of the module it cannot be taken elsewhere"
