"""The contract of an analysis module.

A module is one file, in ``analyzers/`` or in a package that names it in the entry-point group ``tracekit.modules``,
with a subclass of :class:`Module` under the name ``MODULE``. A static method named for an event is a *callback*: it is
called for each such event, and the names of its parameters say which fields of the event it wants. That is the whole
declaration (PROMPT, Listing 1); what no callback asks for is not computed. The first parameter is the module's state.

    class Loads(Module):
        def state(self) -> State:
            return State(count=np.zeros(len(self.program.ops), np.int64))

        @staticmethod
        def load(state: State, instruction: int) -> None:
            state.count[instruction] += 1

        def result(self, state: State) -> dict[str, Any]:
            return {"loads": int(state.count.sum())}

    MODULE = Loads

Callbacks are compiled: they take and keep integers and arrays, and make no object. Every field reaches them as an
int64. Besides the fields of its event (``tracekit modules --events``) a callback may ask for :data:`SERVICES`. For many
accesses of one instruction at once there may be callbacks beside ``load`` and ``store``: ranges.py.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS, BY_NAME
from tracekit.jit.kernel import kernel
from tracekit.jit.kernel import uncached as inlined
from tracekit.modules import ranges
from tracekit.modules.options import NoOptions, option
from tracekit.modules.services import MORE_THAN_ACCESSES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tracekit.contexts.table import ContextTable
    from tracekit.modules.segments import Segments
    from tracekit.physical.table import PageFrames
    from tracekit.program.program import Program
    from tracekit.translation.groups import GroupTable

__all__ = [
    "Analysis",
    "BatchModule",
    "CannotMergeError",
    "EventBatch",
    "Module",
    "NoOptions",
    "Preset",
    "RecordModule",
    "inlined",
    "kernel",
    "option",
]


class EventBatch(Protocol):
    """Consecutive events of one stream as columns of one length; the next batch may overwrite them.

    A column that no module asked for is None.
    """

    @property
    def stream(self) -> int:
        """Number of the stream."""

    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        """Code of each event."""

    @property
    def subject(self) -> npt.NDArray[np.uint32]:
        """Its instruction, function, loop or object."""

    @property
    def address(self) -> npt.NDArray[np.uint64]:
        """Its address."""

    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Its size, or what the event table says."""

    @property
    def value(self) -> npt.NDArray[np.uint64]:
        """The first eight bytes that a load or store moved, zeros behind; 0 where ``program.valued`` is false."""

    @property
    def wide(self) -> npt.NDArray[np.uint64]:
        """The further words of values of more than eight bytes, there if ``value`` is."""

    @property
    def wide_event(self) -> npt.NDArray[np.uint32]:
        """Beside ``wide``: the row of the event that the word belongs to."""


class CannotMergeError(TracekitError):
    """Raised by :meth:`Analysis.merge`: the profiles cannot be merged.

    `reason` is the end of a sentence that begins "Profiles of the module NAME cannot be merged: "; whoever knows the
    module's name (its class does not) makes it with :meth:`about`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"Profiles of this module cannot be merged: {reason}.")
        self.reason = reason

    def about(self, module: str) -> TracekitError:
        """The error to show, which names the module."""
        return TracekitError(f"Profiles of the module {module} cannot be merged: {self.reason}.")


Count = Callable[[type["Module"]], Any]
"""Runs a module without options over the trace, in a pass of its own, and returns its result."""


class Analysis:
    """What :class:`Module` and :class:`BatchModule` have in common: options and text.

    Options: a frozen dataclass whose fields are made by :func:`option`; its ``__post_init__`` raises ValueError, with a
    sentence, for a value that makes no sense.
    """

    Options: ClassVar[type[Any]] = NoOptions

    accesses: int = 0
    """Loads and stores in the trace, by its own totals; known before the first event."""

    metadata: Mapping[str, Any] = {}
    """What the trace says of its run: command line, versions, times (SPEC.md, "META and DONE")."""

    wants_address_space: ClassVar[bool] = False
    """Whether :attr:`address_space` is read for it."""

    address_space: Sequence[Mapping[str, Any]] = ()
    """The snapshots of `record --snapshots`, each as `tracekit regions --json` prints it; known beforehand."""

    wants_hand_overs: bool = False
    """Whether :attr:`hand_overs` is read for it; the class's, or set by ``__init__`` where options decide. It is not
    analysed inside a window then.
    """

    hand_overs: Mapping[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
    """By stream that filled a buffer: times in nanoseconds since the start, and the stream's accesses before each, but
    those of operations whose size the run decides; known before the first event.
    """

    page_frames: PageFrames | None = None
    """The page frames of the trace's snapshots, for modules whose callbacks ask for ``physical`` or ``frames``."""

    stream_count: int = 1
    """One more than the highest number of a stream in the trace."""

    windowed: bool = False
    """Whether the analysis is restricted to a window on the trace; set before the first event."""

    merges_with_program: ClassVar[bool] = False
    """Whether :meth:`merge` needs the program; then profile files carry its image tables."""

    def __init__(self, program: Program, options: Any) -> None:
        self.program = program
        self.options = options

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """Whether loads and stores without values make a profile: then the module takes imported traces, too.

        Here: if the module declares nothing else. Override it where the module does without what else it declares.
        """
        return False

    @classmethod
    def settled(cls, options: Any, loop: tuple[str, int] | None, count: Count) -> Any:
        """The options with what the trace alone can say put in, before the module is made; here, as they are.

        `loop` is that of the window, if it names one.
        """
        return options

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """What the profiles of several runs of one build, with the same options, come to: `tracekit merge`.

        Each of `profiles` is a profile file's object: ``result``, ``options``, ``facts``, ``window`` if there is one,
        and ``evidence`` as :meth:`merge_state` gave it (arrays as lists). Returns the keys of the merged
        one that differ: ``result``, and ``facts`` and ``evidence`` where there are any. Merging is associative and
        commutative.
        :func:`tracekit.module.join_rows` joins tables. Raises CannotMergeError where it makes no sense.
        """
        raise CannotMergeError("it does not say how its results join")


