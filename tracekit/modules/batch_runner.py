"""Runs a module that takes whole batches of events, or records, and brings its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.formats.events import BY_NAME
from tracekit.modules import diagnostics
from tracekit.modules.contract import BatchModule, EventBatch, RecordModule
from tracekit.modules.declarations import declared
from tracekit.modules.runner import SegmentRunner
from tracekit.modules.selected import Selected
from tracekit.modules.worker import Worker
from tracekit.replay.selection import parts_of
from tracekit.translation.kernels.translation import Translation


class WholeBatches:
    """Hands the events that a module names on to it, as whole batches."""

    def __init__(self, module: BatchModule | RecordModule, name: str) -> None:
        self.module: BatchModule | RecordModule = module
        self.name = name
        self.workers = 1 if module.events else 0  # one that asks for no event needs no replay
        self._take = module.feed_events if isinstance(module, RecordModule) else module.feed
        self._declared = np.zeros(256, np.bool_)
        self._declared[[BY_NAME[name].code for name in module.events]] = True
        self.columns = {
            name: frozenset(field.column for field in BY_NAME[name].fields if field.name in fields)
            for name, fields in declared(module).items()
        }

    def feed(self, batch: EventBatch, worker: int) -> None:
        """See :class:`Runner`."""
        with diagnostics.of_author(self.module, self.name):
            for part in parts_of(batch):
                wanted = self._declared[part.kind]  # none of an empty batch
                if wanted.any():
                    self._take(part if wanted.all() else Selected.of(part, wanted))

    def end(self) -> None:
        """See :class:`Runner`; nothing, for only the module knows."""

    def result(self) -> tuple[dict[str, Any], dict[str, int]]:
        """See :class:`Runner`."""
        with diagnostics.of_author(self.module, self.name):
            self.merge_state = self.module.merge_state()
            return self.module.result(), self.module.facts()


class BatchRunner(WholeBatches):
    """A module with kernels of its own; in segments each has a module of its own (:class:`SegmentRunner`)."""

    module: BatchModule
    explained = "brings its own kernels"

    @property
    def worker(self) -> Worker:
        """What the module has found so far is its state."""
        with diagnostics.of_author(self.module, self.name):
            return Worker(self.module.found(), None, None)

    def begin(self, batch: EventBatch) -> None:
        """See :class:`SegmentRunner`: it looks after its kernels itself."""

    def again(self) -> BatchRunner:
        """See :class:`SegmentRunner`."""
        with diagnostics.of_author(self.module, self.name):
            return BatchRunner(self.module.again(), self.name)

    def go_on(
        self,
        state: Any,
        contexts: Contexts | None,
        levels: Mapping[int, Stream],
        clock: int,
        translation: Translation | None = None,
    ) -> None:
        """See :class:`SegmentRunner`: every segment begins with nothing."""

    def take_contexts(self, other: SegmentRunner) -> None:
        """See :class:`SegmentRunner`: there are none."""

    def finish(self, reduce: Callable[[], Any]) -> None:
        """See :class:`SegmentRunner`."""
        found = reduce()
        with diagnostics.of_author(self.module, self.name):
            self.module.combine(found)


class RecordRunner(WholeBatches):
    """A module that takes records, and events only if it names some."""

    def __init__(self, module: RecordModule, name: str) -> None:
        super().__init__(module, name)
        self._take_records = module.feed

    @property
    def explained(self) -> str:
        """See :class:`Runner`."""
        return "looks at records" if self.workers else "looks at records alone, without their events"

    def feed_records(self, stream: int, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        """Hand on whole records of a stream."""
        with diagnostics.of_author(self.module, self.name):
            self._take_records(stream, ids, words)
