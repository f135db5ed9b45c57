"""Feeds a module batches of events: through its own kernels, or through the kernel made of its callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import Limited, check
from tracekit.containers.kernels.arena import LIMITED
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import DYNAMIC, NO_CALLS, STATIC, Contexts
from tracekit.contexts.rules import is_static
from tracekit.contexts.state import empty_contexts, empty_stream, with_room
from tracekit.contexts.table import ContextTable
from tracekit.formats.errors import CLAIMS_TOO_MUCH, TracekitError
from tracekit.formats.events import BY_NAME, COLUMNS
from tracekit.jit.native import Caller
from tracekit.modules import diagnostics
from tracekit.modules.address_services import given
from tracekit.modules.codegen import Plan, plan
from tracekit.modules.contract import Analysis, BatchModule, EventBatch, Module, RecordModule
from tracekit.modules.declarations import declared
from tracekit.modules.kernel_files import kernel_of
from tracekit.physical.kernels.frames import Frames
from tracekit.translation.groups import GroupTable
from tracekit.translation.kernels.translation import Translation
from tracekit.translation.translation import no_objects

COLUMN_NAMES = ("kind", *COLUMNS, "inside")


def columns_of(batch: EventBatch) -> tuple[Any, ...]:
    """kind, subject, address, size, value and inside of a batch; None for a column that nobody asked for."""
    return tuple(getattr(batch, name, None) for name in COLUMN_NAMES)


@dataclass(frozen=True)
class Selected:
    """Some rows of a batch."""

    stream: int
    kind: Any
    subject: Any
    address: Any
    size: Any
    value: Any
    inside: Any = None  # uint8: 1 inside the window that the analysis is restricted to; None without a window
    wide: Any = None
    wide_event: Any = None

    @classmethod
    def of(cls, batch: EventBatch, wanted: NDArray[np.bool_]) -> Selected:
        """The rows of `batch` that are `wanted`."""
        wide = getattr(batch, "wide", None)
        event = getattr(batch, "wide_event", None)
        if wide is not None and event is not None:
            kept = wanted[event]
            wide, event = wide[kept], (np.cumsum(wanted) - 1)[event[kept]]
        rows = (*(None if column is None else column[wanted] for column in columns_of(batch)), wide, event)
        return cls(batch.stream, *rows)


def origin(kernel: Any) -> str:
    """Whether a kernel that has run was compiled for it, and its source file."""
    return f"kernel {'compiled' if kernel.was_compiled else 'from the cache'}: {kernel.function.__code__.co_filename}"


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


def segment_runners(runners: Mapping[str, Runner]) -> dict[str, SegmentRunner]:
    """Those of a pass that work; all their modules have :meth:`Analysis.segments`."""
    return {name: each for name, each in runners.items() if isinstance(each, (CallbackRunner, BatchRunner))}


MOST_WORKERS = 8
"""More would wait for the one thread that replays; and each reserves address space for tables of its own."""


def runner(module: Analysis, name: str, threads: int) -> Runner:
    """The runner of a module where so many threads are to be busy, the replaying one among them."""
    if isinstance(module, BatchModule):
        return BatchRunner(module, name)
    if isinstance(module, RecordModule):
        return RecordRunner(module, name)
    assert isinstance(module, Module)
    workers = threads if module.compute_bound else threads - 1
    return CallbackRunner(module, name, min(max(workers, 1), MOST_WORKERS) if module.shard_by else 1)


def runners_of(modules: Mapping[str, Analysis], threads: int) -> dict[str, Runner]:
    """The runners of the modules of one pass, by name; of those with the same analysis the first one's does it."""
    made: dict[str, Runner] = {}
    of_analysis: dict[str, CallbackRunner] = {}
    for name, module in modules.items():
        first = of_analysis.get(module.analysis) if isinstance(module, Module) else None
        if first is not None and isinstance(module, Module) and _runs_alike(module, first.module):
            made[name] = AdoptingRunner(module, name, first)
            continue
        made[name] = new = runner(module, name, threads)
        if isinstance(new, CallbackRunner) and new.module.analysis:
            of_analysis.setdefault(new.module.analysis, new)
    return made


