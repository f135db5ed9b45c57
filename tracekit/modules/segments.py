"""What a module has to say so that a trace is analysed in segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream
    from tracekit.modules.contract import Module

__all__ = ["Segments"]


class Segments(Protocol):
    """How one analysis goes in segments: what :meth:`Module.segments` returns.

    A pass ahead, with the callbacks of `pilot`, goes over the whole trace and stops where segments begin; there
    :meth:`mark` copies what a segment has to know. Each segment has a state of its own, of :meth:`begin`, and
    :meth:`add` takes these states in when they are over, in their order.
    """

    pilot: Module
    """The callbacks of the pass ahead; it has the options of the module."""

    memory: int | None
    """Bytes that what waits to be joined may take, the rest goes to disk; None: any number. Set before :meth:`add`."""

    needs_pass: bool
    """Whether a segment begins with more than its place in the trace and the time, so there has to be a pass ahead."""

    beginnings: str | None
    """What tells what segments begin with from what those of other analyses do: two that say the same, by code of one
    version of tracekit, have the same pass ahead and the same marks. None: what was found once is not kept."""

    def mark(self, state: Any, streams: Sequence[int]) -> Any:
        """What a segment that begins now has to know; it serves once.

        state: that of the pass ahead; `streams`: those that have begun. Nothing of what is returned may change later.
        """

    def begin(self, state: Any, mark: Any, streams: Mapping[int, Stream]) -> Any:
        """A new state of the module as it is where a segment begins; `streams`: the levels of each there."""

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in the next segment, which is over; `began`, `ended`: the levels of its streams then."""

    def reduce(self) -> Any:
        """What the module's ``reduce`` would have returned for the whole trace; its `contexts` are set."""
