"""The pass ahead of an analysis in segments: it finds what each module has to know where a segment begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.contexts.copies import copied_contexts, copied_streams
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.state import nodes_of
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.runner import SegmentRunner
from tracekit.modules.segments import Segments
from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Snapshot
from tracekit.translation.kernels.translation import Translation
from tracekit.translation.translation import copied_translation


@dataclass(frozen=True)
class Start:
    """What one module begins a segment with; nothing of `began` changes."""

    mark: Any
    contexts: Contexts | None
    levels: Mapping[int, Stream]
    began: Mapping[int, Stream]
    clock: int
    translation: Translation | None = None


def segments_of(runners: Mapping[str, SegmentRunner], memory: int | None) -> dict[str, Segments]:
    """What each module says of segments, by its name; `memory`: as :attr:`Segments.memory`."""
    found: dict[str, Segments] = {}
    for name, runner in runners.items():
        segments = runner.module.segments()
        assert segments is not None
        segments.memory = memory
        found[name] = segments
    return found


def start_of(segments: Segments, ahead: CallbackRunner, streams: Sequence[int], clock: int) -> Start:
    """What a segment begins with where the pass ahead stands: behind so many accesses, of these streams."""
    worker = ahead.worker
    mark = segments.mark(worker.state, streams)
    live = worker.translation and copied_translation(worker.translation)
    if worker.contexts is None:
        return Start(mark, None, {}, {}, clock, live)
    known = len(nodes_of(worker.contexts))
    levels = copied_streams(worker.levels, known)
    return Start(mark, copied_contexts(worker.contexts), levels, copied_streams(worker.levels, 0), clock, live)


def begin(segments: Segments, runner: SegmentRunner, start: Start) -> None:
    """Let a runner, of which nothing has run, begin there."""
    state = segments.begin(runner.worker.state, start.mark, start.began)
    runner.go_on(state, start.contexts, start.levels, start.clock, start.translation)


class PassAhead:
    """A replay through the callbacks of `pilot` of each module: `runners`, by name."""

    def __init__(self, segments: Mapping[str, Segments], runners: Mapping[str, CallbackRunner], replay: Replay) -> None:
        self._segments, self._runners, self._replay = segments, runners, replay
        self._batches = replay.batches(show_progress=False)

    def close(self) -> None:
        """Go no further."""
        self._batches.close()

    @property
    def accesses(self) -> int:
        """Loads and stores so far."""
        return int(next(iter(self._runners.values())).worker.clock[0])

    @property
    def records(self) -> int:
        """Records so far."""
        return self._replay.position()

    @property
    def explained(self) -> str:
        """How it was replayed, if that was to be by compiled paths."""
        compiled = self._replay.compiled
        return "" if compiled is None else compiled.explained(self.records)

    def go_on(self) -> bool:
        """Take the next batch. Returns False if the trace is over."""
        batch = next(self._batches, None)
        if batch is None:
            return False
        for runner in self._runners.values():
            runner.feed(batch, 0)
        return True

    def snapshot(self) -> Snapshot | None:
        """Where it stands, if a segment can begin there."""
        return self._replay.snapshot(self.accesses)

    def starts(self) -> Mapping[str, Start]:
        """What each module begins a segment with there."""
        streams = self._replay.begun()
        return {
            name: start_of(self._segments[name], runner, streams, self.accesses)
            for name, runner in self._runners.items()
        }
