"""One stream of a replay: its stack, the records at hand, and the place in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.limits import DEEPEST
from tracekit.formats.records import Records
from tracekit.jit.caller import Caller
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels.derive import derive

RECORDS_BEFORE_LOOK = 2000
"""Records of paths without a template yet before the engine makes those of all records at hand."""


@dataclass(frozen=True)
class Violation:
    """A rule of the event stream that a stream's records break: how often, and the first such record."""

    stream: int
    text: str
    count: int
    record: int


class StreamReplay:
    """One stream's state between calls of the kernel: its stack, the records at hand, the place in them."""

    def __init__(self, number: int, source: Iterator[Records]) -> None:
        self.number = number
        self.source = source
        self.ids = np.empty(0, np.uint32)
        self.words = np.empty(0, np.uint64)
        self.cursor = np.zeros(layouts.CURSOR, np.int64)
        self.before = 0  # records before those at hand
        self.end: int | None = None  # the record that it stops before, if there is one
        self.derive = Caller(derive)  # its own: of turns that come one after another its arguments stay the same
        self.state = layouts.Stream(
            frames=np.zeros(256, layouts.FRAME_ROW),
            open_loops=np.zeros(256, np.uint32),
            iterations=np.zeros(256, np.uint64),
            registers=np.zeros(1024, np.uint64),
            objects=np.zeros(256, layouts.OBJECT),
            scalars=np.array([-1] + [0] * (layouts.SCALARS - 1), np.int64),
            violations=np.zeros((len(layouts.VIOLATIONS), 2), np.int64),
        )
        self.state.scalars[layouts.PATIENCE] = RECORDS_BEFORE_LOOK

    def next_records(self) -> bool:
        """Go on to the next records; False at the end of the stream, and before the record `end`."""
        if self.end == self.records:
            return False
        for ids, words in self.source:
            if len(ids):
                self._replace(ids, words)
                return True
        self._replace(np.empty(0, np.uint32), self.words)
        return False

    def _replace(self, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        self.cursor[layouts.RECORD] = self.cursor[layouts.WORD] = 0
        self.before += len(self.ids)
        self.ids, self.words = ids, words
        if self.end is not None:
            self.ids = ids[: self.end - self.before]

    @property
    def records(self) -> int:
        """Records before its place."""
        return self.before + int(self.cursor[layouts.RECORD])

    def stop_before(self, record: int) -> None:
        """Replay the records before this one only."""
        self.end = record
        self.ids = self.ids[: record - self.before]

    def go_on_from(self, state: layouts.Stream, records: int, arity: NDArray[np.uint32]) -> None:
        """Take a state and go to its place, behind so many records, of which `before` were passed over already.

        `arity`: words of each record id. Raises TracekitError if there are not so many records.
        """
        self.state = state
        while self.before + len(self.ids) <= records and self.next_records():
            pass
        self.cursor[layouts.RECORD] = at = records - self.before
        if not 0 <= at <= len(self.ids):
            raise TracekitError("The trace is damaged: a snapshot lies behind its end.")
        self.cursor[layouts.WORD] = arity[self.ids[:at]].sum(dtype=np.int64)

    def grow(self, status: int) -> None:
        """Double the arrays that the kernel found too small. Raises TracekitError if no program could need that."""
        fields = {
            layouts.FRAMES: ("frames",),
            layouts.LOOPS: ("open_loops", "iterations"),
            layouts.REGISTERS: ("registers",),
            layouts.STACK: ("objects",),
        }[status]
        if len(getattr(self.state, fields[0])) >= DEEPEST:
            raise TracekitError(f"The trace is damaged: the stack of stream {self.number} never stops growing.")
        self.state = self.state._replace(**{name: _doubled(getattr(self.state, name)) for name in fields})

    @property
    def event(self) -> int:
        """The code of the ticketed event that the stream stands before."""
        return int(self.ids[self.cursor[layouts.RECORD]])

    @property
    def ticket(self) -> int:
        """The ticket of that event."""
        return min(int(self.words[self.cursor[layouts.WORD]]), 1 << 62)

    @property
    def breaks_rules(self) -> bool:
        """Whether its records broke a rule that no program can have broken."""
        return bool(np.delete(self.state.violations[:, 0], layouts.OF_PROGRAMS).any())

    def violations(self) -> list[Violation]:
        """What its records broke so far."""
        return [
            Violation(self.number, text, int(count), int(record))
            for text, (count, record) in zip(layouts.VIOLATIONS, self.state.violations)
            if count
        ]


def _doubled(array: Any) -> Any:
    larger = np.zeros(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger
