"""What all streams of a process share while it is replayed: its heap, and which threads were created."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracekit.replay.kernels import heap, layouts
from tracekit.replay.snapshot import Snapshot

HEAP_ROWS = 4096
"""Rows of the table of heap objects to begin with; a power of two."""


def empty_process(streams: Iterable[int]) -> layouts.Process:
    """That of a program which has not begun, with streams of these numbers."""
    return layouts.Process(
        addresses=np.zeros(HEAP_ROWS, np.uint64),
        sizes=np.zeros(HEAP_ROWS, np.uint64),
        used=np.zeros(1, np.int64),
        created=np.zeros(max(streams, default=0) + 1, np.uint8),
    )


def with_larger_heap(process: layouts.Process) -> layouts.Process:
    """The same with a heap table of twice as many rows."""
    larger = _with_rows(process, 2 * len(process.addresses))
    heap.rehash(process, larger)
    return larger


def restored_process(empty: layouts.Process, snapshot: Snapshot) -> layouts.Process:
    """The process as a snapshot has it; `empty`: of the same streams, and its own from now on."""
    addresses, sizes = snapshot.heap
    rows = len(empty.addresses)
    while rows < 2 * (len(addresses) + 1):
        rows *= 2
    restored = _with_rows(empty, rows)
    heap.rehash(restored._replace(addresses=addresses.copy(), sizes=sizes.copy()), restored)
    restored.created[snapshot.created] = 1
    return restored


def _with_rows(process: layouts.Process, rows: int) -> layouts.Process:
    """The same with an empty heap table."""
    return process._replace(
        addresses=np.zeros(rows, np.uint64), sizes=np.zeros(rows, np.uint64), used=np.zeros(1, np.int64)
    )