class Module(Analysis, ABC):
    """One analysis, as callbacks on a state."""

    shard_by: str = ""
    """How several workers may share the loads and stores: by ``address``, by ``instruction``, or not at all.

    By ``work`` each worker is given all of them and does a part of what is to be done with each (the services worker,
    workers).

    The class's, or set by ``__init__`` where options decide.

    Each worker has a state of its own and is given every other event; :meth:`reduce` makes them one. By address, a
    worker has pages of 4096 bytes; with several workers an access across their borders comes in parts, page by page.
    """

    compute_bound: bool = False
    """Whether callbacks take much longer than replaying the trace: then replay does without a processor of its own."""

    groups_by: str = "site"
    """What makes one group, where callbacks ask for ``group``: a program point (``site``), one in its calling context
    (``context``), or, of a function that hands on what it allocates, the call of it (``caller``). The class's, or set
    by ``__init__`` where options decide.
    """

    stack_objects: bool = False
    """Whether local variables are objects, too; else they are unknown memory."""

    whole_because: str = ""
    """Why a trace is not analysed in segments by this module, or with its options; empty: it is, if it can be. The
    class's, or set by ``__init__``.
    """

    analysis: ClassVar[str] = ""
    """Modules of one pass with the same name here, and none is empty, have the same callbacks and states, and
    :meth:`reduce` does the same whatever their options (but for ``contexts``, which is compared): one of them runs, and
    the others :meth:`adopt` what it found.
    """

    contexts: ContextTable
    """What the numbers in ``context`` mean; set before :meth:`result` is called."""

    groups: GroupTable
    """What the numbers in ``group`` mean; set before :meth:`reduce` is called, if a callback asks for them."""

    @abstractmethod
    def state(self) -> Any:
        """The state before the first event: a NamedTuple of arrays, maps and shadow memories."""

    def reduce(self, states: Sequence[Any]) -> Any:
        """What :meth:`result` is given: the state of the one worker, or what those of several come to."""
        assert len(states) == 1, f"{type(self).__name__} is sharded by {self.shard_by} and has no reduce()"
        return states[0]

    def remains(self, state: Any) -> Any:
        """What is needed of the state of a stretch of the trace that is over: for :meth:`fold` and :meth:`combine`."""
        return state

    def fold(self, first: Any, then: Any) -> Any:
        """The summary of two stretches of which one follows the other, of theirs, which it may change: associative.

        With it the summaries of a long trace are joined as they come. Without, :meth:`combine` is given all of them.
        """
        raise TypeError(f"{type(self).__name__} has no fold()")

    def combine(self, states: Sequence[Any]) -> Any:
        """What :meth:`reduce` would return had one state gone on through stretches of the trace that have these.

        They are summaries, in the order of the stretches. Each state began as :meth:`state`, or :meth:`resumed`, gives
        it, with the contexts and the time of its place. Long traces are analysed in segments if a module overrides this
        or :meth:`fold`.
        """
        return self.reduce([functools.reduce(self.fold, states)])

    def ahead(self) -> Mapping[str, Callable[..., None]]:
        """The callbacks of a module with :meth:`combine` that the pass ahead of the segments runs, too, on a state of
        its own: a segment begins with a copy of that state, given to :meth:`resumed`. None for loads and stores.

        For what a callback has to know of all that was before, as which objects live. Here none: a segment begins with
        :meth:`state`.
        """
        return {}

    def resumed(self, state: Any) -> Any:
        """The state that a segment begins with, made of what the pass ahead knows there (:meth:`ahead`)."""
        return state

    @property
    def folds(self) -> bool:
        """Whether it has :meth:`fold`."""
        return type(self).fold is not Module.fold

    def segments(self) -> Segments | None:
        """How the analysis goes in segments of the trace (tracekit/modules/segments.py); None: it does not."""
        from tracekit.modules.codegen import plan
        from tracekit.modules.summaries import Summaries

        if self.whole_because or (type(self).combine is Module.combine and not self.folds):
            return None
        return Summaries(self, plan(self))

    @abstractmethod
    def result(self, state: Any) -> dict[str, Any]:
        """The profile: JSON values, keys and rows in an order that depends on the trace alone."""

    def adopt(self, other: Module) -> None:
        """Take from a module of the same ``analysis`` what its :meth:`reduce` left in it, beside what it returned."""

    def facts(self, state: Any) -> dict[str, int]:
        """Numbers that the text may show beside the result; they are not part of the profile."""
        return {}

    def merge_state(self, state: Any) -> dict[str, Any] | None:
        """What :meth:`merge` needs beside the result: JSON values or arrays, kept in profile files alone."""
        return None

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """See :meth:`Analysis.accesses_suffice`."""
        declared_here = {
            name: set(list(inspect.signature(member.__func__).parameters)[1:])
            for parent in reversed(cls.__mro__)
            for name, member in vars(parent).items()
            if isinstance(member, staticmethod) and name in BY_NAME
        }
        return (
            bool(declared_here)
            and declared_here.keys() <= set(ACCESS_EVENTS)
            and not any(MORE_THAN_ACCESSES & wanted for wanted in declared_here.values())
        )

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Event -> the function called for it; override to leave out what the options make superfluous."""
        return {
            name: method.__func__
            for parent in reversed(type(self).__mro__)
            for name, method in vars(parent).items()
            if isinstance(method, staticmethod) and name in BY_NAME
        }

    def services(self) -> frozenset[str]:
        """What its callbacks ask for besides the fields of their events."""
        return frozenset(
            parameter
            for name, function in self.callbacks().items()
            for parameter in list(inspect.signature(function).parameters)[1:]
            if parameter not in {field.name for field in BY_NAME[name].fields}
        )

    def range_callbacks(self) -> dict[str, Callable[..., Any]]:
        """``loads``, ``stores`` and ``unordered`` (tracekit/modules/ranges.py), those that there are; override like
        :meth:`callbacks`.
        """
        return {
            name: method.__func__
            for parent in reversed(type(self).__mro__)
            for name, method in vars(parent).items()
            if isinstance(method, staticmethod) and name in ranges.NAMES
        }


class BatchModule(Analysis, ABC):
    """One analysis that takes whole batches of events, for those that bring kernels of their own."""

    events: ClassVar[Mapping[str, tuple[str, ...]]]
    """Name of an event -> the fields of it that the module reads; no other event is fed."""

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """See :meth:`Analysis.accesses_suffice`."""
        return cls.events.keys() <= set(ACCESS_EVENTS) and not any("value" in fields for fields in cls.events.values())

    @abstractmethod
    def feed(self, batch: EventBatch) -> None:
        """Take the declared events of one batch."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The profile, as :meth:`Module.result` gives it."""

    def facts(self) -> dict[str, int]:
        """Numbers that the text may show beside the result; they are not part of the profile."""
        return {}

    def merge_state(self) -> dict[str, Any] | None:
        """What :meth:`merge` needs beside the result, as :meth:`Module.merge_state` gives it."""
        return None


