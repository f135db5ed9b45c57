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
    """What all kinds of modules have in common: options, facts about the run, and merging.

    ``Options`` is a frozen dataclass whose fields are made by :func:`option`. Its ``__post_init__`` raises ValueError
    with one sentence if a value makes no sense.
    """

    Options: ClassVar[type[Any]] = NoOptions

    accesses: int = 0
    """Number of loads and stores in the trace, from the trace's own totals; set before the first event."""

    metadata: Mapping[str, Any] = {}
    """What the trace says of its run: command line, versions, times (SPEC.md, "META and DONE")."""

    wants_address_space: ClassVar[bool] = False
    """Whether :attr:`address_space` is read for it."""

    address_space: Sequence[Mapping[str, Any]] = ()
    """The snapshots of `record --snapshots`, each as `tracekit regions --json` prints it; known beforehand."""

    wants_hand_overs: bool = False
    """Whether :attr:`hand_overs` is read for the module. If it is, the module cannot be restricted to a window.

    A class attribute, or set by ``__init__`` if the options decide.
    """

    hand_overs: Mapping[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
    """Stream -> two int64 arrays of one length, a row for each buffer that the stream filled.

    The first holds times in nanoseconds since the start of the run, the second the number of the stream's accesses
    before each, without accesses whose size is known only at run time. Set before the first event.
    """

    page_frames: PageFrames | None = None
    """The page frames of the trace's snapshots, for modules whose callbacks ask for ``physical`` or ``frames``."""

    stream_count: int = 1
    """One more than the highest number of a stream in the trace."""

    windowed: bool = False
    """Whether the analysis is restricted to a window on the trace; set before the first event."""

    found_first: Mapping[str, Any] = {}
    """The result of :meth:`first_pass`; set before the first event, empty if there was no such pass."""

    ends_with_window: ClassVar[bool] = False
    """Whether nothing behind a window by position (`--to`) changes the profile: then the replay ends with the window.

    So it is for a module whose events beside loads, stores, pointer creations and external calls only tell what these
    mean: which object, context or iteration. A module that counts other events, lifetimes for instance, leaves it.
    """

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

    def segments(self) -> Segments | None:
        """How the analysis goes in segments of the trace (tracekit/modules/segments.py); None, as here: it does not."""
        return None

    def first_pass(self, totals: Mapping[str, int], records: int) -> type[Module] | None:
        """A module without options that goes over the whole trace before this one; None, as here: none does.

        `totals`: of the trace, ``accesses``, ``loads`` and ``stores`` among them; `records`: how many it has. The
        profile must be the same without its result (:attr:`found_first`): an analysis of a window, or of segments
        elsewhere, has none.
        """
        return None

    @classmethod
    def settled(cls, options: Any, loop: tuple[str, int] | None, count: Count) -> Any:
        """The options, with defaults that only the trace can give filled in; by default the options unchanged.

        It is called before the module is made. `loop` is the window's loop (file, line), if the window names one.
        """
        return options

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """Merge the profiles of several runs of one build with the same options (`tracekit merge`).

        Each of `profiles` is the object in a profile file: ``result``, ``options``, ``facts``, ``window`` if there is
        one, and ``evidence`` as :meth:`merge_state` gave it (arrays as lists). Returns those keys of the merged object
        that differ: ``result``, and ``facts`` and ``evidence`` if there are any. Merging has to be associative and
        commutative. :func:`tracekit.module.join_rows` joins tables. Raises CannotMergeError if the profiles cannot be
        merged.
        """
        raise CannotMergeError("it does not say how its results join")


class Module(Analysis, ABC):
    """One analysis, as callbacks on a state."""

    shard_by: str = ""
    """How several workers share the loads and stores: by ``address``, ``instruction`` or ``work``; empty: not at all.

    Each worker has its own state; :meth:`reduce` makes one of all. A worker is given its share of the loads and stores,
    and all other events. With ``address`` its share is a set of pages of 4096 bytes, and an access that crosses the
    border of a page comes in parts, page by page. With ``work`` every worker is given all loads and stores, and does a
    part of the work for each (the services ``worker`` and ``workers``).

    A class attribute, or set by ``__init__`` if the options decide.
    """

    compute_bound: bool = False
    """Whether the callbacks take much longer than replay does. If so, replay gets no processor of its own."""

    groups_by: str = "site"
    """Which objects form one group, if callbacks ask for ``group``.

    ``site``: those that one instruction allocates; ``context``: those that it allocates in one calling context;
    ``caller``: as ``site``, but a function that only hands on what it allocates (xmalloc) counts as its calls.

    A class attribute, or set by ``__init__`` if the options decide.
    """

    stack_objects: bool = False
    """Whether local variables are objects, too; if not, accesses to them are to unknown memory."""

    counts_iterations: ClassVar[bool] = True
    """Whether the module looks at iterations where it asks for ``context`` or ``levels``.

    If not, contexts and levels are followed without ``loop_iteration``: ``self.contexts`` has no numbers of iterations,
    ``levels`` no times of them, and replay does not make events of which a program has one for every few accesses.
    """

    whole_because: str = ""
    """Why this module does not analyse a trace in segments; empty: it does, if :meth:`segments` returns how.

    A class attribute, or set by ``__init__`` if the options decide.
    """

    analysis: ClassVar[str] = ""
    """A name that several modules share if one of them can run for all; empty: the module runs for itself.

    Such modules have the same callbacks and states, and their :meth:`reduce` does the same whatever the options are,
    except for the option ``contexts``, which is compared. One of them runs; the others :meth:`adopt` its result.
    """

    contexts: ContextTable
    """What the numbers in ``context`` mean; set before :meth:`result` is called."""

    groups: GroupTable
    """What the numbers in ``group`` mean; set before :meth:`reduce` is called, if a callback asks for them."""

    @abstractmethod
    def state(self) -> Any:
        """The state before the first event: a NamedTuple of arrays, maps and shadow memories."""

    def reduce(self, states: Sequence[Any]) -> Any:
        """Make one state of the states of all workers, for :meth:`result`; by default there is one worker."""
        assert len(states) == 1, f"{type(self).__name__} is sharded by {self.shard_by} and has no reduce()"
        return states[0]

    def remains(self, state: Any) -> Any:
        """The summary of a finished stretch of the trace, from its last state; by default that state.

        It holds what :meth:`fold` and :meth:`combine` need.
        """
        return state

    def fold(self, first: Any, then: Any) -> Any:
        """The summary of two consecutive stretches of the trace, from the summary of each; it may change both.

        It has to be associative. If a module has it, summaries are joined as soon as they are there; if not,
        :meth:`combine` is given all of them at the end.
        """
        raise TypeError(f"{type(self).__name__} has no fold()")

    def combine(self, states: Sequence[Any]) -> Any:
        """What :meth:`reduce` would return if one state had gone through all stretches of the trace.

        `states` are the summaries of the stretches, in order. The state of each stretch began as :meth:`state` or
        :meth:`resumed` gives it, with the contexts and the time of its place in the trace. Long traces are analysed in
        segments if a module overrides this or :meth:`fold`.
        """
        return self.reduce([functools.reduce(self.fold, states)])

    def ahead(self) -> Mapping[str, Callable[..., None]]:
        """Event -> the callback that also runs in the pass ahead of the segments, on a state of that pass.

        A segment begins with a copy of that state, which is given to :meth:`resumed`. It serves callbacks that have to
        know what happened before the segment, for instance which objects live. There must be none for loads and stores.
        By default there are none, and a segment begins with :meth:`state`.
        """
        return {}

    def resumed(self, state: Any) -> Any:
        """The state that a segment begins with, made of the state that the pass ahead has there (:meth:`ahead`)."""
        return state

    @property
    def folds(self) -> bool:
        """Whether the module overrides :meth:`fold`."""
        return type(self).fold is not Module.fold

    def segments(self) -> Segments | None:
        """How to analyse a trace in segments (tracekit/modules/segments.py); None if the module cannot."""
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
        """Event -> the function that is called for it; override it to leave out what the options do not need."""
        return {
            name: method.__func__
            for parent in reversed(type(self).__mro__)
            for name, method in vars(parent).items()
            if isinstance(method, staticmethod) and name in BY_NAME
        }

    def services(self) -> frozenset[str]:
        """The services that its callbacks ask for: parameters that are no fields of their events."""
        return frozenset(
            parameter
            for name, function in self.callbacks().items()
            for parameter in list(inspect.signature(function).parameters)[1:]
            if parameter not in {field.name for field in BY_NAME[name].fields}
        )

    def range_callbacks(self) -> dict[str, Callable[..., Any]]:
        """The callbacks ``loads``, ``stores`` and ``unordered`` (tracekit/modules/ranges.py) that the module has.

        Override it as :meth:`callbacks`.
        """
        return {
            name: method.__func__
            for parent in reversed(type(self).__mro__)
            for name, method in vars(parent).items()
            if isinstance(method, staticmethod) and name in ranges.NAMES
        }


class _Accumulating(Analysis, ABC):
    """What :class:`BatchModule` and :class:`RecordModule` have in common: the object itself keeps what it has found."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The profile, as :meth:`Module.result` gives it."""

    def facts(self) -> dict[str, int]:
        """Numbers that the text may show beside the result; they are not part of the profile."""
        return {}

    def merge_state(self) -> dict[str, Any] | None:
        """What :meth:`merge` needs beside the result, as :meth:`Module.merge_state` gives it."""
        return None


class BatchModule(_Accumulating):
    """One analysis that takes whole batches of events and has its own kernels for them."""

    events: ClassVar[Mapping[str, tuple[str, ...]]]
    """Name of an event -> the fields of it that the module reads; no other event is fed."""

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """See :meth:`Analysis.accesses_suffice`."""
        return cls.events.keys() <= set(ACCESS_EVENTS) and not any("value" in fields for fields in cls.events.values())

    @abstractmethod
    def feed(self, batch: EventBatch) -> None:
        """Take the declared events of one batch."""

    def found(self) -> Any:
        """What is known of the batches so far, for :meth:`combine`: arrays, and tuples, lists and dicts of those."""
        raise TypeError(f"{type(self).__name__} has no found()")

    def combine(self, found: Sequence[Any]) -> None:
        """Know from now on what a module would that was fed whole stretches of the trace, of which others have
        `found` that, in the order of the stretches; this one was fed nothing.

        Each of those was new where its stretch began. Long traces are analysed in segments if a module overrides this
        and :meth:`found`.
        """
        raise TypeError(f"{type(self).__name__} has no combine()")

    def segments(self) -> Segments | None:
        """See :meth:`Analysis.segments`."""
        from tracekit.modules.summaries import BatchSummaries

        return None if type(self).combine is BatchModule.combine else BatchSummaries(self)

    def again(self) -> BatchModule:
        """A module that knows the same of the run beforehand, and was fed nothing."""
        made = type(self)(self.program, self.options)
        vars(made).update({name: known for name, known in vars(self).items() if name in Analysis.__annotations__})
        return made


class RecordModule(_Accumulating):
    """One analysis that takes the records of a trace as they were recorded (formats/SPEC.md), without replay.

    It suits analyses of blocks and paths. The trace is replayed for it only if it names `events`. It cannot be
    restricted to a window.
    """

    @property
    def events(self) -> Mapping[str, tuple[str, ...]]:
        """Events that it wants besides the records, as :attr:`BatchModule.events`; :meth:`feed_events` takes them."""
        return {}

    def feed_events(self, batch: EventBatch) -> None:
        """Take the events of one batch. Records and events come in separate passes, in either order."""

    @abstractmethod
    def feed(self, stream: int, ids: npt.NDArray[np.uint32], words: npt.NDArray[np.uint64]) -> None:
        """Take whole records: the id of each, (n) u4, and the words of all of them one after another, u8.

        Streams come one after another, by ascending number, and the records of a stream in order. The next call
        overwrites the arrays.
        """


class Preset(Analysis, ABC):
    """Several modules under one name; the profile is a list of theirs."""

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """Its modules are asked."""
        return True

    @abstractmethod
    def modules(self) -> Mapping[str, Any]:
        """Name of a module -> an instance of its Options."""
