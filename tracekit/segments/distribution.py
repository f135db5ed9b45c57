"""Analyses a trace in segments in other processes, on this machine or others, with the result of the whole.

Where the modules keep contexts, or have to know what was before, a pass ahead finds what each segment begins with, and
hands segments out as it comes to their ends; else the trace's snapshots say where segments begin, and there is no pass
if it has any. What a segment leaves lies in a file until all before it are there; they are joined in their order.
"""

from __future__ import annotations

import base64
import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracekit import progress
from tracekit.containers.serialization import serialized
from tracekit.contexts.kernels.streams import Stream
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.contract import Analysis, BatchModule, Module
from tracekit.modules.runner import SegmentRunner
from tracekit.program.program import Program
from tracekit.replay.engine import BATCH, Replay
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.snapshots import Snapshots
from tracekit.segments.ahead import PassAhead, Start, segments_of
from tracekit.segments.pool import Said, Task, Workers
from tracekit.segments.work_item import WorkItem, left

LEAST_ACCESSES = 1 << 24
"""Of a segment, where nobody says how many there are: a process takes a second to begin."""

EACH = 4
"""Segments for each worker: so all are busy while the pass ahead goes on, and at the end."""

AHEAD = 2
"""Segments that are handed out, or wait for a worker, for each worker."""


def why_not(modules: Mapping[str, Analysis]) -> str | None:
    """Why segments by some modules cannot be analysed in other processes, or None: they can.

    All have :meth:`Analysis.segments`.
    """
    for name, module in modules.items():
        assert isinstance(module, (Module, BatchModule))
        try:
            serialized(module.state() if isinstance(module, Module) else module.found())
        except (pickle.PicklingError, AttributeError, TypeError):
            return f"The state of the module {name} cannot be taken elsewhere"
    return None


