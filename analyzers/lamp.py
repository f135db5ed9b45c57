"""Loop-aware memory profiling: dependences and the loops that carry them, whatever the calling context.

The baseline that the CAMP paper compares itself with (LAMP; Fig. 2a shows its profile, at all levels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.analyzers.camp import OTHERS, WANTED
from tracekit.replay.family import DependenceModule
from tracekit.replay.kernels.dependence import State, loaded, passed_by, stored, without_context
from tracekit.replay.kernels.sharing import Part


def load(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
         start: int, whole: int, mine: int) -> None:
    """It may depend on stores."""
    instruction, part = min(instruction, state.known.size - 1), Part(start, whole, mine)
    if not passed_by(state, levels, instruction, address, stream, time, 0, part):
        access = without_context(state, instruction)
        state.relations.accesses.rows[access].count += address == start
        loaded(state, WANTED, levels, instruction, access, address, size, stream, time, part)


def store(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
          start: int, whole: int, mine: int) -> None:
    """It may depend on stores and loads."""
    instruction, part = min(instruction, state.known.size - 1), Part(start, whole, mine)
    if not passed_by(state, levels, instruction, address, stream, time, 1, part):
        access = without_context(state, instruction)
        state.relations.accesses.rows[access].count += address == start
        stored(state, WANTED, levels, instruction, access, address, size, stream, time, part)


class Lamp(DependenceModule):
    """One row for each pair of instructions and kind; loops are judged without regard to who called them."""

    context = False

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those of camp, but for loads and stores."""
        return {"load": load, "store": store, **OTHERS}


MODULE = Lamp
