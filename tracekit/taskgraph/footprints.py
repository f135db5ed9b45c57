"""Collects the working set of each step: how many bytes, in whole granules, it touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS, CODE, FIRST_PATH
from tracekit.jit.caller import Caller
from tracekit.modules.contract import EventBatch
from tracekit.program.linker import Rows
from tracekit.taskgraph.collector import ordering_events
from tracekit.taskgraph.kernels.footprints import ACCESSES, BEGINS, MOST_STREAMS, RECENT, TOUCHED, Footprints, touch


class FootprintCollector:
    """Footprints of a run's steps, in granules of `granule` bytes, a power of two; `locks`: do locks begin steps?"""

    def __init__(self, granule: int, locks: bool) -> None:
        self.granule = granule
        begins = ordering_events(locks)
        self.events = {**dict.fromkeys(ACCESS_EVENTS, ("address", "size")), **dict.fromkeys(begins, ())}
        """Name of an event -> the fields of it that are looked at."""
        kinds = np.zeros(FIRST_PATH, np.uint8)
        kinds[[CODE[name] for name in begins]] = BEGINS
        kinds[[CODE[name] for name in ACCESS_EVENTS]] = ACCESSES
        self._made = Footprints(
            arena.arena(TOUCHED, 1 << 30, spare=1, parts=3),
            hash_table([("step", "<i8")], parts=3),
            hash_table([("step", "<i8")], parts=3),
            np.zeros((RECENT, 2), np.int64),
            kinds,
        )
        self._call = Caller(touch)

    def add(self, batch: EventBatch) -> None:
        """Take events, of each stream in their order."""
        if batch.stream >= MOST_STREAMS:
            raise TracekitError(f"Footprints are those of at most {MOST_STREAMS:,} threads: leave out --footprint.")
        bits = self.granule.bit_length() - 1
        self._call(self._made, batch.stream, batch.kind, batch.address, batch.size, bits)
        arena.check(self._made.steps, self._made.now, self._made.last)

    def of_steps(self, steps: Rows) -> NDArray[np.int64]:
        """Bytes that each step touches, int64 by row of `steps` (STEP, of which row 0 is none, stream by stream)."""
        rows = self.rows()
        streams = steps["stream"][1:]
        first = np.searchsorted(rows["stream"], streams)
        place = first + np.arange(len(streams)) - np.searchsorted(streams, streams)
        bytes_ = np.zeros(len(steps), np.int64)
        there = np.flatnonzero(place < np.searchsorted(rows["stream"], streams, "right"))  # else it made no event
        bytes_[there + 1] = rows["granules"][place[there]] * self.granule
        return bytes_

    def rows(self) -> Rows:
        """TOUCHED of all steps, stream by stream in the order of their numbers."""
        table = self._made.steps
        rows = table.rows[1 : table.control[0]]
        ordered: Rows = rows[np.argsort(rows["stream"], kind="stable")]
        return ordered
