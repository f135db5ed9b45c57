"""Which functions may read a clock: what they return, and store, may be another value each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import CallFlag
from tracekit.program.reach import calls_that_reach, functions_with

if TYPE_CHECKING:
    from tracekit.program.program import Program


def own_clock_calls(program: Program) -> NDArray[np.bool_]:
    """For each call site whether what it calls is a clock: (calls,)."""
    itself: NDArray[np.bool_] = program.calls["flags"] & int(CallFlag.CLOCK) != 0
    return itself


def clock_calls(program: Program) -> NDArray[np.bool_]:
    """For each call site whether it reads a clock, itself or in what it may enter, at any depth: (calls,)."""
    itself = own_clock_calls(program)
    return itself | calls_that_reach(program, functions_with(program, itself))
