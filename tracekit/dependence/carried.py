"""Makes the state of kernels/carried.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tracekit.containers import maps, shadow
from tracekit.contexts.scopes import open_scopes
from tracekit.dependence.kernels import carried
from tracekit.dependence.kernels.carried import KNOWN, SOURCE_BITS, Carried
from tracekit.formats.events import OBJECT_EVENTS
from tracekit.program.lookup import one_place

if TYPE_CHECKING:
    from tracekit.program.program import Program

CALLBACKS: dict[str, Callable[..., None]] = {
    "load": carried.load,
    "store": carried.store,
    **dict.fromkeys(OBJECT_EVENTS, carried.forget),
    "loop_invocation": carried.loop_invocation,
    "loop_iteration": carried.loop_iteration,
    "loop_exit": carried.loop_exit,
}


def fits(program: Program) -> bool:
    """Whether the program has so few instructions that a word can name them."""
    return len(program.ops) + 2 < 1 << SOURCE_BITS


def carried_by(program: Program, place: tuple[str, int]) -> Carried:
    """No store yet; `place`: file (or its end) and line of the loop."""
    place = one_place(program, place)
    loops = np.zeros(max(len(program.loops), 1), np.uint8)
    for loop in range(len(program.loops)):
        shown = program.loop(loop)
        loops[loop] = (shown["file"], shown["line"]) == place
    count = len(program.ops)
    return Carried(
        shadow.empty("u8", per_stream=True),
        loops,
        open_scopes(),
        np.zeros((count + 1) * KNOWN, np.uint32),
        maps.count_map(),
        np.array([count]),
        np.zeros(1, np.int64),
    )
