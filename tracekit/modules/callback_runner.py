"""Runs a module made of callbacks, through the kernel that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from tracekit.containers.arena import check
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import DYNAMIC, NO_CALLS, STATIC, Contexts
from tracekit.contexts.rules import is_static
from tracekit.contexts.state import empty_contexts
from tracekit.contexts.table import ContextTable
from tracekit.formats.errors import CLAIMS_TOO_MUCH, TracekitError
from tracekit.jit.caller import Caller
from tracekit.modules import diagnostics
from tracekit.modules.codegen import Plan, plan
from tracekit.modules.contract import EventBatch, Module
from tracekit.modules.declarations import declared
from tracekit.modules.kernel_files import kernel_of
from tracekit.modules.mixed import MixedFeeder
from tracekit.modules.runner import SegmentRunner
from tracekit.modules.selected import columns_of
from tracekit.modules.worker import Worker
from tracekit.physical.kernels.frames import Frames
from tracekit.replay.selection import MixedBatch
from tracekit.translation.groups import GroupTable
from tracekit.translation.kernels.translation import Translation
from tracekit.translation.translation import no_objects


def origin(kernel: Any) -> str:
    """Whether a kernel that has run was compiled for it, and its source file."""
    return f"kernel {'compiled' if kernel.was_compiled else 'from the cache'}: {kernel.function.__code__.co_filename}"


class CallbackRunner:
    """A module made of callbacks."""

    def __init__(self, module: Module, name: str, workers: int, like: CallbackRunner | None = None) -> None:
        """`like`: another runner of the module, whose kernels it takes: to find them costs as much as a short run."""
        self.module = module
        self.name = name
        self.workers = workers
        if like is None:
            declared(module)  # refuses fields that there are not
            self.plan: Plan = plan(module)
            self.columns = self.plan.columns()
            self.kernel, self.handlers, self.ranges = kernel_of(self.plan, name)
        else:
            self.plan, self.columns = like.plan, like.columns
            self.kernel, self.handlers, self.ranges = like.kernel, like.handlers, like.ranges
        self._finished: list[Any] = []
        with diagnostics.of_author(module, name):
            self._workers = [
                Worker(
                    module.state(),
                    self._contexts(),
                    self._no_objects() if self.plan.translates else None,
                    self._no_time(),
                )
                for _ in range(workers)
            ]

    def _contexts(self) -> Contexts | None:
        if not self.plan.keeps_contexts:
            return None
        rule = NO_CALLS
        if self.plan.names_contexts:
            rule = STATIC if is_static(self.module.options) else DYNAMIC
        return empty_contexts(self.module.program, rule)

    def _no_objects(self) -> Translation:
        return no_objects(self.module.program, self.module.groups_by == "caller")

    def _no_time(self) -> Frames | None:
        if not self.plan.locates:
            return None
        if self.module.page_frames is None:
            raise TracekitError(
                f"The module {self.name} asks for physical addresses, and the trace has no page frames: "
                "record it with --physical, and a run that lasts until its first snapshot."
            )
        return self.module.page_frames.state(self.module.stream_count)

    def feed(self, batch: EventBatch, worker: int) -> None:
        """See :class:`Runner`. Raises TracekitError if a callback does not compile, or fails."""
        own = self._workers[worker]
        if not len(batch.kind):
            return
        with self._blaming_callbacks():
            if isinstance(batch, MixedBatch):
                is_refused = self._feed_mixed(own, batch, worker)
            else:
                is_refused = self._run(own, batch, worker)
        if is_refused:
            raise TracekitError(CLAIMS_TOO_MUCH)
        check(*own.arenas)

    def _feed_mixed(self, own: Worker, batch: MixedBatch, worker: int) -> bool:
        if own.mixed is None:
            own.mixed = MixedFeeder(self.kernel)
        is_refused = own.mixed.feed(batch, partial(self._arguments, own, batch, worker))
        if is_refused is None:
            return any(self._run(own, part, worker) for part in batch.parts())
        return is_refused

    def _run(self, own: Worker, batch: EventBatch, worker: int) -> bool:
        caller = own.callers.get(batch.stream)
        if caller is None:
            caller = own.callers[batch.stream] = Caller(self.kernel)
        return bool(caller(*self._arguments(own, batch, worker, batch.stream, len(batch.kind))))

    @contextmanager
    def _blaming_callbacks(self) -> Iterator[None]:
        """Say of what goes wrong in the kernel which callback it is in."""
        try:
            yield
        except Exception as error:
            if type(error).__module__.startswith("numba."):
                reason = diagnostics.of_compiler(self.plan.callbacks, error)
                raise TracekitError(f"Module {self.name!r} does not compile: {reason}.") from None
            raised = diagnostics.of_run(error)
            if raised is None:
                raise
            raise TracekitError(f"Module {self.name!r} failed: {raised}.") from error

    def begin(self, batch: EventBatch) -> None:
        """Have the kernel compiled for batches with such columns, if it is not, while the first of them is made."""
        if self.kernel.is_native:
            example = self._workers[0].example()
            self.kernel.native.begin((*example, batch.stream, *columns_of(batch), *self._share(0)))

    def _arguments(self, own: Worker, batch: EventBatch, worker: int, stream: int, events: int) -> tuple[Any, ...]:
        """The kernel's, with room for so many events of a stream."""
        return *own.arguments(stream, events), stream, *columns_of(batch), *self._share(worker)

    def _share(self, worker: int) -> tuple[int | None, int]:
        """Which worker's share of memory an access belongs to, if there are several, and how many there are."""
        return worker if self.workers > 1 else None, self.workers

    def arguments(self, stream: int, events: int) -> tuple[Any, Any, Any, Any]:
        """Those of the one worker (:meth:`Worker.arguments`)."""
        return self.worker.arguments(stream, events)

    def check(self) -> None:
        """Raise TracekitError if the module has run out of memory."""
        check(*self._workers[0].arenas)

    def failure(self, error: Exception, file: str, line: int) -> Exception | None:
        """What to raise for an error from this place; None if none of the module's callbacks stands in the file."""
        callbacks = (*self.plan.callbacks.values(), *self.plan.ranges.values())
        if all(callback.__code__.co_filename != file for callback in callbacks):
            return None
        return TracekitError(f"Module {self.name!r} failed: {diagnostics.of_place(error, file, line)}.")

    @property
    def explained(self) -> str:
        """See :class:`Runner`."""
        return origin(self.kernel)

    def end(self) -> None:
        """See :class:`Runner`."""
        with diagnostics.of_author(self.module, self.name):
            self.finished()
        self._workers.clear()

    def result(self) -> tuple[dict[str, Any], dict[str, int]]:
        """See :class:`Runner`."""
        with diagnostics.of_author(self.module, self.name):
            state = self.finished()
            self.merge_state = self.module.merge_state(state)
            return self.module.result(state), self.module.facts(state)

    # -- in segments of the trace (tracekit/segments) ----------------------------------------------

    @property
    def worker(self) -> Worker:
        """The one worker."""
        return self._workers[0]

    def again(self) -> CallbackRunner:
        """A runner of the same module, of which nothing has run."""
        return CallbackRunner(self.module, self.name, 1, self)

    def go_on(
        self,
        state: Any,
        contexts: Contexts | None,
        levels: Mapping[int, Stream],
        clock: int,
        translation: Translation | None = None,
    ) -> None:
        """Begin with a state, contexts, levels and live objects, which it takes over, after so many accesses."""
        worker = Worker(state, contexts, translation)
        worker.levels.update(levels)
        worker.clock[0] = clock
        self._workers = [worker]

    def take_contexts(self, other: SegmentRunner) -> None:
        """Name contexts and groups as another runner of the module does."""
        theirs = other.worker
        self.worker.contexts, self.worker.levels = theirs.contexts, theirs.levels
        self.worker.translation = theirs.translation

    def finish(self, reduce: Callable[[], Any]) -> None:
        """Have the module's result made from what `reduce` returns."""
        self._name()
        self._finished.append(reduce())

    def _name(self) -> None:
        """Say what the numbers of contexts and groups mean."""
        first = self._workers[0]
        if first.contexts is not None:
            self.module.contexts = ContextTable(self.module.program, first.contexts, first.levels.values())
        if first.translation is not None:
            contexts = self.module.contexts.of_number if self.module.groups_by == "context" else None
            self.module.groups = GroupTable(self.module.program, first.translation, contexts)

    def finished(self) -> Any:
        """The state that the module's result is made from, made once."""
        if not self._finished:
            self._name()
            self._finished.append(self.module.reduce([worker.state for worker in self._workers]))
        return self._finished[0]


class AdoptingRunner:
    """A module whose analysis another module of the same pass runs."""

    workers = 0
    columns: Mapping[str, frozenset[str]] = {}

    def __init__(self, module: Module, name: str, source: CallbackRunner) -> None:
        self.module = module
        self.name = name
        self.source = source

    def feed(self, batch: EventBatch, worker: int) -> None:
        """See :class:`Runner`; nobody calls it, for there is no worker."""

    def end(self) -> None:
        """See :class:`Runner`; nothing, for what it takes may have to be made yet."""

    @property
    def explained(self) -> str:
        """See :class:`Runner`."""
        return f"takes what {self.source.name} found"

    def result(self) -> tuple[dict[str, Any], dict[str, int]]:
        """See :class:`Runner`."""
        with diagnostics.of_author(self.module, self.name):
            state = self.source.finished()
            if hasattr(self.source.module, "contexts"):
                self.module.contexts = self.source.module.contexts
            if hasattr(self.source.module, "groups"):
                self.module.groups = self.source.module.groups
            self.module.adopt(self.source.module)
            self.merge_state = self.module.merge_state(state)
            return self.module.result(state), self.module.facts(state)