class RecordModule(Analysis, ABC):
    """One analysis that takes the records of a trace as they were recorded (formats/SPEC.md), without their events.

    It is for what blocks and paths alone tell: nothing is replayed for it, unless it names `events`. There is no window
    on records.
    """

    @property
    def events(self) -> Mapping[str, tuple[str, ...]]:
        """Events that it wants beside the records, as :attr:`BatchModule.events`; :meth:`feed_events` is fed those."""
        return {}

    def feed_events(self, batch: EventBatch) -> None:
        """Take the events of one batch; records and events come in passes of their own, in either order."""

    @abstractmethod
    def feed(self, stream: int, ids: npt.NDArray[np.uint32], words: npt.NDArray[np.uint64]) -> None:
        """Take whole records: their ids, and the words of all of them. Those of one stream come in their order, and
        streams one after another, by their numbers. The next call overwrites the arrays.
        """

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The profile, as :meth:`Module.result` gives it."""

    def facts(self) -> dict[str, int]:
        """Numbers that the text may show beside the result; they are not part of the profile."""
        return {}

    def merge_state(self) -> dict[str, Any] | None:
        """What :meth:`merge` needs beside the result, as :meth:`Module.merge_state` gives it."""
        return None


class Preset(Analysis, ABC):
    """Several modules under one name; the profile is a list of theirs."""

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """Its modules are asked."""
        return True

    @abstractmethod
    def modules(self) -> Mapping[str, Any]:
        """Name of a module -> an instance of its Options."""
