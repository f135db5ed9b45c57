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
    runs, run = program.callees.runs()
    of_run, entered = program.callees.of_runs(runs)
    caller = np.append(program.blocks["function"], NONE)[np.minimum(calls["block"], len(program.blocks))]
    reads = itself
    while True:
        functions = np.zeros(len(program.functions), np.bool_)
        inside = caller[reads]
        functions[inside[inside != NONE]] = True
        enters = np.zeros(len(runs), np.bool_)
        enters[of_run[functions[entered]]] = True
        further = itself | enters[run]
        if (further == reads).all():
            return reads
        reads = further
