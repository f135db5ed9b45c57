"""Which calls may enter certain functions, at any depth, by the program's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE

if TYPE_CHECKING:
    from tracekit.program.program import Program


def functions_with(program: Program, calls: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each function whether one of the given calls (calls,) stands in it: (functions,)."""
    caller = np.append(program.blocks["function"], NONE)[np.minimum(program.calls["block"], len(program.blocks))]
    functions = np.zeros(len(program.functions), np.bool_)
    inside = caller[calls]
    functions[inside[inside != NONE]] = True
    return functions


def calls_that_reach(program: Program, functions: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each call site whether it may enter one of the functions (functions,), itself or at any depth: (calls,)."""
    reach = np.zeros(len(program.calls), np.bool_)
    if not functions.any():
        return reach
    runs, run = program.callees.runs()
    of_run, entered = program.callees.of_runs(runs)
    while True:
        enters = np.zeros(len(runs), np.bool_)
        enters[of_run[functions[entered]]] = True
        further: NDArray[np.bool_] = enters[run]
        if (further == reach).all():
            return reach
        reach = further
        functions = functions | functions_with(program, reach)
