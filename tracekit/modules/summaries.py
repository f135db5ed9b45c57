"""How a module is analysed in segments that can join the states of stretches of the trace: ``Module.combine``.

Each segment begins with a state of its own, as if nothing had been before, with the contexts, clocks and live objects
of its place in the trace. So the pass ahead has nothing to find out but those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracekit.modules.contract import Module

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream
    from tracekit.modules.codegen import Plan

__all__ = ["Summaries"]


def counted(state: Any) -> None:
    """The pass ahead has to be told of loads and stores."""


def counted_in_context(state: Any, context: int) -> None:
    """The same where contexts are told apart."""


def counted_in_loops(state: Any, levels: Any) -> None:
    """The same where loops are followed."""


def made(state: Any, group: int) -> None:
    """And, where addresses are translated, of what objects do."""


class _PassAhead(Module):
    """Loads and stores, and what else it takes to keep contexts and live objects."""

    def __init__(self, module: Module, asked: Plan) -> None:
        super().__init__(module.program, module.options)
        self.groups_by, self.stack_objects = module.groups_by, module.stack_objects
        on_access: Callable[..., None] = counted
        if asked.services & {"context", "levels"}:
            on_access = counted_in_context if "context" in asked.services else counted_in_loops
        self._callbacks = {"load": on_access, "store": on_access}
        if asked.translates:
            self._callbacks["heap_alloc"] = made

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return self._callbacks

    def state(self) -> tuple[()]:
        return ()

    def result(self, state: Any) -> dict[str, Any]:
        """Nobody asks for it."""
        return {}


class Summaries:
    """See above; `asked`: what the module's callbacks ask for."""

    def __init__(self, module: Module, asked: Plan) -> None:
        self._module = module
        self._states: list[Any] = []
        self.keeps_objects = asked.translates
        self.pilot: Module = _PassAhead(module, asked)

    def mark(self, state: Any, streams: Sequence[int]) -> None:
        """A segment has to know nothing."""

    def begin(self, state: Any, mark: None, streams: Mapping[int, Stream]) -> Any:
        """A segment begins with the state that it was given."""
        return state

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in the state of the next segment."""
        self._states.append(state)

    def reduce(self) -> Any:
        """What the module makes of them."""
        return self._module.combine(self._states)
