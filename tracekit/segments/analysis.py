"""Analyses a trace in segments, in threads: a pass ahead finds where they begin, each is analysed, they are joined.

The pass ahead runs in the calling thread, and a segment waits for it to come to its end. When segments are over they
are joined in their order. All that is computed in kernels, which other threads do not wait for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit import progress
from tracekit.containers.budget import limit
from tracekit.containers.kernels.before import MOST_STREAMS
from tracekit.contexts.copies import copied_contexts, copied_streams
from tracekit.contexts.kernels.contexts import Contexts
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.state import nodes_of
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.modules.runner import AdoptingRunner, CallbackRunner, Runner
from tracekit.modules.segments import Segments
from tracekit.program.program import Program
from tracekit.replay.engine import BATCH, Replay
from tracekit.replay.selection import Batch
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.snapshots import ACCESSES


def require_segments(
    runners: Mapping[str, Runner], streams: Sequence[int], windowed: bool
) -> dict[str, CallbackRunner]:
    """The runners that work, by name. Raises TracekitError if they cannot be given segments of the trace."""
    if windowed:
        raise TracekitError("A window is not analysed in segments: leave out one of the two.")
    if limit() is not None:
        raise TracekitError("Segments take more address space than is allowed here: leave them out.")
    if len(streams) > MOST_STREAMS or max(streams, default=0) >= MOST_STREAMS:
        raise TracekitError(
            f"A trace of more than {MOST_STREAMS:,} threads is not analysed in segments: leave them out."
        )
    cut = {}
    for name, runner in runners.items():
        if isinstance(runner, AdoptingRunner):
            continue
        if not isinstance(runner, CallbackRunner) or runner.module.segments() is None:
            raise TracekitError(f"The module {name} is not analysed in segments, with these options: leave them out.")
        cut[name] = runner
    return cut


@dataclass(frozen=True)
class Start:
    """What one module begins a segment with; nothing of `began` changes."""

    mark: Any
    contexts: Contexts | None
    levels: Mapping[int, Stream]
    began: Mapping[int, Stream]
    clock: int


def start_of(segments: Segments, ahead: CallbackRunner, streams: Sequence[int], clock: int) -> Start:
    """What a segment begins with where the pass ahead stands: behind so many accesses, of these streams."""
    worker = ahead.worker
    mark = segments.mark(worker.state, streams)
    if worker.contexts is None:
        return Start(mark, None, {}, {}, clock)
    known = len(nodes_of(worker.contexts))
    levels = copied_streams(worker.levels, known)
    return Start(mark, copied_contexts(worker.contexts), levels, copied_streams(worker.levels, 0), clock)


def begin(segments: Segments, runner: CallbackRunner, start: Start) -> None:
    """Let a runner, of which nothing has run, begin there."""
    state = segments.begin(runner.worker.state, start.mark, start.began)
    runner.go_on(state, start.contexts, start.levels, start.clock)


@dataclass(frozen=True)
class Segment:
    """A stretch of the trace: between two snapshots, None for its ends; how each module begins, by its name."""

    start: Snapshot | None
    stop: Snapshot | None
    starts: Mapping[str, Start]


class Task(NamedTuple):
    """A segment that is being analysed."""

    segment: Segment
    future: Future[Mapping[str, CallbackRunner]]


AHEAD = 2
"""Segments that wait beside those that are analysed: each has tables of its own."""


class SegmentedAnalysis:
    """An analysis of `trace` by the modules of some runners, by name, which all have :meth:`Module.segments`."""

    def __init__(
        self, trace: TraceReader, program: Program, runners: Mapping[str, CallbackRunner], batch: int = BATCH
    ) -> None:
        self.trace, self.program, self.runners = trace, program, runners
        self._batch = batch
        self.segments: dict[str, Segments] = {}
        for name, runner in runners.items():
            segments = runner.module.segments()
            assert segments is not None
            self.segments[name] = segments
        self._ahead = {name: CallbackRunner(each.pilot, f"{name}_ahead", 1) for name, each in self.segments.items()}
        self._is_over = threading.Event()
        self._replayed: dict[int, int] = {}

    def run(self, cuts: Sequence[int], jobs: int) -> None:
        """Analyse the segments that begin before all, and where so many accesses are over; in so many threads."""
        self._room = threading.Semaphore(jobs)
        total = 2 * sum(frame.items for frame in self.trace.chunk_frames())
        waiting: deque[Task] = deque()
        with ThreadPoolExecutor(jobs) as pool, progress.step("replaying in segments", total, self._position):
            try:
                with self._room:
                    for segment in self._cut(cuts):
                        waiting.append(Task(segment, pool.submit(self._analysed, segment)))
                        if len(waiting) > jobs + AHEAD:
                            self._join(waiting.popleft())
                    while waiting:
                        self._join(waiting.popleft())
            finally:
                self._is_over.set()
        for name, runner in self.runners.items():
            runner.finish(self.segments[name].reduce)

    def _position(self) -> int:
        return sum(list(self._replayed.values()))

    def _batches(self, replay: Replay) -> Iterator[Batch]:
        """Those of a replay, until the analysis is over; other threads see how far it is."""
        begun = replay.position()
        for batch in replay.batches(told=False):
            if self._is_over.is_set():
                return
            yield batch
            self._replayed[id(replay)] = replay.position() - begun

    def _replay(
        self, runners: Collection[CallbackRunner], start: Snapshot | None = None, stop: Snapshot | None = None
    ) -> Replay:
        """What some runners want of a stretch of the trace."""
        events = {event for runner in runners for event in runner.columns}
        columns = {column for runner in runners for columns in runner.columns.values() for column in columns}
        return Replay(self.trace, self.program, self._batch, events, columns, start=start, stop=stop)

    # -- the pass ahead ----------------------------------------------------------------------------

    def _cut(self, cuts: Sequence[int]) -> Iterator[Segment]:
        """The segments, each when the pass ahead has come to its end."""
        replay = self._replay(self._ahead.values())
        waiting = list(reversed(cuts))
        seen, begun = 0, set[int]()
        start: Snapshot | None = None
        starts: dict[str, Start] = {}
        for batch in self._batches(replay):
            for runner in self._ahead.values():
                runner.feed(batch, 0)
            seen += sum(int(np.count_nonzero(batch.kind == code)) for code in ACCESSES)
            begun.add(batch.stream)
            if waiting and seen >= waiting[-1] and (snapshot := replay.snapshot(seen)) is not None:
                while waiting and seen >= waiting[-1]:
                    waiting.pop()
                yield Segment(start, snapshot, starts)
                start, starts = snapshot, self._starts(sorted(begun), seen)
        yield Segment(start, None, starts)

    def _starts(self, streams: Sequence[int], clock: int) -> dict[str, Start]:
        return {name: start_of(self.segments[name], ahead, streams, clock) for name, ahead in self._ahead.items()}

    # -- a segment, and all of them ----------------------------------------------------------------

    def _analysed(self, segment: Segment) -> Mapping[str, CallbackRunner]:
        """The modules' runners when a segment is over."""
        with self._room:
            runners = {name: runner.again() for name, runner in self.runners.items()}
            for name, start in segment.starts.items():
                begin(self.segments[name], runners[name], start)
            replay = self._replay(runners.values(), segment.start, segment.stop)
            for batch in self._batches(replay):
                for runner in runners.values():
                    runner.feed(batch, 0)
            return runners

    def _join(self, task: Task) -> None:
        """Take in the next segment, waiting for its end; the last one's contexts are those of the whole trace."""
        self._room.release()
        try:
            done = task.future.result()
        finally:
            self._room.acquire()
        for name, runner in done.items():
            start = task.segment.starts.get(name)
            self.segments[name].add(runner.worker.state, start.began if start else {}, runner.worker.levels)
            self.runners[name].take_contexts(runner)
