"""What the derive kernel has to know of paths that are runs of iterations, and which of them it may fill in at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE
from tracekit.formats.image import PathFlag
from tracekit.program.validation import runs
from tracekit.replay.kernels import layouts

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = NDArray[Any]
I8 = NDArray[np.int64]


def describe(program: Program, paths: Rows, numbers: I8, blocks: Rows, steps: Rows, keep: NDArray[np.uint8]) -> None:
    """Fill in the columns ``run``, ``events`` and ``checked`` of `paths` (layouts.PATH) for the runs, `numbers`.

    A run is STEADY if it begins and ends no stack object and every term of its addresses counts a loop that is open
    then: each iteration but the first is a loop_iteration and the same accesses. Operations that nobody wants to see
    do not count.
    """
    source = program.paths[program.path_row[numbers]]
    members = program.path_blocks["block"][runs(source["first"], source["blocks"])]
    counts = blocks["last_step"][members].astype(np.int64) - blocks["first_step"][members]
    owner = np.repeat(np.repeat(np.arange(len(source)), source["blocks"]), counts)  # the run of each step
    own = steps[runs(blocks["first_step"][members], counts)]
    access = own["code"] == layouts.ACCESS
    events = np.where(access, (own["size"] != 0) * keep[own["kind"]].astype(np.int64), 0)
    events += access & (own["size"] != 0) & (own["flags"] & layouts.STEP_LOADS_TOO != 0) & bool(keep[CODE["load"]])
    for code, name in ((layouts.POINTER, "pointer_creation"), (layouts.EXTERNAL, "external_call")):
        events += (own["code"] == code) & bool(keep[CODE[name]])
    steady = np.isin(own["code"], [layouts.ACCESS, layouts.POINTER, layouts.EXTERNAL])
    steady &= own["flags"] & layouts.STEP_SAME_SIZE == 0
    loop = program.blocks["loop"][program.path_blocks["block"][source["first"]]]
    steady &= ~_counts_beside(program, own, loop[owner])
    steady |= own["code"] == layouts.UNWANTED  # a run has no words for it to pass over
    unsteady = np.bincount(owner, ~steady, len(source)) != 0
    kind = np.where(unsteady, layouts.ANY_RUN, layouts.STEADY)
    paths["run"][numbers] = np.where(source["flags"] & PathFlag.GROUND_TRUTH != 0, layouts.GROUND_TRUTH_RUN, kind)
    iterations = int(keep[CODE["loop_iteration"]])
    paths["events"][numbers] = iterations + np.bincount(owner, events, len(source)).astype(np.int64)
    checked = own["flags"] & (layouts.STEP_GLOBAL | layouts.STEP_STACK) != 0
    paths["checked"][numbers] = np.bincount(owner, checked & access, len(source)) != 0


def _counts_beside(program: Program, steps: Rows, loop: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a term of each step counts a loop that is not `loop` (that of the step) and not around it."""
    counted = program.terms["loop"][runs(steps["first_term"], steps["terms"])]
    holder = np.repeat(np.arange(len(steps)), steps["terms"])
    around = loop[holder]
    depth = program.loops["depth"]
    while len(inner := np.flatnonzero(depth[around] > depth[counted])):
        around[inner] = program.loops["parent"][around[inner]]
    beside = np.zeros(len(steps), np.bool_)
    beside[holder[around != counted]] = True
    return beside
