"""The replay engine: streams of records in, batches of events out, in one deterministic order.

A stream runs by itself until a record that carries a ticket (allocations, threads, images: what all streams have to
agree on); such records are replayed in the order of their tickets. A thread's stream waits for its thread_create.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from tracekit import progress
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import Records, RecordSource
from tracekit.program.program import Program
from tracekit.replay import lowering as derive_tables
from tracekit.replay.compiled.compiler import CompiledPaths
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels.layouts import Columns
from tracekit.replay.kernels.recorded import THREAD_START
from tracekit.replay.kernels.turns import NO_LIMIT
from tracekit.replay.process import empty_process, restored_process, with_larger_heap
from tracekit.replay.resuming import resume
from tracekit.replay.scheduler import Scheduler
from tracekit.replay.selection import VALUE, Batch, EventSelection, by_name, filled
from tracekit.replay.snapshot import Snapshot, Turn, live_objects
from tracekit.replay.stream import RECORDS_BEFORE_LOOK, StreamReplay, Violation
from tracekit.replay.stream_states import snapshot_of
from tracekit.replay.template_cache import TemplateCache
from tracekit.replay.turn_length import Pace
from tracekit.replay.turns import TurnTaker

BATCH = 32_768
"""Events in a batch: 21 bytes each with all columns, so that a batch stays in L2 beside the kernels' own tables."""


class Source(Protocol):
    """Where records come from."""

    def streams(self) -> Sequence[int]:
        """The numbers of the streams, ascending."""

    def records(self, stream: int) -> Iterator[Records]:
        """Batches of whole records: ids, and the words of all of them; the next batch may overwrite them."""


class Replay:
    """A replay of all streams of a trace; iterate over :meth:`batches` once.

    Batches hold the events named by `events` and, beside ``kind``, the `columns` named; None stands for all. What is
    not asked for is neither computed nor stored. The events are those of a full replay without the others; what
    nothing depends on is not checked either (:meth:`violations`). `kept` batches stay as they are, the newest one
    counted, before what they are made of is filled again; with more than one, another thread decodes records ahead.
    `start`, `stop`: snapshots of this trace; the events are those between them, and a rule is broken as often as in a
    replay from the beginning. Raises ValueError for a name that is none.
    """

    def __init__(
        self,
        trace: Source | TraceReader,
        program: Program,
        batch: int = BATCH,
        events: Collection[str] | None = None,
        columns: Collection[str] | None = None,
        kept: int = 1,
        start: Snapshot | None = None,
        stop: Snapshot | None = None,
    ) -> None:
        source = RecordSource(trace, program.arity, kept > 1) if isinstance(trace, TraceReader) else trace
        self.records = sum(frame.items for frame in trace.chunk_frames()) if isinstance(trace, TraceReader) else None
        """Records of the trace; None if its source does not say."""
        self.selection = EventSelection.of(events, columns)
        if VALUE in self.selection.columns:
            program.require_values()
        self.tables = derive_tables.build(program, self.selection.keep)
        self.template_cache = TemplateCache(program, self.selection.keep, values=VALUE in self.selection.columns)
        self.streams = [StreamReplay(number, source.records(number)) for number in source.streams()]
        self.process = empty_process(stream.number for stream in self.streams)
        self.columns = self.selection.room(batch)
        self.kept = kept
        self._handed_out: deque[Columns] = deque()
        self.compiled: CompiledPaths | None = None
        """Set by whoever wants no batches but the events handed to modules one by one, as far as that can be."""
        self.turn = Turn(0, 0, NO_LIMIT, 0)
        self.start = start
        """The snapshot that it begins at; None: the beginning of the trace."""
        self._stop = stop
        self._is_over = False
        self._turns: TurnTaker | None = None
        self._mixing: TurnTaker | None = None  # of the streams, while batches hold many turns
        self._pace = Pace()
        self.delivered = 0
        """Events delivered so far."""
        if start is not None:
            resume(self.streams, start, source, program, self.tables)
            self.process = restored_process(self.process, start)

    def mix_streams(self) -> None:
        """Let batches hold events of several streams that take turns (:class:`MixedBatch`): of a whole trace, before
        the first batch. With compiled paths, which take one turn at a time, they do while turns are short.
        """
        if len(self.streams) > 1:
            self._turns = TurnTaker(self.streams)
            self._mixing = self._turns if self.compiled is None else None

    def batches(self, show_progress: bool = True) -> Generator[Batch, None, None]:
        """All events of the trace; see :class:`Batch`. `show_progress`: whether this is a step of progress.py."""
        try:
            with progress.step("replaying", self.records, self.position) if show_progress else nullcontext():
                yield from self._batches()
        finally:
            if self.compiled is not None:
                self.compiled.end()

    def example(self) -> Batch:
        """A batch like those to come, whose rows mean nothing."""
        return Batch(0, self.columns)

    def no_events(self) -> Batch:
        """A batch without rows, of the stream that runs."""
        return Batch(self.turn.stream, filled(self.columns, 0))

    def position(self) -> int:
        """Records replayed so far, of `records`; may be called from any thread."""
        return sum(stream.before + int(stream.cursor[layouts.RECORD]) for stream in self.streams)

    def begun(self) -> list[int]:
        """The streams of which there were records, ascending."""
        return sorted(stream.number for stream in self.streams if stream.records)

    def compared(self) -> tuple[int, int, int]:
        """How many addresses, blocks and runs so far were equal to what the program recorded in place."""
        addresses, blocks, runs = sum(
            stream.state.scalars[[layouts.ADDRESSES, layouts.BLOCKS, layouts.RUNS]] for stream in self.streams
        ) + np.zeros(3, np.int64)
        return int(addresses), int(blocks), int(runs)

    def violations(self) -> list[Violation]:
        """Every rule that the records broke so far, stream by stream."""
        return [violation for stream in self.streams for violation in stream.violations()]

    @property
    def breaks_rules(self) -> bool:
        """Whether the records broke one so far that no program can have broken."""
        return any(stream.breaks_rules for stream in self.streams)

    # -- the order of streams ----------------------------------------------------------------------

    def _batches(self) -> Iterator[Batch]:
        if self.start is not None:  # in the middle of a turn
            for stream in self.streams:
                self._look_at(stream)
            turn = self.start.turn
            self.turn = replace(turn, number=turn.number - 1)
            yield from self._run(next(stream for stream in self.streams if stream.number == turn.stream), turn.limit)
        for stream in self.streams[self.turn.begun :]:
            if not self._is_over:
                self.turn = replace(self.turn, begun=self.turn.begun + 1)
                yield from self._run(stream, -1)
        scheduler = Scheduler([] if self._is_over else self.streams, self.process.created)
        while turn_of := scheduler.take():
            stream, limit = turn_of
            stream.state.scalars[layouts.MAY_START] = stream.event == THREAD_START
            yield from self._run(stream, limit)
            if self._is_over:
                return
            scheduler.add(stream)
            if self._turns is not None:
                yield from self._keep_pace(self._turns)
                yield from self._many_turns(self._turns, scheduler)
        if self._turns is not None and self._turns.events:
            yield self._batch(-1, self._turns.events)

    def _many_turns(self, turns: TurnTaker, scheduler: Scheduler) -> Iterator[Batch]:
        """Turns until one is needed that only the scheduler gives, there are none, or they are long."""
        while self._mixing is not None:
            under_way = turns.take(scheduler, self._arguments)
            if under_way is not None:
                stream, limit = under_way
                yield from self._run(stream, limit)
                scheduler.add(stream)
            elif turns.is_full:
                yield self._batch(-1, turns.events)
            else:
                return
            yield from self._keep_pace(turns)

    def _keep_pace(self, turns: TurnTaker) -> Iterator[Batch]:
        """Take many turns at once while they are short; where nothing is compiled, always."""
        if self.compiled is None:
            return
        is_short = self._pace.is_short(self.turn.number + turns.over, self.position)
        if self._mixing is not None and not is_short:
            if turns.events:
                yield self._batch(-1, turns.events)
            turns.rest()
        self._mixing = turns if is_short else None

    def _run(self, stream: StreamReplay, limit: int) -> Iterator[Batch]:
        """Run one stream until a ticket beyond `limit`, the first one after a thread's creation, or its end."""
        self.turn = Turn(self.turn.number + 1, stream.number, limit, self.turn.begun)
        if self._stop is not None and self._is_last_turn():
            stream.stop_before(next(then.records for then in self._stop.streams if then.number == stream.number))
        mixing = self._mixing
        if mixing is not None:
            mixing.begin(stream)
        while True:
            status = self._replay(stream, self.turn.limit)
            events = int(stream.cursor[layouts.FILLED])
            is_full = status == layouts.FULL
            if mixing is not None:
                is_full |= mixing.note(stream)
            stopping = status == layouts.TICKET
            if status == layouts.CREATED:
                self.turn = replace(self.turn, limit=-1)  # the new thread's tickets count from now on
            if status == layouts.INPUT:
                stopping = not stream.next_records()
                self._is_over = stopping and self._is_last_turn()
                self._look_at(stream)
            if events and (is_full or (stopping and mixing is None)):
                stream.cursor[layouts.FILLED] = 0
                yield self._batch(stream.number, events)
            elif status == layouts.FULL:
                self.columns = self.selection.room(max(2 * len(self.columns.kind), int(stream.cursor[layouts.NEED])))
            elif status == layouts.LOOK:
                self.tables = self.template_cache.add(self.tables, stream.ids)
                stream.state.scalars[layouts.PATIENCE] = RECORDS_BEFORE_LOOK
            elif status == layouts.HEAP:
                self.process = with_larger_heap(self.process)
            elif status == layouts.INPUT and self.compiled is not None and not (events or stopping):
                yield self.no_events()  # modules had theirs one by one; who follows the replay looks where it stands
            elif layouts.FRAMES <= status <= layouts.STACK:
                stream.grow(status)
            if stopping:
                return

    def _replay(self, stream: StreamReplay, limit: int) -> int:
        """Replay records of a stream, by compiled paths if there are any. Returns the derive kernel's status."""
        arguments = self._arguments(stream, limit)
        status = None
        if self.compiled is not None and not stream.cursor[layouts.FILLED]:
            status = self.compiled.replay(stream.number, arguments)
        return int(stream.derive(*arguments)) if status is None else status

    def _arguments(self, stream: StreamReplay, limit: int) -> tuple[Any, ...]:
        """Those of the derive kernel."""
        return self.tables, stream.state, self.process, self.columns, stream.ids, stream.words, stream.cursor, limit

    def _batch(self, stream: int, events: int) -> Batch:
        self.delivered += events
        batch = Batch(stream, filled(self.columns, events))
        if self._mixing is not None:
            batch = self._mixing.batch(batch)
        if self.kept > 1:
            self._handed_out.append(self.columns)
            is_full = len(self._handed_out) == self.kept
            self.columns = self._handed_out.popleft() if is_full else self.selection.room(len(self.columns.kind))
        return batch

    # -- snapshots ---------------------------------------------------------------------------------

    def snapshot(self, accesses: int = 0) -> Snapshot | None:
        """Where it stands after the newest batch, and all of this has been delivered; None inside a run.

        `accesses`: how many loads and stores there were, if anyone wants to know.
        """
        running = next(stream for stream in self.streams if stream.number == self.turn.stream)
        if running.state.scalars[layouts.RUN_DONE] or running.cursor[layouts.FILLED]:
            return None
        streams = [snapshot_of(stream, self.process, self.tables) for stream in self.streams]
        return Snapshot(self.turn, streams, live_objects(self.process), accesses)

    def stop_at(self, stop: Snapshot) -> bool:
        """Between two batches: end at a snapshot of this trace, unless it has come there. Returns whether it will."""
        records = next(then.records for then in stop.streams if then.number == stop.turn.stream)
        running = next(stream for stream in self.streams if stream.number == stop.turn.stream)
        if self.turn.number > stop.turn.number:
            return False
        if self.turn.number == stop.turn.number:
            if running.records >= records:
                return False
            running.stop_before(records)
        self._stop = stop
        return True

    def _is_last_turn(self) -> bool:
        return self._stop is not None and self.turn.number == self._stop.turn.number

    # -- compiled paths ----------------------------------------------------------------------------

    def _look_at(self, stream: StreamReplay) -> None:
        """Let the compiler of paths see the records at hand."""
        if self.compiled is not None and self.compiled.see(stream.number, stream.ids):
            self.compile_paths(self.compiled, stream)

    def compile_paths(self, compiled: CompiledPaths, stream: StreamReplay) -> None:
        """Begin to compile the paths that were seen."""
        seen = compiled.seen()
        self.tables, rows, runs = self.template_cache.add_runs(self.template_cache.add(self.tables, seen), seen)
        compiled.start(self._arguments(stream, 0), stream.number, rows, runs)


def batches(trace: Source | TraceReader, program: Program, batch: int = BATCH) -> Iterable[Batch]:
    """All events of a trace as batches of columns; one pass feeds any number of consumers."""
    return Replay(trace, program, batch).batches()


def count_events(trace: Source | TraceReader, program: Program, like: EventSelection | None = None) -> dict[str, int]:
    """How many events of each name a full replay of the trace delivers, and a specialised one of those it delivers.

    A pass of its own over the trace: what a specialised replay leaves out it does not count either. (PROMPT, Table 8)
    It needs no column, but it runs the kernel of a replay `like` one that there has been, if that makes all groups of
    events, or else the kernel of a full replay: one more would have to be compiled for it alone.
    """
    counts = np.zeros(256, np.int64)
    columns = like.columns if like and like.has_all_groups else None
    for batch in Replay(trace, program, columns=columns).batches():
        counts += np.bincount(batch.kind, minlength=256)
    return by_name(counts)
