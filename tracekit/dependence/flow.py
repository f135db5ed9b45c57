"""Makes the state of kernels/flow.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import maps, shadow
from tracekit.dependence.kernels import flow
from tracekit.dependence.kernels.flow import KNOWN, Flow
from tracekit.formats.events import OBJECT_EVENTS

if TYPE_CHECKING:
    from tracekit.program.program import Program

NARROW = 1 << 16
"""With fewer instructions than this a row of flow dependences has two bytes, else four."""

CALLBACKS: dict[str, Callable[..., None]] = {
    "load": flow.load,
    "store": flow.store,
    **dict.fromkeys(OBJECT_EVENTS, flow.forget),
}
RANGE_CALLBACKS: dict[str, Callable[..., Any]] = {"loads": flow.loads, "stores": flow.stores}


def empty_flow(program: Program) -> Flow:
    """The state before the first store; cells of two bytes where the program has few enough instructions."""
    instructions = len(program.ops) + 1
    row = "u2" if instructions < NARROW else "u4"
    known = np.zeros(instructions * KNOWN, np.uint32)
    return Flow(shadow.empty(row, per_stream=True), known, maps.count_map())
