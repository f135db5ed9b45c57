"""Takes many turns of streams at once (kernels/turns.py), and gathers the events of many turns in one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.jit.call_table import CallTable
from tracekit.jit.caller import Caller
from tracekit.jit.native import raise_problem
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels import turns as kernels
from tracekit.replay.kernels.derive import derive
from tracekit.replay.scheduler import Scheduler
from tracekit.replay.selection import Batch, MixedBatch

if TYPE_CHECKING:
    from tracekit.replay.stream import StreamReplay

MOST_TURNS = 1 << 14
"""Turns whose events may be in one batch."""


class TurnTaker:
    """The turns of all streams of a replay, in one set of columns."""

    def __init__(self, streams: Sequence[StreamReplay]) -> None:
        self._streams = streams
        self._row = {stream.number: row for row, stream in enumerate(streams)}
        self._numbers = np.array([stream.number for stream in streams], np.int64)
        self._cursors = np.zeros((len(streams), layouts.CURSOR), np.int64)
        for cursor, stream in zip(self._cursors, streams, strict=True):
            cursor[:] = stream.cursor
            stream.cursor = cursor
        self._calls = CallTable(derive)
        self._ready = np.zeros(len(streams), np.int64)
        self._turns = np.zeros((MOST_TURNS, 2), np.int64)
        self._control = np.zeros(kernels.CONTROL, np.int64)
        self._take_turns, self._note_turn = Caller(kernels.take_turns), Caller(kernels.note_turn)

    def begin(self, stream: StreamReplay) -> None:
        """A turn begins, or goes on: its events come behind those that there are."""
        stream.cursor[layouts.FILLED] = self._control[kernels.SO_FAR]

    def note(self, stream: StreamReplay) -> bool:
        """Note the events that a turn has made. Returns whether no other turn has room in the batch."""
        filled = int(stream.cursor[layouts.FILLED])
        self._note_turn(self._turns, self._control, self._row[stream.number], filled)
        return self.is_full

    @property
    def over(self) -> int:
        """Turns that were over before the engine had to go on with them."""
        return int(self._control[kernels.OVER])

    def rest(self) -> None:
        """Streams have their turns one by one now, with batches of their own."""
        self._cursors[:, layouts.FILLED] = 0

    @property
    def is_full(self) -> bool:
        """Whether the batch holds as many turns as one can."""
        return bool(self._control[kernels.TURNS] == MOST_TURNS)

    def take(
        self, scheduler: Scheduler, arguments: Callable[[StreamReplay, int], tuple[Any, ...]]
    ) -> tuple[StreamReplay, int] | None:
        """Take turns of streams that are ready.

        Returns the stream whose turn the engine has to go on with, and its limit; None if no turn is under way.
        `arguments`: those of the derive kernel for a stream and a limit.
        """
        ready = scheduler.take_all()
        if not all(self._calls.set(self._row[stream.number], *arguments(stream, 0)) for stream in ready):
            scheduler.give_back(ready)
            return None
        if not ready:
            return None
        control = self._control
        control[kernels.READY], control[kernels.RUNNING] = len(ready), -1
        self._ready[: len(ready)] = [self._row[stream.number] for stream in ready]
        limit_at = self._calls.places[-2]
        status = self._take_turns(
            self._calls.codes,
            self._calls.words,
            self._calls.results,
            limit_at,
            self._cursors,
            self._ready,
            self._turns,
            control,
        )
        scheduler.give_back([self._streams[row] for row in self._ready[: control[kernels.READY]].tolist()])
        if status == kernels.FAILED:
            raise_problem(int(control[kernels.PROBLEM]))
        if control[kernels.RUNNING] < 0:
            return None
        created = status == layouts.CREATED  # then the new thread's tickets count from now on
        return self._streams[control[kernels.RUNNING]], -1 if created else int(control[kernels.LIMIT])

    def batch(self, mixed: Batch) -> Batch:
        """The batch of the events of all turns since the last one, whose columns those of `mixed` are."""
        turns = self._turns[: self._control[kernels.TURNS]].copy()
        turns[:, kernels.STREAM] = self._numbers[turns[:, kernels.STREAM]]
        self._control[[kernels.TURNS, kernels.SO_FAR]] = 0
        if len(turns) == 1:
            return Batch(int(turns[0, kernels.STREAM]), mixed.columns)
        return MixedBatch(-1, mixed.columns, turns)

    @property
    def events(self) -> int:
        """Events of the turns since the last batch."""
        return int(self._control[kernels.SO_FAR])
