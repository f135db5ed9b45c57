"""How long the turns of a trace's streams are: from a sample of its records, and as a replay goes on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, FIRST_PATH, RECORDED
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program

SHORT = 2000
"""Records of a turn, on average: where there are fewer, what cannot take many turns at once is slow."""

SAMPLES = 4
"""Places of a stream, of which a batch of records is looked at."""
BUSIEST = 4
"""Streams, those with most records, that are looked at: one may wait while others hand over to each other."""
TURNS = 64
"""Turns after which a replay looks how long they were."""


def has_short_turns(reader: TraceReader, program: Program) -> bool:
    """Whether streams hand over so often that many turns had better be taken at once (turns.py).

    A stream whose tickets ascend by more than one hands over there: all streams together have every number.
    """
    records = {stream: sum(frame.items for frame in reader.chunk_frames(stream)) for stream in reader.streams()}
    if len(records) < 2:
        return False
    source, ticketed = RecordSource(reader, program.arity), _ticketed()
    seen = turns = 0
    for stream in sorted(records, key=lambda stream: -records[stream])[:BUSIEST]:
        for ids, words in source.spread(stream, SAMPLES):
            seen += len(ids)
            turns += _hand_overs(ids, words, program.arity, ticketed)
    return seen < turns * SHORT


class Pace:
    """Whether the turns of a replay are short at present, from those that it has taken."""

    def __init__(self) -> None:
        self._is_short = False
        self._turns = self._records = 0

    def is_short(self, turns: int, records: Callable[[], int]) -> bool:
        """Whether they are, after so many `turns` and `records`, from those since the last look.

        What is short becomes long only when it is twice as long, for a change costs something, too.
        """
        if turns >= self._turns + TURNS:
            now = records()
            length = (now - self._records) / (turns - self._turns)
            self._is_short = length < (2 * SHORT if self._is_short else SHORT)
            self._turns, self._records = turns, now
        return self._is_short


def _hand_overs(
    ids: NDArray[np.uint32], words: NDArray[np.uint64], arity: NDArray[np.uint32], ticketed: NDArray[np.bool_]
) -> int:
    lengths = arity[ids].astype(np.int64)
    own = (ids < FIRST_PATH) & ticketed[np.minimum(ids, FIRST_PATH - 1)]
    tickets = words[(np.cumsum(lengths) - lengths)[own]]
    return int(np.count_nonzero(np.diff(tickets) != 1))


def _ticketed() -> NDArray[np.bool_]:
    """Of each code of an event, whether its first word is a ticket."""
    codes = np.zeros(FIRST_PATH, np.bool_)
    codes[[code for code in RECORDED if "ticket" in BY_CODE[code].words[:1]]] = True
    return codes
