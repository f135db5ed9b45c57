"""Flow dependences that one loop carries, in segments of a trace: see flow_segments.py.

A segment has to know which invocations of the loop are open where it begins, and since when: the pass ahead follows the
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena, initial_pages, maps, shadow
from tracekit.containers.kernels.arena import USED
from tracekit.contexts.kernels.scopes import TICK, Scopes
from tracekit.contexts.scopes import open_scopes
from tracekit.dependence.carried import CALLBACKS
from tracekit.dependence.flow_segments import empty_front
from tracekit.dependence.kernels import carried
from tracekit.dependence.kernels.carried import KNOWN, Carried, CarriedFront
from tracekit.modules.contract import Module
from tracekit.modules.summaries import counted

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream


class LoopState(NamedTuple):
    """What the callbacks for loops change."""

    loops: NDArray[np.uint8]
    scopes: Scopes
    open: NDArray[np.int64]


class LoopAhead(Module):
    """The pass ahead."""

    def __init__(self, module: Module) -> None:
        super().__init__(module.program, module.options)
        self._module = module

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those of the loop."""
        loops = {name: callback for name, callback in CALLBACKS.items() if name.startswith("loop_")}
        return {"load": counted, "store": counted, **loops}

    def state(self) -> LoopState:
        """No invocation is open."""
        return LoopState(self._module.state().loops, open_scopes(), np.zeros(1, np.int64))

    def result(self, state: Any) -> dict[str, Any]:
        """It is no analysis by itself."""
        raise NotImplementedError


class LoopMark(NamedTuple):
    """What is open where a segment begins: copies of the arrays, as far as they are used."""

    streams: tuple[int, ...]
    scopes: NDArray[Any]
    top: NDArray[np.uint32]
    control: NDArray[np.int64]
    open: int


class CarriedSegments:
    """See above, and :class:`tracekit.modules.segments.Segments`. What is joined is one state, whatever the bound."""

    memory: int | None = None
    needs_pass = True
    beginnings: str | None = None

    def __init__(self, module: Module) -> None:
        self.pilot: Module = LoopAhead(module)
        self._whole: Carried | None = None

    def mark(self, state: LoopState, streams: Sequence[int]) -> LoopMark:
        """What is open."""
        scopes = state.scopes
        return LoopMark(
            tuple(streams),
            scopes.rows.rows[: int(scopes.rows.control[USED])].copy(),
            scopes.top[: max(streams, default=0) + 1].copy(),
            scopes.control.copy(),
            int(state.open[0]),
        )

    def begin(self, state: Carried, mark: LoopMark, streams: Mapping[int, Stream]) -> Carried:
        """A state with the invocations that are open, and without what was stored before."""
        scopes = state.scopes
        scopes.rows.rows[: len(mark.scopes)] = mark.scopes
        scopes.rows.control[USED] = len(mark.scopes)
        scopes.top[: len(mark.top)] = mark.top
        scopes.control[:] = mark.control
        state.open[0] = mark.open
        front = CarriedFront(empty_front(len(state.known) // KNOWN), mark.control[TICK : TICK + 1], mark.scopes)
        memory = initial_pages.without_history(shadow.empty("u8", per_stream=True), mark.streams, carried.OPEN)
        return state._replace(memory=memory, front=front)

    def add(self, state: Carried, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """See :class:`tracekit.modules.segments.Segments`."""
        if self._whole is None:
            self._whole = state
        else:
            carried.join(self._whole, state)
            arena.check(self._whole.memory)
            self._whole = self._whole._replace(pairs=maps.reduce([self._whole.pairs, state.pairs]))

    def reduce(self) -> Carried:
        """The state of the whole."""
        assert self._whole is not None
        return self._whole
