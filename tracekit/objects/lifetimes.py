"""The objects of a run, one by one: where each lay, who made it, and from when to when it lived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import taken
from tracekit.containers.kernels.arena import SPARE
from tracekit.objects.kernels import lifetimes as kernels
from tracekit.objects.live import live_objects, unloading

if TYPE_CHECKING:
    from tracekit.program.program import Program

EVENTS = ("load", "store", "heap_alloc", "heap_free", "global_init", "image_unload")
COLUMNS = ("subject", "address", "size")
"""What :func:`lives` has to see."""


def lives(program: Program, batches: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """Rows (LIFE of kernels/lifetimes.py) of the objects as they end, then of those that live at the end, ended -1.

    Heap blocks and global variables. `batches`: of EVENTS with COLUMNS.
    """
    live, images, clock = live_objects(program), unloading(program), np.zeros(1, np.int64)
    for batch in batches:
        out = np.empty(len(batch.kind) + len(program.globals), kernels.LIFE)
        columns = batch.kind, batch.subject, batch.address, batch.size
        count = kernels.follow(live, images, *columns, batch.stream, clock, out)
        if count:
            yield out[:count]
    rows = len(taken(live.objects))
    out = np.empty(rows, kernels.LIFE)
    yield out[: kernels.rest(live, SPARE, SPARE + rows, out)]
