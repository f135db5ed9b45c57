"""Which functions may read a clock: what they return, and store, may be another value each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag

if TYPE_CHECKING:
    from tracekit.program.program import Program


def clock_calls(program: Program) -> NDArray[np.bool_]:
    """For each call site whether it reads a clock, itself or in what it may enter, at any depth: (calls,)."""
    calls = program.calls
    itself: NDArray[np.bool_] = calls["flags"] & int(CallFlag.CLOCK) != 0
    if not itself.any():
        return itself
    callees = program.callees
    caller = np.append(program.blocks["function"], NONE)[np.minimum(calls["block"], len(program.blocks))]
    count = callees.count.astype(np.int64)
    site = np.repeat(np.arange(len(calls)), count)
    entered = callees.functions[
        np.repeat(callees.first.astype(np.int64) - (np.cumsum(count) - count), count) + np.arange(site.size)
    ]
    reads = itself
    while True:
        functions = np.zeros(len(program.functions), np.bool_)
        inside = caller[reads]
        functions[inside[inside != NONE]] = True
        further = itself.copy()
        further[site[functions[entered]]] = True
        if (further == reads).all():
            return reads
        reads = further
