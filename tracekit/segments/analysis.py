"""Analyses a trace in segments, in threads: a pass ahead finds where they begin, each is analysed, they are joined.

The pass ahead runs in the calling thread, to where the last segment begins. When segments are over they are joined in
their order. All that is computed in kernels, which other threads do not wait for.

Where segments begin may be said; each then waits for the pass ahead to come to its end. Otherwise there are as many as
threads: each begins as soon as its beginning is known, and learns its end when the pass ahead has come so far that, by
what both have done so far, all will be over at the same time. If an earlier analysis has kept what segments begin with
(start_cache.py), there is no pass ahead.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from tracekit import progress
from tracekit.containers.budget import limit
from tracekit.containers.kernels.initial_pages import MOST_STREAMS
from tracekit.formats.reader import TraceReader
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.compiling import paths_for, work_for
from tracekit.modules.contract import Analysis, Module
from tracekit.modules.runner import SegmentRunner
from tracekit.program.program import Program
from tracekit.replay.engine import BATCH, Replay
from tracekit.replay.snapshot import Snapshot
from tracekit.segments.ahead import PassAhead, Start, begin, segments_of
from tracekit.segments.progress import SegmentProgress
from tracekit.segments.start_cache import StartCache

LEAST_ACCESSES = 1 << 25
"""A shorter trace is analysed before more kernels are loaded."""


def why_whole(modules: Mapping[str, Analysis], streams: Sequence[int], windowed: bool) -> str | None:
    """Why a trace of these streams cannot be analysed in segments by some modules, or None: it can."""
    if windowed:
        return "A window is not analysed in segments"
    if limit() is not None:
        return "Segments take more address space than is allowed here"
    if len(streams) > MOST_STREAMS or max(streams, default=0) >= MOST_STREAMS:
        return f"A trace of more than {MOST_STREAMS:,} threads is not analysed in segments"
    for name, module in modules.items():
        if module.segments() is None:
            why = module.whole_because if isinstance(module, Module) else ""
            return f"The module {name} is not analysed in segments{f': {why}' if why else ', with these options'}"
    return None


@dataclass(frozen=True)
class Segment:
    """A stretch of the trace: between two snapshots, None for its ends; how each module begins, by its name."""

    start: Snapshot | None
    stop: Snapshot | None
    starts: Mapping[str, Start]
    progress: SegmentProgress


class Task(NamedTuple):
    """A segment that is being analysed."""

    segment: Segment
    future: Future[Mapping[str, SegmentRunner]]


WAITING = 2
"""Segments that wait beside those that are analysed: each has tables of its own."""
LEAST_RATIO = 0.01
"""Of the time of the pass ahead to that of an analysis, as long as nothing is known of the latter."""


class SegmentedAnalysis:
    """An analysis of `trace` by the modules of some runners, by name, which all have :meth:`Analysis.segments`.

    memory: as :attr:`Segments.memory`.
    """

    def __init__(
        self,
        trace: TraceReader,
        program: Program,
        runners: Mapping[str, SegmentRunner],
        batch: int = BATCH,
        memory: int | None = None,
    ) -> None:
        self.trace, self.program, self.runners = trace, program, runners
        self._batch = batch
        self.segments = segments_of(runners, memory)
        self._records = sum(frame.items for frame in trace.chunk_frames())
        self._work = work_for(trace, program, [runner.module for runner in runners.values()])
        self._is_over = threading.Event()
        self._tasks: deque[Task] = deque()  # those that are not joined yet
        self._segment_progress: list[SegmentProgress] = []
        self._ahead_explained = ""
        self.is_known = False
        """Whether an earlier analysis had kept what segments begin with."""

    def run(self, jobs: int, cuts: Sequence[int] | None = None) -> int:
        """Analyse the trace in so many threads, the calling one among them; returns in how many segments.

        cuts: segments begin where so many accesses are over; None: as it keeps all threads busy.
        """
        self._room = threading.Semaphore(jobs)
        kept = StartCache(self.trace, self.segments, jobs) if cuts is None else None
        with ThreadPoolExecutor(jobs) as self._pool, progress.step("replaying", self._records, self._position):
            try:
                with self._room:
                    if kept is not None and kept.are_there:
                        self.is_known = True
                        self._begin_kept(kept)
                    else:
                        with closing(self._ahead()) as ahead:
                            if kept is not None:
                                self._share(ahead, jobs, kept)
                            else:
                                self._cut(ahead, jobs, cuts or ())
                            self._ahead_explained = ahead.explained
                    while self._tasks:
                        self._join()
            finally:
                self._is_over.set()
        for name, runner in self.runners.items():
            runner.finish(self.segments[name].reduce)
        return len(self._segment_progress)

    @property
    def rules_broken(self) -> bool:
        """Whether records of the trace broke rules of replay."""
        return any(each.rules_broken for each in self._segment_progress)

    def explained(self) -> list[str]:
        """A line for the pass ahead and each segment that was replayed by compiled paths, or was to be."""
        lines = [(f"segment {number}", each.explained) for number, each in enumerate(self._segment_progress, 1)]
        return [f"{part}, {line}" for part, line in [("pass ahead", self._ahead_explained), *lines] if line]

    def _ahead(self) -> PassAhead:
        pilots = {name: CallbackRunner(each.pilot, f"{name}_ahead", 1) for name, each in self.segments.items()}
        replay = self._replay(pilots.values())
        for pilot in pilots.values():
            pilot.begin(replay.example())
        replay.compiled = paths_for(self.trace, self.program, pilots.values(), self._work, follows=True)
        return PassAhead(self.segments, pilots, replay)

    def _position(self) -> int:
        return sum(each.records for each in list(self._segment_progress))

    def _replay(
        self, runners: Collection[SegmentRunner], start: Snapshot | None = None, stop: Snapshot | None = None
    ) -> Replay:
        """What some runners want of a stretch of the trace."""
        events = {event for runner in runners for event in runner.columns}
        columns = {column for runner in runners for columns in runner.columns.values() for column in columns}
        return Replay(self.trace, self.program, self._batch, events, columns, start=start, stop=stop)

    # -- where segments begin ----------------------------------------------------------------------

    def _cut(self, ahead: PassAhead, jobs: int, cuts: Sequence[int]) -> None:
        """Begin each segment when the pass ahead has come to its end."""
        waiting = list(reversed(cuts))
        start: Snapshot | None = None
        starts: Mapping[str, Start] = {}
        while waiting and ahead.go_on():
            if ahead.accesses >= waiting[-1] and (snapshot := ahead.snapshot()) is not None:
                while waiting and ahead.accesses >= waiting[-1]:
                    waiting.pop()
                self._begin(Segment(start, snapshot, starts, SegmentProgress()))
                if len(self._tasks) > jobs + WAITING:
                    self._join()
                start, starts = snapshot, ahead.starts()
        self._begin(Segment(start, None, starts, SegmentProgress()))

    def _begin_kept(self, kept: StartCache) -> None:
        """Begin all segments; the first one goes on while what the others begin with is read."""
        newest = self._begin(Segment(None, None, {}, SegmentProgress()))
        for item in kept.items():
            assert item.start is not None
            if newest.progress.end_at(item.start):
                newest = self._begin(Segment(item.start, None, item.starts, SegmentProgress()))

    def _share(self, ahead: PassAhead, jobs: int, kept: StartCache) -> None:
        """Begin a segment whenever that is due, the last one when one thread is left, that of the pass ahead."""
        newest = self._begin(Segment(None, None, {}, SegmentProgress()))
        while ahead.go_on():
            kept.look(ahead)
            free = jobs - sum(not self._is_done(task) for task in self._tasks)
            if self._is_due(ahead, newest, free):
                snapshot = ahead.snapshot()
                if snapshot is not None and newest.progress.end_at(snapshot):
                    newest = self._begin(Segment(snapshot, None, ahead.starts(), SegmentProgress()))
                    if free == 1:
                        break
        self._pool.submit(kept.write)

    @staticmethod
    def _is_done(task: Task) -> bool:
        """Is the segment over? Raises what was raised in it."""
        return task.future.done() and bool(task.future.result())

    def _is_due(self, ahead: PassAhead, newest: Segment, free: int) -> bool:
        """Will what is left, shared by so many free threads, be over no later than the newest segment up to here?

        If the pass ahead takes r times as long as an analysis, of segments that are over at the same time each is 1 - r
        times as long as the one before: of `free` of them the first is r / (1 - (1 - r)**free) of all.
        """
        begun = newest.start.records if newest.start is not None else 0
        done, gone = newest.progress.records, ahead.records - begun
        ratio = min(max(done / max(gone, 1), LEAST_RATIO), 1.0)
        first = (self._records - ahead.records) * ratio / (1 - (1 - ratio) ** free)
        return gone - done >= first

    # -- a segment, and all of them ----------------------------------------------------------------

    def _begin(self, segment: Segment) -> Segment:
        self._segment_progress.append(segment.progress)
        self._tasks.append(Task(segment, self._pool.submit(self._analysed, segment)))
        return segment

    def _analysed(self, segment: Segment) -> Mapping[str, SegmentRunner]:
        """The modules' runners when a segment is over."""
        own = segment.progress
        with self._room:
            try:
                runners = {name: runner.again() for name, runner in self.runners.items()}
                for name, start in segment.starts.items():
                    begin(self.segments[name], runners[name], start)
                replay = self._replay(runners.values(), segment.start, segment.stop)
                for runner in runners.values():
                    runner.begin(replay.example())
                begun = replay.position()
                replay.compiled = paths_for(
                    self.trace, self.program, runners.values(), self._work, self._records - begun
                )
                with closing(replay.batches(show_progress=False)) as batches:
                    for batch in batches:
                        if self._is_over.is_set():
                            break
                        for runner in runners.values():
                            runner.feed(batch, 0)
                        own.records = replay.position() - begun
                        own.look(replay)
                own.rules_broken = replay.breaks_rules
                if replay.compiled is not None:
                    own.explained = replay.compiled.explained(replay.position() - begun)
                return runners
            finally:
                own.close()

    def _join(self) -> None:
        """Take in the next segment, waiting for its end; the last one's contexts are those of the whole trace."""
        task = self._tasks.popleft()
        self._room.release()
        try:
            done = task.future.result()
        finally:
            self._room.acquire()
        for name, runner in done.items():
            start = task.segment.starts.get(name)
            worker = runner.worker
            self.segments[name].add(worker.state, start.began if start else {}, worker.levels)
            self.runners[name].take_contexts(runner)
