"""How a module is analysed in segments that can join the states of stretches of the trace: ``Module.combine``.

Each segment begins with a state of its own, as if nothing had been before, with the contexts and clocks of its place in
the trace. So the pass ahead has nothing to find out but those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracekit.modules.contract import Module

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream

__all__ = ["Summaries"]


def counted(state: Any) -> None:
    """The pass ahead has to be told of loads and stores."""


def counted_in_context(state: Any, context: int) -> None:
    """The same where contexts are told apart."""


def counted_in_loops(state: Any, levels: Any) -> None:
    """The same where loops are followed."""


class _PassAhead(Module):
    """Loads and stores, and what else it takes to keep contexts."""

    def __init__(self, module: Module, on_access: Callable[..., None]) -> None:
        super().__init__(module.program, module.options)
        self._on_access = on_access

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {"load": self._on_access, "store": self._on_access}

    def state(self) -> tuple[()]:
        return ()

    def result(self, state: Any) -> dict[str, Any]:
        """Nobody asks for it."""
        return {}


class Summaries:
    """See above; `services`: what the module's callbacks ask for beside the fields of events."""

    def __init__(self, module: Module, services: frozenset[str]) -> None:
        self._module = module
        self._states: list[Any] = []
        in_context = counted_in_context if "context" in services else counted_in_loops
        self.pilot: Module = _PassAhead(module, in_context if services & {"context", "levels"} else counted)

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