class DistributedAnalysis:
    """An analysis of `trace` by the modules of some runners, by name, for which :func:`why_not` has no reason.

    task: what processes read beside the segment (many/worker.py); memory: as :attr:`Segments.memory`.
    """

    def __init__(
        self,
        trace: TraceReader,
        program: Program,
        runners: Mapping[str, SegmentRunner],
        task: Mapping[str, Any],
        memory: int | None = None,
    ) -> None:
        self.trace, self.program, self.runners, self._task = trace, program, runners, task
        self.segments = segments_of(runners, memory)
        self._records = sum(frame.items for frame in trace.chunk_frames())
        self._is_over = threading.Event()
        self._sizes: list[int] = []  # of the segments that were handed out, in records
        self._shares: dict[int, float] = {}  # what is done of each
        self._handed_out: dict[int, Mapping[str, Any]] = {}  # tasks that are not done yet
        self._began: list[dict[str, Mapping[int, Stream]]] = []  # by segment and module: the levels of its streams
        self._joined = 0
        self.rules_broken = False
        """Whether records of the trace broke rules of replay, once all is over."""

    def run(self, workers: Workers, cuts: Sequence[int]) -> int:
        """Analyse the trace in segments that begin where so many accesses are over; returns how many there are.

        Raises TracekitError if a segment cannot be analysed, also by itself.
        """
        with (
            tempfile.TemporaryDirectory(prefix="tracekit-") as folder,
            progress.step("replaying", self._records, self._position),
        ):
            self._work(workers, self._tasks(cuts, folder), AHEAD * workers.count, folder)
            lost = sorted(self._handed_out.items())
            self._work(workers, iter(lost), 1, folder, is_last=True)
        for name, runner in self.runners.items():
            runner.finish(self.segments[name].reduce)
        return len(self._sizes)

    def _position(self) -> int:
        return int(sum(self._sizes[number] * share for number, share in list(self._shares.items())))

    def _work(self, workers: Workers, tasks: Iterator[Task], most: int, folder: str, is_last: bool = False) -> None:
        """Have tasks done; those whose process ended without a word, or found no memory, are left unless it is over.

        What they leave is joined as soon as all before is there.
        """
        with workers.pool(tasks, most) as running:
            try:
                for said in running.said():
                    self._note(said, is_last)
                    while self._shares.get(self._joined) == 1.0 and self._joined not in self._handed_out:
                        self._join(folder)
            finally:
                self._is_over.set()  # the pass ahead, which another thread may be in
        self._is_over.clear()

    def _note(self, said: Said, is_last: bool) -> None:
        if said.word == "at":
            self._shares[said.number] = said.content
        elif said.word == "done":
            self._shares[said.number] = 1.0
            del self._handed_out[said.number]
        elif said.word == "failed" or is_last:
            raise TracekitError(said.content if said.word != "broke" else _broke(said))

    # -- what is handed out ------------------------------------------------------------------------

    def _tasks(self, cuts: Sequence[int], folder: str) -> Iterator[Task]:
        begun = 0
        for number, item in enumerate(self._items(cuts)):
            end = item.stop.records if item.stop is not None else self._records
            self._sizes.append(end - begun)
            begun = end
            self._began.append({name: one.began for name, one in item.starts.items()})
            segment = base64.b64encode(item.to_bytes()).decode()
            task = {**self._task, "segment": segment, "output": str(_output(folder, number)), "threads": 1}
            self._handed_out[number] = task
            yield number, task

    def _items(self, cuts: Sequence[int]) -> Iterator[WorkItem]:
        needs_pass = any(segments.needs_pass for segments in self.segments.values())
        places = self._from_pass(cuts)
        if not needs_pass and len(known := Snapshots.in_trace(self.trace)):
            places = self._from_snapshots(cuts, known)
        start: Snapshot | None = None
        starts: Mapping[str, Start] = {}
        for stop, following in places:
            yield WorkItem(start, stop, starts)
            start, starts = stop, following
        yield WorkItem(start, None, starts)

    def _from_snapshots(self, cuts: Sequence[int], known: Snapshots) -> Iterator[tuple[Snapshot, Mapping[str, Start]]]:
        """The places nearest to the cuts that the trace has snapshots of."""
        numbers = {min(range(len(known)), key=lambda number: abs(known.accesses[number] - cut)) for cut in cuts}
        for number in sorted(numbers):
            clock = known.accesses[number]
            yield known[number], {name: Start(None, None, {}, {}, clock) for name in self.runners}

    def _from_pass(self, cuts: Sequence[int]) -> Iterator[tuple[Snapshot, Mapping[str, Start]]]:
        """Places behind the cuts, as the pass ahead comes to them."""
        pilots = {name: CallbackRunner(each.pilot, f"{name}_ahead", 1) for name, each in self.segments.items()}
        events = {event for pilot in pilots.values() for event in pilot.columns}
        columns = {column for pilot in pilots.values() for columns in pilot.columns.values() for column in columns}
        ahead = PassAhead(self.segments, pilots, Replay(self.trace, self.program, BATCH, events, columns))
        waiting = list(reversed(cuts))
        while waiting and not self._is_over.is_set() and ahead.go_on():
            if ahead.accesses >= waiting[-1] and (snapshot := ahead.snapshot()) is not None:
                while waiting and ahead.accesses >= waiting[-1]:
                    waiting.pop()
                yield snapshot, ahead.starts()

    # -- what comes back ---------------------------------------------------------------------------

    def _join(self, folder: str) -> None:
        """Take in the next segment; the last one's contexts are those of the whole trace."""
        file = _output(folder, self._joined)
        found = left(file.read_bytes())
        file.unlink()
        self.rules_broken |= found.rules_broken
        for name, runner in self.runners.items():
            one = found.of_module[name]
            self.segments[name].add(one.state, self._began[self._joined].get(name, {}), one.levels)
            if one.contexts is not None:
                runner.worker.contexts, runner.worker.levels = one.contexts, dict(one.levels)
            if one.translation is not None:
                runner.worker.translation = one.translation
        self._joined += 1


def cuts_for(accesses: int, workers: int, segments: int | None) -> list[int]:
    """Where so many accesses are divided: into `segments`, or into as many as pay with so many workers."""
    if segments is None:
        segments = max(min(EACH * workers, accesses // LEAST_ACCESSES), 1)
    return [accesses * number // segments for number in range(1, segments)]


def _output(folder: str, number: int) -> Path:
    return Path(os.path.join(folder, f"{number}.segment"))


def _broke(said: Said) -> str:
    return (
        f"Segment {said.number} of the trace broke off twice, with exit status {said.content}: "
        "the system may lack memory."
    )
