"""Batches whose events have ``physical`` beside their columns (tracekit/physical)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_NAME, CODE
from tracekit.formats.reader import TraceReader
from tracekit.physical.kernels.frames import LOCATES, locate
from tracekit.physical.table import read_page_frames
from tracekit.replay.selection import Batch
from tracekit.replay.translated import TranslatedBatch, rows_of

NAME = "physical"
EVENTS = frozenset({"hand_over", "window_begin"})
"""Those that tell the time of their stream."""
COLUMNS = frozenset({"address", "size"})
"""What is needed of events."""


@dataclass(frozen=True)
class LocatedBatch(Batch):
    """Consecutive events of one stream."""

    physical: NDArray[np.int64]
    """Where its address lay physically; -1 where that is not known, or the event has none."""


@dataclass(frozen=True)
class TranslatedLocatedBatch(TranslatedBatch):
    """Consecutive events of one stream, with the objects at their addresses."""

    physical: NDArray[np.int64]
    """As of :class:`LocatedBatch`."""


class PhysicalColumn:
    """The page frames of a trace, and the batches in which events have physical addresses.

    Raises TracekitError if the trace has none.
    """

    def __init__(self, trace: TraceReader) -> None:
        known = read_page_frames(trace)
        if known is None:
            raise TracekitError(
                "The trace has no page frames, which the column physical is made of: "
                "record it with --physical, and a run that lasts until its first snapshot."
            )
        self._frames = known.state(max(trace.streams(), default=0) + 1)
        self._actions = np.zeros(256, np.uint8)
        for name, code in CODE.items():
            if name in EVENTS:
                self._actions[code] = code
            elif BY_NAME[name].address:
                self._actions[code] = LOCATES

    def batches(self, batches: Iterable[Batch], events: Collection[str]) -> Iterator[Batch]:
        """The `events` of each batch, which may be none; the new column is the batch's own, all others copies."""
        wanted = np.zeros(256, np.bool_)
        wanted[[CODE[name] for name in events]] = True
        for batch in batches:
            physical = np.empty(batch.kind.size, np.int64)
            locate(self._frames, batch.stream, self._actions, batch.kind, batch.address, batch.size, physical)
            chosen = wanted[batch.kind]
            rows: Any = rows_of(batch.columns, chosen)
            if isinstance(batch, TranslatedBatch):
                group, number, offset = batch.group[chosen], batch.object[chosen], batch.offset[chosen]
                yield TranslatedLocatedBatch(batch.stream, rows, group, number, offset, physical[chosen])
            else:
                yield LocatedBatch(batch.stream, rows, physical[chosen])
