"""The protocol of an analysis in segments: what a module has to provide so that a trace can be cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tracekit.contexts.kernels.streams import Stream
    from tracekit.modules.contract import Module

__all__ = ["Segments"]


class Segments(Protocol):
    """How a module is analysed in segments: what :meth:`Module.segments` returns.

    A pass ahead runs the callbacks of `pilot` over the whole trace. Where a segment begins it stops, and :meth:`mark`
    copies what the segment has to know. :meth:`begin` makes the state of each segment. When segments are finished,
    :meth:`add` takes their states in, in the order of the trace.
    """

    pilot: Module
    """The callbacks of the pass ahead, one of which asks for the `time`; it has the options of the module."""

    memory: int | None
    """Bytes in memory for states that wait to be joined, the rest is on disk; None: no limit. Set before `add`."""

    needs_pass: bool
    """Whether there has to be a pass ahead: a segment needs more than its place in the trace and the time."""

    beginnings: str | None
    """A key for marks in the user's cache; None: they are not kept.

    Analyses of one version of tracekit that have the same key have the same pass ahead and the same marks.
    """

    def mark(self, state: Any, streams: Sequence[int]) -> Any:
        """Copy what a segment that begins now has to know.

        `state` is that of the pass ahead, `streams` are the streams that have begun. The result is used once, and must
        not change later.
        """

    def begin(self, state: Any, mark: Any, streams: Mapping[int, Stream]) -> Any:
        """Make the state that a segment begins with; `streams`: the open levels of each stream there."""

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in the state of the next finished segment; `began`, `ended`: the levels of its streams at both ends."""

    def reduce(self) -> Any:
        """What the module's ``reduce`` would have returned for the whole trace; its `contexts` are set."""
