"""A segment of a trace as work for another process: what it begins with, as bytes, and what it leaves, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tracekit import progress
from tracekit.containers.serialization import deserialized, serialized
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.formats.reader import TraceReader
from tracekit.modules.compiling import paths_for, work_for
from tracekit.modules.contract import Analysis
from tracekit.modules.runners import runner, segment_runners
from tracekit.program.program import Program
from tracekit.replay.compiled.cost_model import records_of
from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Snapshot
from tracekit.segments.ahead import Start, begin
from tracekit.segments.streams import trimmed, with_room_for_all
from tracekit.translation.kernels.translation import Translation


@dataclass(frozen=True)
class WorkItem:
    """Between two snapshots, None for the trace's ends; how each module begins, by its name, if not as the trace."""

    start: Snapshot | None
    stop: Snapshot | None
    starts: Mapping[str, Start]

    def to_bytes(self) -> bytes:
        """For another process. Raises pickle.PicklingError if what a module has to know cannot be taken elsewhere."""
        starts = {
            name: Start(
                start.mark,
                start.contexts,
                trimmed(start.contexts, start.levels),
                trimmed(start.contexts, start.began),
                start.clock,
                start.translation,
            )
            for name, start in self.starts.items()
        }
        return serialized((self.start, self.stop, starts))

    @classmethod
    def from_bytes(cls, data: bytes) -> WorkItem:
        """What :meth:`to_bytes` made."""
        start, stop, starts = deserialized(data)
        for name, one in starts.items():
            levels, began = (with_room_for_all(one.contexts, streams) for streams in (one.levels, one.began))
            starts[name] = Start(one.mark, one.contexts, levels, began, one.clock, one.translation)
        return cls(start, stop, starts)


@dataclass(frozen=True)
class Left:
    """What a module leaves behind at the end of a segment; contexts, live objects of the last one alone."""

    state: Any
    contexts: Contexts | None
    levels: Mapping[int, Stream]
    translation: Translation | None = None


class Finished(NamedTuple):
    """What a segment leaves behind."""

    rules_broken: bool
    """Whether records as far as its end broke rules of replay."""
    of_module: Mapping[str, Left]


def analysed(trace: TraceReader, program: Program, modules: Mapping[str, Analysis], item: WorkItem) -> bytes:
    """Analyse a segment by modules that all have :meth:`Analysis.segments`; :func:`left` reads what is returned."""
    runners = segment_runners({name: runner(module, name, 1) for name, module in modules.items()})
    for name, start in item.starts.items():
        segments = modules[name].segments()
        assert segments is not None
        begin(segments, runners[name], start)
    events = {event for each in runners.values() for event in each.columns}
    columns = {column for each in runners.values() for columns in each.columns.values() for column in columns}
    replay = Replay(trace, program, events=events, columns=columns, start=item.start, stop=item.stop)
    begun = replay.position()
    end = item.stop.records if item.stop is not None else records_of(trace)
    work = work_for(trace, program, modules.values())
    replay.compiled = paths_for(trace, program, runners.values(), work, end - begun)
    with progress.step("replaying", end - begun, lambda: replay.position() - begun):
        for batch in replay.batches(show_progress=False):
            for each in runners.values():
                each.feed(batch, 0)
    workers = {name: each.worker for name, each in runners.items()}
    is_last = item.stop is None
    leaving = {
        name: Left(
            worker.state,
            worker.contexts if is_last else None,
            trimmed(worker.contexts, worker.levels),
            worker.translation if is_last else None,
        )
        for name, worker in workers.items()
    }
    return serialized((replay.breaks_rules, leaving))


def left(data: bytes) -> Finished:
    """What :func:`analysed` wrote."""
    rules_broken, leaving = deserialized(data)
    levels = {name: with_room_for_all(one.contexts, one.levels) for name, one in leaving.items()}
    return Finished(rules_broken, {name: replace(one, levels=levels[name]) for name, one in leaving.items()})
