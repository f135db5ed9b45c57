"""Loop-aware memory profiling: dependences and the loops that carry them, whatever the calling context.

The baseline that the CAMP paper compares itself with (LAMP; Fig. 2a shows its profile, at all levels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.analyzers.camp import DETAIL, OTHERS, iterations
from tracekit.dependence.kernels.dependence import Access, State, load_access, store_access
from tracekit.dependence.kernels.loop_accesses import Steps, load_range, store_range
from tracekit.dependence.kernels.sharding import Part
from tracekit.module import Display
from tracekit.verdicts.module import DependenceModule


def load(
    state: State,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """It may depend on stores."""
    access = Access(instruction, address, size, stream, time)
    load_access(state, DETAIL, levels, None, access, Part(start, whole, mine))


def store(
    state: State,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """It may depend on stores and loads."""
    access = Access(instruction, address, size, stream, time)
    store_access(state, DETAIL, levels, None, access, Part(start, whole, mine))


def loads(
    state: State,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
) -> None:
    """Loads of a loop."""
    access = Access(instruction, address, size, stream, time)
    load_range(state, DETAIL, levels, None, access, Steps(step, count, period))


def stores(
    state: State,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
) -> None:
    """Stores of a loop."""
    access = Access(instruction, address, size, stream, time)
    store_range(state, DETAIL, levels, None, access, Steps(step, count, period))


class Lamp(DependenceModule):
    """One row for each pair of instructions and kind; loops are judged without regard to who called them."""

    context = False
    detail = DETAIL

    def own_callbacks(self) -> dict[str, Callable[..., None]]:
        """Those of camp, but for loads and stores."""
        return {"load": load, "store": store, **OTHERS}

    def own_range_callbacks(self) -> dict[str, Callable[..., None]]:
        """For those of a loop."""
        return {"loads": loads, "stores": stores, "iterations": iterations}


DISPLAY = Display(
    text="tracekit.render.dependence:dependence_text",
    notes="loops",
    rank=-2,
    columns={
        "dependences": (
            "kind source:instruction destination:instruction source_context destination_context levels count"
        ),
        "loops": (
            "loop:loop context invocations iterations accesses carried.raw carried.war carried.waw "
            "verdict recipe blocked_by rests_on not_taken"
        ),
    },
)
MODULE = Lamp
