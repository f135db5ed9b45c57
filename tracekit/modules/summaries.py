"""How a module is analysed in segments that can join the states of stretches of the trace: ``Module.combine``.

Each segment begins with a state of its own, as if nothing had been before, with the contexts, clocks and live objects
of its place in the trace. So the pass ahead has nothing to find out but those, and what the module asks it to
(``Module.ahead``). Of a module that takes batches (``BatchModule.combine``) it has nothing to find out at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracekit.containers.serialization import Frozen
from tracekit.containers.spilling import Stack
from tracekit.modules.contract import BatchModule, Module

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream
    from tracekit.modules.codegen import Plan

__all__ = ["BatchSummaries", "Summaries"]


def counted(state: Any, time: int) -> None:
    """The callback of the pass ahead for loads and stores. It requests the time, so they are counted."""


def counted_in_context(state: Any, time: int, context: int) -> None:
    """`counted`, if the module uses contexts."""


def counted_in_loops(state: Any, time: int, levels: Any) -> None:
    """`counted`, if the module uses loop levels."""


def made(state: Any, group: int) -> None:
    """The callback for allocations if addresses are translated: then the pass ahead follows live objects."""


class _PassAhead(Module):
    """The pass ahead: it keeps contexts and live objects up to date, and runs the callbacks of ``Module.ahead``."""

    def __init__(self, module: Module, asked: Plan) -> None:
        super().__init__(module.program, module.options)
        self._module = module
        self._ahead = module.ahead()
        self.groups_by, self.stack_objects = module.groups_by, module.stack_objects
        on_access: Callable[..., None] = counted
        if asked.services & {"context", "levels"}:
            on_access = counted_in_context if "context" in asked.services else counted_in_loops
        self._callbacks = {"load": on_access, "store": on_access}
        if asked.translates:
            self._callbacks["heap_alloc"] = made
        self._callbacks |= self._ahead

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return self._callbacks

    def state(self) -> Any:
        return self._module.state() if self._ahead else ()

    def result(self, state: Any) -> dict[str, Any]:
        """Unused: only the state matters."""
        return {}


class Summaries:
    """Implements :class:`Segments` by ``Module.combine``; `asked`: what the module's callbacks request."""

    memory: int | None = None
    beginnings: str | None = None

    def __init__(self, module: Module, asked: Plan) -> None:
        self._module = module
        self._summaries = Stack(module.fold if module.folds else None)
        self._goes_on = bool(module.ahead())
        self.needs_pass = self._goes_on or asked.translates or asked.keeps_contexts
        self.pilot: Module = _PassAhead(module, asked)

    def mark(self, state: Any, streams: Sequence[int]) -> Frozen | None:
        """A copy of the pass ahead's state, if the module has callbacks there."""
        return Frozen(state) if self._goes_on else None

    def begin(self, state: Any, mark: Frozen | None, streams: Mapping[int, Stream]) -> Any:
        """The state as it is, or as :meth:`Module.resumed` makes it of the mark."""
        return state if mark is None else self._module.resumed(mark.thawed())

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in the summary of the next segment."""
        self._summaries.memory = self.memory
        self._summaries.push(self._module.remains(state))

    def reduce(self) -> Any:
        """What the module makes of all summaries."""
        return self._module.combine(self._summaries.all())


class _Counting(Module):
    """A pass ahead that counts loads and stores."""

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {"load": counted, "store": counted}

    def state(self) -> Any:
        return ()

    def result(self, state: Any) -> dict[str, Any]:
        """Nobody asks for it."""
        return {}


class BatchSummaries:
    """Summaries of a module that takes batches: each segment has a module of its own, whose ``found`` is the state."""

    memory: int | None = None
    beginnings: str | None = None
    needs_pass = False

    def __init__(self, module: BatchModule) -> None:
        self.pilot: Module = _Counting(module.program, module.options)
        self._summaries = Stack(None)

    def mark(self, state: Any, streams: Sequence[int]) -> None:
        """There is nothing to know."""

    def begin(self, state: Any, mark: Any, streams: Mapping[int, Stream]) -> Any:
        """A segment begins with what a module has found that was fed nothing."""
        return state

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in what the module of the next segment has found."""
        self._summaries.memory = self.memory
        self._summaries.push(state)

    def reduce(self) -> Any:
        """For ``combine``."""
        return self._summaries.all()
