"""Flow dependences alone in segments of a trace: each knows nothing of what was before it.

Where nothing was stored yet in a segment, it notes who loaded (kernels/front.py); what these loads depend on is found
when segments are joined. Two that follow each other can be joined before or after their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import arena, initial_pages, maps, shadow
from tracekit.dependence.kernels import flow
from tracekit.dependence.kernels.flow import KNOWN, Flow
from tracekit.dependence.kernels.front import FIRST_LOAD, Front
from tracekit.modules.codegen import plan
from tracekit.modules.contract import Module
from tracekit.modules.summaries import Summaries

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream

MOST_FIRST_LOADS = 1 << 30


def empty_front(instructions: int) -> Front:
    """No loads yet."""
    return Front(arena.arena(FIRST_LOAD, MOST_FIRST_LOADS, spare=1), np.zeros(instructions, np.int64))


class FlowSegments:
    """See above, and :class:`tracekit.modules.segments.Segments`. What is joined is one state, whatever the bound."""

    memory: int | None = None
    needs_pass = True
    beginnings: str | None = None

    def __init__(self, module: Module) -> None:
        self.pilot: Module = Summaries(module, plan(module)).pilot
        self._whole: Flow | None = None

    def mark(self, state: Any, streams: Sequence[int]) -> Any:
        """The streams that have begun."""
        return tuple(streams)

    def begin(self, state: Flow, mark: Any, streams: Mapping[int, Stream]) -> Flow:
        """A state without what was stored before."""
        memory = initial_pages.without_history(shadow.empty("u4", per_stream=True), mark, flow.OPEN)
        return state._replace(memory=memory, front=empty_front(len(state.known) // KNOWN))

    def add(self, state: Flow, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """See :class:`tracekit.modules.segments.Segments`."""
        if self._whole is None:
            self._whole = state
        else:
            flow.join(self._whole, state)
            arena.check(self._whole.memory)
            self._whole = self._whole._replace(pairs=maps.reduce([self._whole.pairs, state.pairs]))

    def reduce(self) -> Flow:
        """The state of the whole."""
        assert self._whole is not None
        return self._whole