def _runs_alike(module: Module, other: Module) -> bool:
    """Is it so that both find the same? A class that inherits `analysis` may have changed what it is about."""
    kinds = (type(module), type(other))
    return (
        module.callbacks() == other.callbacks()
        and is_static(module.options) == is_static(other.options)
        and all(getattr(kinds[0], name) is getattr(kinds[1], name) for name in ("state", "reduce", "adopt"))
    )


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
        wanted = self._declared[batch.kind]  # none of an empty batch
        with diagnostics.of_author(self.module, self.name):
            if wanted.any():
                self._take(batch if wanted.all() else Selected.of(batch, wanted))

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


class Worker:
    """The state of one worker: the module's, and that of the services."""

    def __init__(
        self, state: Any, contexts: Contexts | None, translation: Translation | None, frames: Frames | None = None
    ) -> None:
        self.state = state
        self.translation = translation
        self.given = given(state, translation, frames)
        self.contexts = contexts
        self.levels: dict[int, Stream] = {}
        self.callers: dict[int, Caller] = {}
        """By stream, so that those of streams that take turns are told what changes, and no more."""
        self.clock = np.zeros(1, np.int64)
        self.arenas = list(_arenas((state, contexts, translation)))


def _arenas(state: Any) -> Iterator[Limited]:
    """Arenas, tables and shadow memories anywhere in a state."""
    if isinstance(state, tuple(LIMITED)):
        yield cast("Limited", state)
    elif isinstance(state, tuple):
        for part in state:
            yield from _arenas(part)


class CallbackRunner:
    """A module made of callbacks."""

    def __init__(self, module: Module, name: str, workers: int) -> None:
        declared(module)  # refuses fields that there are not
        self.module = module
        self.name = name
        self.workers = workers
        self.plan: Plan = plan(module)
        self.columns = self.plan.columns()
        self.kernel, self.handlers, self.ranges = kernel_of(self.plan, name)
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
        if self._run(own, self._levels(own, batch.stream, len(batch.kind)), batch, worker):
            raise TracekitError(CLAIMS_TOO_MUCH)
        check(*own.arenas)

    def _levels(self, own: Worker, stream: int, events: int) -> Stream | None:
        if own.contexts is None:
            return None
        levels = own.levels.get(stream) or empty_stream(len(own.levels), len(own.contexts.tree.rows))
        own.levels[stream] = with_room(levels, events)
        return own.levels[stream]

    def begin(self, batch: EventBatch) -> None:
        """Have the kernel compiled for batches with such columns, if it is not, while the first of them is made."""
        own = self._workers[0]
        levels = None
        if own.contexts is not None:
            levels = next(iter(own.levels.values()), None) or empty_stream(0, len(own.contexts.tree.rows))
        if self.kernel.is_native:
            self.kernel.native.begin(self._arguments(own, levels, batch, 0))

    def _arguments(self, own: Worker, levels: Stream | None, batch: EventBatch, worker: int) -> tuple[Any, ...]:
        """Those of the kernel."""
        share = (worker if self.workers > 1 else None, self.workers)
        return own.given, own.contexts, levels, own.clock, batch.stream, *columns_of(batch), *share

    def _run(self, own: Worker, levels: Stream | None, batch: EventBatch, worker: int) -> bool:
        caller = own.callers.get(batch.stream)
        if caller is None:
            caller = own.callers[batch.stream] = Caller(self.kernel)
        try:
            return bool(caller(*self._arguments(own, levels, batch, worker)))
        except Exception as error:
            if type(error).__module__.startswith("numba."):
                told = diagnostics.of_compiler(self.plan.callbacks, error)
                raise TracekitError(f"Module {self.name!r} does not compile: {told}.") from None
            raised = diagnostics.of_run(error)
            if raised is None:
                raise
            raise TracekitError(f"Module {self.name!r} failed: {raised}.") from error

    def arguments(self, stream: int, events: int) -> tuple[Any, Any, Any, Any]:
        """State, contexts, levels and clock of the one worker, with room for so many events of a stream."""
        own = self._workers[0]
        return own.given, own.contexts, self._levels(own, stream, events), own.clock

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
        return CallbackRunner(self.module, self.name, 1)

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
