"""Schedules streams: of those that stand before an event with a ticket, the one with the lowest runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.replay.kernels.recorded import THREAD_START
from tracekit.replay.kernels.turns import NO_LIMIT

if TYPE_CHECKING:
    from tracekit.replay.stream import StreamReplay


class Scheduler:
    """Streams that stand before an event with a ticket; a thread's first one waits until the thread is created.

    `created`: uint8 of each stream's number, whether its thread_create was replayed; the replay sets it.
    """

    def __init__(self, streams: Iterable[StreamReplay], created: NDArray[np.uint8]) -> None:
        self._created = created
        self._ready: list[tuple[int, int, StreamReplay]] = []
        self._asleep: dict[int, StreamReplay] = {}
        self._is_asleep = np.zeros(len(created), np.uint8)
        for stream in streams:
            self.add(stream)

    def add(self, stream: StreamReplay) -> None:
        """A stream stands before such an event; one that is at its end has no turn any more."""
        if not len(stream.ids):
            return
        if stream.event == THREAD_START and not self._created[stream.number]:
            self._asleep[stream.number] = stream
            self._is_asleep[stream.number] = 1
        else:
            heapq.heappush(self._ready, (stream.ticket, stream.number, stream))

    def take(self) -> tuple[StreamReplay, int] | None:
        """The stream whose turn it is, and the ticket up to which it may run; None if all are at their ends.

        It has no further turn before it is added again.
        """
        self._wake_created()
        if not self._ready:  # every stream waits for a thread_create that is not in the trace: the tickets decide
            if not self._asleep:
                return None
            _, number = min((stream.ticket, stream.number) for stream in self._asleep.values())
            first = self._wake(number)
            self._ready.clear()
            return first, max(min((other.ticket for other in self._asleep.values()), default=NO_LIMIT), first.ticket)
        ticket, _, first = heapq.heappop(self._ready)
        return first, max(self._ready[0][0], ticket) if self._ready else NO_LIMIT

    def take_all(self) -> list[StreamReplay]:
        """All streams that may have a turn, in any order; those that still may are given back."""
        self._wake_created()
        streams = [stream for _, _, stream in self._ready]
        self._ready.clear()
        return streams

    def give_back(self, streams: Iterable[StreamReplay]) -> None:
        """These may have a turn, as they did when they were taken."""
        for stream in streams:
            heapq.heappush(self._ready, (stream.ticket, stream.number, stream))

    def _wake_created(self) -> None:
        """Threads that were created meanwhile need not wait any more."""
        for number in np.flatnonzero(self._is_asleep & self._created).tolist() if self._asleep else ():
            self._wake(number)

    def _wake(self, number: int) -> StreamReplay:
        self._is_asleep[number] = 0
        stream = self._asleep.pop(number)
        heapq.heappush(self._ready, (stream.ticket, number, stream))
        return stream
