"""What feeds a module batches of events, in one replay (:class:`Runner`) or in segments (:class:`SegmentRunner`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.modules.contract import Analysis, EventBatch
from tracekit.modules.worker import Worker
from tracekit.translation.kernels.translation import Translation


class Runner(Protocol):
    """One module in one replay, with one worker or several."""

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """Event -> the columns that are read of it."""

    @property
    def workers(self) -> int:
        """How many threads may call :meth:`feed` at once, each with its own number."""

    def feed(self, batch: EventBatch, worker: int) -> None:
        """Worker number `worker` takes its share of a batch; each worker is given all batches in order.

        A batch of which a window lets nothing pass is empty.
        """

    @property
    def explained(self) -> str:
        """Where its kernel came from."""

    @property
    def module(self) -> Analysis:
        """The module."""

    def end(self) -> None:
        """Make what the result is made of; the memory that only the replay needs is free for it then."""

    merge_state: dict[str, Any] | None
    """What merging profiles needs beside the result; set by :meth:`result`."""

    def result(self) -> tuple[dict[str, Any], dict[str, int]]:
        """The profile and the facts beside it."""


class SegmentRunner(Runner, Protocol):
    """One module in one segment of the trace, or in all of them (tracekit/segments)."""

    name: str

    @property
    def worker(self) -> Worker:
        """The one worker."""

    def begin(self, batch: EventBatch) -> None:
        """Have what runs compiled for batches with such columns, if it is not, while the first of them is made."""

    def again(self) -> SegmentRunner:
        """A runner of the same module, of which nothing has run."""

    def go_on(
        self,
        state: Any,
        contexts: Contexts | None,
        levels: Mapping[int, Stream],
        clock: int,
        translation: Translation | None = None,
    ) -> None:
        """Begin with a state, contexts, levels and live objects, which it takes over, after so many accesses."""

    def take_contexts(self, other: SegmentRunner) -> None:
        """Name contexts and groups as another runner of the module does."""

    def finish(self, reduce: Callable[[], Any]) -> None:
        """Have the module's result made from what `reduce` returns."""
