"""Takes the hand-overs of each stream from its records, and the accesses between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracekit.contexts.roles import kinds_of
from tracekit.formats.events import CODE, FIRST_PATH, NONE
from tracekit.formats.image import PathFlag
from tracekit.formats.limits import LONGEST_RUN
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.paths.tables import walked
from tracekit.program.program import Program

I8 = NDArray[np.int64]
HAND_OVER = CODE["hand_over"]
UNKNOWN, IS_WRAPPER, IS_OWN, IS_MAIN = range(4)
"""Ranks of functions: the first one of the greatest rank is a thread's role."""


@dataclass
class StreamTimes:
    """The hand-overs of one stream: nanoseconds, processors, and the accesses of the stream before each."""

    function: int = -1
    rank: int = UNKNOWN
    accesses: int = 0
    times: list[I8] = field(default_factory=list)
    processors: list[I8] = field(default_factory=list)
    before: list[I8] = field(default_factory=list)


class HandOvers:
    """Those of all streams of a program's run."""

    def __init__(self, program: Program) -> None:
        self._arity = program.arity.astype(np.int64)
        self._accesses = np.zeros(max(len(program.path_row), FIRST_PATH), np.int64)
        used = np.flatnonzero(program.path_row != NONE)
        rows = program.path_row[used]
        tables, work = walked(program)
        along = np.concatenate([[0], np.cumsum(work.loads + work.stores)])
        first = tables.records["segment"].astype(np.int64)
        self._accesses[: len(first)] = along[first + tables.records["segments"]] - along[first]
        self._accesses[[CODE["library_load"], CODE["library_store"]]] = 1
        flags = np.zeros(len(self._accesses), np.uint32)
        flags[used] = program.paths["flags"][rows]
        self._run = flags & PathFlag.RUN != 0
        self._accesses[flags & PathFlag.GROUND_TRUTH != 0] *= ~self._run[flags & PathFlag.GROUND_TRUTH != 0]
        self._function = np.full(len(self._accesses), -1, np.int64)
        self._function[used] = program.blocks["function"][program.path_blocks["block"][program.paths["first"][rows]]]
        self._rank = np.choose(kinds_of(program), (IS_OWN, IS_WRAPPER, IS_MAIN))
        self.streams: dict[int, StreamTimes] = {}

    def add(self, number: int, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        """Take whole records. Those of one stream come in their order."""
        stream = self.streams.setdefault(number, StreamTimes())
        if stream.rank < (IS_MAIN if number == 0 else IS_OWN):
            self._find_role(stream, ids)
        done = self._accesses[ids]
        behind = np.cumsum(self._arity[ids])
        runs = np.flatnonzero(self._run[ids])
        if len(runs):
            done[runs] *= np.minimum(words[behind[runs] - 1], np.uint64(LONGEST_RUN)).astype(np.int64)
        along = np.cumsum(done)
        at = np.flatnonzero(ids == HAND_OVER)
        if len(at):
            stream.times.append((words[behind[at] - 2] & np.uint64((1 << 62) - 1)).astype(np.int64))
            stream.processors.append((words[behind[at] - 1] & np.uint64(0xFFFF)).astype(np.int64))
            stream.before.append(stream.accesses + along[at])
        stream.accesses += int(along[-1]) if len(along) else 0

    def _find_role(self, stream: StreamTimes, ids: NDArray[np.uint32]) -> None:
        """What the thread is for, by the rule of tracekit/contexts/kernels/roles.py."""
        functions = self._function[ids]
        functions = functions[functions >= 0]
        ranks = self._rank[functions]
        if ranks.max(initial=UNKNOWN) > stream.rank:
            stream.function, stream.rank = int(functions[ranks.argmax()]), int(ranks.max())


def stamps(number: int, stream: StreamTimes) -> tuple[I8, I8, I8]:
    """Times, processors and accesses before, from the beginning: of the first thread at 0, of another at its first."""
    if not stream.times:
        none = np.zeros(0, np.int64)
        return none, none, none
    times = np.maximum.accumulate(np.concatenate(stream.times))
    processors, before = np.concatenate(stream.processors), np.concatenate(stream.before)
    begin = 0 if number == 0 else int(times[0])
    return (
        np.concatenate([[begin], times]),
        np.concatenate([processors[:1], processors]),
        np.concatenate([[0], before]),
    )


def read_hand_overs(trace: TraceReader, program: Program) -> dict[int, tuple[I8, I8]]:
    """By stream that has any: times in nanoseconds, and the accesses before, both ascending, int64 of one length.

    Accesses of operations whose size the run decides are not counted (tracekit/paths/tables.py: has_known_size).
    """
    taken = HandOvers(program)
    source = RecordSource(trace, program.arity)
    for number in source.streams():
        for ids, words in source.records(number):
            taken.add(number, ids, words)
    made = {}
    for number, stream in taken.streams.items():
        times, _, before = stamps(number, stream)
        if len(times):
            made[number] = times, before
    return made
