"""Which paths are hot: counted over records of a replay, with what comes before them, and over a whole trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.replay.compiled.plan import entries
from tracekit.replay.kernels import layouts

U4 = NDArray[np.uint32]
I8 = NDArray[np.int64]


SHARE = 0.99
"""Share of the records that paths can make; the paths that make it are hot."""
SAMPLES = 16
"""Batches of records from which paths are known to be too many to compile."""


class Sample:
    """Record ids of a replay, as they came."""

    def __init__(self) -> None:
        self.records = 0
        self._ids: list[U4] = []

    def add(self, ids: U4) -> None:
        """Take a batch of records of one stream; the array may be overwritten afterwards."""
        self.records += len(ids)
        self._ids.append(ids.copy())

    def ids(self) -> U4:
        """The record ids that came, each once."""
        return np.unique(np.concatenate(self._ids))

    def hottest(self, possible: NDArray[np.bool_], share: float) -> I8:
        """The paths, of those `possible` by record id, that make this share of their records; the hottest first."""
        counts = sum(np.bincount(ids[ids < len(possible)], minlength=len(possible)) for ids in self._ids)
        counts = np.where(possible, counts, 0)
        order = np.argsort(-counts, kind="stable")
        total = np.cumsum(counts[order])
        wanted = int(np.searchsorted(total, share * total[-1])) + 1
        return order[: min(wanted, int(np.count_nonzero(counts)))]

    def pairs(self) -> tuple[I8, I8]:
        """Paths that came one after another in a stream: those before, and those behind."""
        seen = [np.zeros(0, np.int64)]
        for ids in self._ids:
            paths = ids[ids >= FIRST_PATH].astype(np.int64)
            seen.append(np.unique(paths[:-1] << 32 | paths[1:]))
        pairs = np.unique(np.concatenate(seen))
        return pairs >> 32, pairs & 0xFFFF_FFFF


def count_hot_paths(reader: TraceReader, program: Program) -> int:
    """How many paths of a trace are hot, from samples that are spread over it.

    Its first records do not tell: an interpreter begins with few paths, and takes others later.
    """
    source, sample = RecordSource(reader, program.arity), Sample()
    totals = {stream: sum(frame.items for frame in reader.chunk_frames(stream)) for stream in source.streams()}
    for stream, records in totals.items():
        for ids, _ in source.spread(stream, round(SAMPLES * records / sum(totals.values()))):
            sample.add(ids)
    possible = np.arange(len(program.arity)) >= FIRST_PATH
    return len(sample.hottest(possible, SHARE)) if sample.records else 0


class Predecessors:
    """The blocks that an activation may stand at before a path goes on in it."""

    def __init__(self, tables: layouts.Tables, sample: Sample) -> None:
        self._tables = tables
        self._before, self._behind = sample.pairs()
        paths = tables.paths[tables.paths["blocks"] != 0]
        self._with_calls = np.unique(self._lasts(paths))
        self._with_calls = self._with_calls[tables.blocks["call"][self._with_calls] != NONE]

    def _lasts(self, paths: NDArray[np.void]) -> I8:
        """The last blocks of paths."""
        members: U4 = self._tables.members[paths["first"].astype(np.int64) + paths["blocks"] - 1]
        return members.astype(np.int64)

    def of(self, number: int) -> list[int]:
        """Those that a path may come after: they end with the call that it continues, or came right before it."""
        tables = self._tables
        path = tables.templates[number]
        if path["continues"] != NONE:
            lasts = self._with_calls
        else:
            numbers = self._before[self._behind == number]
            numbers = numbers[numbers < len(tables.paths)]
            lasts = np.unique(self._lasts(tables.paths[numbers][tables.paths["blocks"][numbers] != 0]))
        return entries(tables, path, lasts.tolist())
