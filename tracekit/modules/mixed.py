"""Feeds a module's kernel mixed batches, of several streams that take turns, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracekit.jit.call_table import CallTable
from tracekit.jit.caller import Caller
from tracekit.jit.native import raise_problem
from tracekit.modules.selected import COLUMN_NAMES, columns_of
from tracekit.replay.kernels.turns import END, REFUSED, STREAM, feed_turns
from tracekit.replay.selection import MixedBatch


class MixedFeeder:
    """The calls of one worker's kernel, with arguments of their own for each stream."""

    def __init__(self, kernel: Any) -> None:
        self._calls = CallTable(kernel)
        self._rows: dict[int, int] = {}
        self._feed = Caller(feed_turns)

    def feed(self, batch: MixedBatch, arguments: Callable[[int, int], tuple[Any, ...]]) -> bool | None:
        """Run the kernel on all turns. Returns whether a call has returned True; None if only Numba can call it.

        `arguments`: those of the kernel, from a stream and how many of the events are its; the columns of the batch
        (`columns_of`) come one after another, before the last two. Raises what the kernel raises.
        """
        numbers, turn_of = np.unique(batch.turns[:, STREAM], return_inverse=True)
        lengths = np.diff(batch.turns[:, END], prepend=0)
        events = np.bincount(turn_of, lengths).astype(np.int64)
        rows = np.array([self._rows.setdefault(number, len(self._rows)) for number in numbers.tolist()], np.int64)
        for row, number, count in zip(rows.tolist(), numbers.tolist(), events.tolist()):
            if not self._calls.set(row, *arguments(number, count)):
                return None
        first = len(self._calls.places) - 1 - 2 - len(COLUMN_NAMES)
        columns = [
            (self._calls.places[first + number], column.itemsize, column.ctypes.data)
            for number, column in enumerate(columns_of(batch))
            if column is not None
        ]
        ends = np.ascontiguousarray(batch.turns[:, END])
        calls = self._calls
        status = self._feed(
            calls.codes, calls.words, calls.results, rows[turn_of], ends, np.array(columns, np.int64).reshape(-1, 3)
        )
        if status not in (0, REFUSED):
            raise_problem(status)
        return bool(status == REFUSED)
