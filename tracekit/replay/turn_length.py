"""How long the turns of a trace's streams are, from a sample of its records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, FIRST_PATH, RECORDED
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program

SHORT = 2000
"""Records of a turn, on average: where there are fewer, what cannot take many turns at once is slow."""

SAMPLES = 4
"""Places of the stream with most records, of which a batch of records is looked at."""


def has_short_turns(reader: TraceReader, program: Program) -> bool:
    """Whether streams hand over so often that many turns had better be taken at once (turns.py).

    A stream whose tickets ascend by more than one hands over there: all streams together have every number.
    """
    records = {stream: sum(frame.items for frame in reader.chunk_frames(stream)) for stream in reader.streams()}
    if len(records) < 2:
        return False
    source, ticketed = RecordSource(reader, program.arity), _ticketed()
    busiest = max(records, key=lambda stream: records[stream])
    seen = turns = 0
    for sample in range(SAMPLES):
        _, batches = source.records_from(busiest, records[busiest] * (2 * sample + 1) // (2 * SAMPLES))
        for ids, words in batches:
            seen += len(ids)
            turns += _hand_overs(ids, words, program.arity, ticketed)
            break
    return seen < turns * SHORT


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
