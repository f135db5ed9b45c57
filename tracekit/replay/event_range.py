"""All events of a stretch of a trace, between two positions in the order of replay."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.replay.engine import Replay
from tracekit.replay.selection import COLUMNS, VALUE, Batch
from tracekit.replay.snapshots import ACCESSES, nearest
from tracekit.replay.totals import trace_totals
from tracekit.replay.window import LAST, Position


def batches_between(
    trace: TraceReader, program: Program, start: Position | None, stop: Position | None, columns: Collection[str]
) -> Iterator[Batch]:
    """The events at which `start` loads and stores, or more, lie before, and fewer than `stop`; None: no bound.

    Columns are views that the next batch overwrites; `columns`: names (replay/selection.py). Stretches that meet have
    all events of the whole.
    """
    total = trace_totals(trace, program)["accesses"]
    first = start.accesses(lambda: total) if start else 0
    last = stop.accesses(lambda: total) if stop else LAST
    snapshot = nearest(trace, program, first)
    seen = snapshot.accesses if snapshot else 0
    for batch in Replay(trace, program, columns=columns, start=snapshot).batches():
        is_access = np.isin(batch.kind, ACCESSES)
        before = seen + np.cumsum(is_access) - is_access
        seen += int(np.count_nonzero(is_access))
        begin, end = np.searchsorted(before, (first, last)).tolist()
        if begin < end:
            yield _part(batch, begin, end)
        if seen >= last:
            return


def _part(batch: Batch, begin: int, end: int) -> Batch:
    """The events from `begin` on, before `end`."""
    rows: dict[str, Any] = {
        name: column[begin:end]
        for name in ("kind", VALUE, *COLUMNS)
        if (column := getattr(batch.columns, name)) is not None
    }
    wide = batch.columns.wide
    if wide is not None:
        there = (wide.events >= begin) & (wide.events < end)
        rows["wide"] = wide._replace(words=wide.words[there], events=wide.events[there] - np.uint32(begin))
    return Batch(batch.stream, batch.columns._replace(**rows))
