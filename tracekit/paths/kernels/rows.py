"""A step of a path: from one row of the table to the next, which is made where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import CELLS, cell_of, make_row, row_of
from tracekit.formats.events import NONE
from tracekit.jit.kernel import inlined, kernel
from tracekit.paths.kernels.layouts import BACK, BEGINS, CALLS, DEPTH, GOES_ON, KIND, Counted, Walked

LONGEST = 1 << 13
"""Rows on one path: no function has more, and the way up stays short in a forged trace, too."""

NO = np.uint32(NONE)


@inlined
def step(walked: Walked, counted: Counted, frame: Any, segment: Any, times: Any) -> None:
    """The top frame runs a segment, so many times in the same way."""
    rows = counted.rows.rows
    row = _row(walked, counted, np.uint64(frame.row), np.uint64(segment))
    if row == 0:  # there is no room for a longer path: a new one begins
        flush(rows, frame, frame.row)
        row = np.uint64(_beginning(counted, segment))
    found = rows[row]
    found.count += times
    if found.kind & KIND == BACK:
        flush(rows, frame, row)
    frame.row = found.next


@inlined
def begin(walked: Walked, counted: Counted, site: Any, segment: Any) -> Any:
    """The row that counts an activation, which begins with a segment; `site`: the row that its caller stands at, or 0.

    The activation's path goes on from the row's `next`.
    """
    row = np.uint64(0)
    if site != 0:
        row = _call(counted, np.uint64(site), np.uint64(segment))
    if row == 0:
        row = np.uint64(_beginning(counted, segment))
    counted.rows.rows[row].count += 1
    return row


@inlined
def flush(rows: Any, frame: Any, row: Any) -> None:
    """A path has ended: what it did beside what its blocks tell goes to the row where it ended."""
    if frame.inner != 0 or frame.loads != 0 or frame.stores != 0:
        ended = rows[row]
        ended.inner += frame.inner
        ended.loads += frame.loads
        ended.stores += frame.stores
        ended.bytes += frame.bytes
        frame.inner = 0
        frame.loads = 0
        frame.stores = 0
        frame.bytes = 0


@inlined
def _row(walked: Walked, counted: Counted, before: Any, segment: Any) -> Any:
    """The row of a segment behind row `before` (0: at the beginning); 0 if there is no room for it."""
    table = counted.rows
    key = before << np.uint64(32) | segment
    row = np.uint64(table.cells[cell_of(table.rows, table.cells, table.control[CELLS], key)])
    if row == 0:
        row = np.uint64(_make(walked, counted, before, segment))
    return row


@kernel
def _make(walked: Walked, counted: Counted, before: Any, segment: Any) -> int:
    """Make the row of a segment behind `before`, where there is none."""
    rows, control = counted.rows.rows, counted.rows.control
    if before == 0:
        return int(_beginning(counted, segment))
    if control[USED] >= counted.most[0]:
        return 0
    kind = GOES_ON
    if _is_back(walked, rows, before, segment):
        kind = BACK
    depth = (rows[before].kind >> DEPTH) + 1
    if kind == GOES_ON and depth >= LONGEST:
        return 0
    row = _new(counted, before, segment)
    rows[row].kind = kind | depth << DEPTH
    rows[row].next = row
    if kind == BACK:
        rows[row].next = _beginning(counted, segment)
    return int(row)


@inlined
def _call(counted: Counted, site: Any, segment: Any) -> Any:
    """The row of a call from row `site`; 0 if there is no room for it."""
    table = counted.rows
    key = site << np.uint64(32) | segment
    row = np.uint64(table.cells[cell_of(table.rows, table.cells, table.control[CELLS], key)])
    if row == 0 and table.control[USED] < counted.most[0]:
        row = np.uint64(_make_call(counted, site, segment))
    return row


@kernel
def _make_call(counted: Counted, site: Any, segment: Any) -> int:
    """Make the row of a call."""
    row = _new(counted, site, segment)
    counted.rows.rows[row].kind = CALLS
    counted.rows.rows[row].next = _beginning(counted, segment)
    return int(row)


@kernel
def _new(counted: Counted, before: Any, segment: Any) -> int:
    table: Any = counted.rows
    key = np.uint64(before) << np.uint64(32) | np.uint64(segment)
    cell = cell_of(table.rows, table.cells, table.control[CELLS], key)
    return int(make_row(table.rows.key, table.cells, table.control, key, cell))


@kernel
def _beginning(counted: Counted, segment: Any) -> int:
    """The row of a path that begins with a segment."""
    row = np.int64(row_of(counted.rows, segment))
    counted.rows.rows[row].kind = BEGINS
    counted.rows.rows[row].next = row
    return int(row)


@kernel
def _is_back(walked: Walked, rows: Any, before: Any, segment: Any) -> int:
    """Whether a back edge leads from row `before` to a segment: to a header of a loop that contains what stands before,
    or to what the path has had already (a loop of several entrances).
    """
    own = walked.segments[segment]
    last = walked.segments[np.uint32(rows[before].key & np.uint64(NONE))]
    target = walked.blocks[walked.members[own.first]]
    if target.header:
        loop = walked.blocks[walked.members[last.first + last.blocks - 1]].loop
        while loop != NO and loop != target.loop:
            loop = walked.parents[loop]
        if loop != NO:
            return 1
    row = np.uint64(before)
    while row != 0:
        key = rows[row].key
        other = walked.segments[np.uint32(key & np.uint64(NONE))]
        for k in range(other.first, other.first + other.blocks):
            for m in range(own.first, own.first + own.blocks):
                if walked.members[k] == walked.members[m]:
                    return 1
        row = key >> np.uint64(32)
    return 0
