"""Windows on a trace, to which an analysis is restricted (docs/cli.md, "Windows").

A window restricts the events that stand for what the program did to memory, :data:`RESTRICTED`. All others keep states
right (contexts, open loops, live objects), and pass wherever they happen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS, CODE, COLUMNS, FUNCTION_EVENTS
from tracekit.formats.reader import TraceReader
from tracekit.program.lookup import functions_named, loops_at
from tracekit.replay.kernels import window as kernels
from tracekit.replay.kernels.layouts import Columns
from tracekit.replay.selection import Batch
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.snapshots import nearest
from tracekit.replay.totals import trace_totals

if TYPE_CHECKING:
    from tracekit.program.program import Program

RESTRICTED = (*ACCESS_EVENTS, "pointer_creation", "external_call")
"""The events that pass only inside the window; any other event passes everywhere."""


def inside_only(events: Collection[str]) -> bool:
    """Whether all these events pass only inside the window."""
    return set(events) <= set(RESTRICTED)


PARTS = ("function", "loop", "thread", "from", "to")

LAST = (1 << 63) - 1


@dataclass(frozen=True)
class Position:
    """A place in the order of replay: so many loads and stores of all streams lie before it."""

    text: str
    """As the user wrote it."""
    number: Fraction
    """Loads and stores, or hundredths of all in the trace."""
    percent: bool
    """Whether it is the latter."""

    @classmethod
    def of(cls, name: str, given: str | int) -> Position:
        """Read `1000` or `12.5%`. Raises TracekitError for anything else."""
        text = str(given)
        percent = text.endswith("%")
        digits = text[:-1] if percent else text
        plain = digits.replace(".", "", 1) if percent else digits
        if not (plain.isascii() and plain.isdecimal()) or (percent and Fraction(digits) > 100) or len(digits) > 18:
            raise TracekitError(f"--{name} takes a number of accesses or a percentage of them, as 25%, not {text!r}.")
        return cls(text, Fraction(digits), percent)

    @property
    def shown(self) -> str | int:
        """As a profile shows it."""
        return self.text if self.percent else int(self.number)

    def accesses(self, total: Callable[[], int]) -> int:
        """How many loads and stores lie before it in a trace of `total`."""
        if self.percent and self.number == 100:
            return LAST  # the end is behind the accesses of heap_realloc, too, which no total counts
        return int(self.number * total() / 100) if self.percent else int(self.number)


@dataclass(frozen=True)
class Window:
    """A window as it was asked for; an event is inside if every part that was given says so."""

    function: str | None = None
    """The name of a function of which an activation is open."""
    loop: tuple[str, int] | None = None
    """The file, or the end of its path, and the line of a loop that is open."""
    thread: int | None = None
    """The number of a stream."""
    start: Position | None = None
    stop: Position | None = None
    """Behind the last event."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Window | None:
        """The window of the parts (:data:`PARTS`) that are not None; None if there are none.

        Raises TracekitError for a part that there is not, or a value that makes no sense.
        """
        parts = {name: value for name, value in given.items() if value is not None}
        unknown = sorted(parts.keys() - set(PARTS))
        if unknown:
            raise TracekitError(f"a window has the parts {', '.join(PARTS)}, not {unknown[0]!r}.")
        if not parts:
            return None
        start, stop = (Position.of(name, parts[name]) if name in parts else None for name in ("from", "to"))
        return cls(
            parts.get("function"),
            _loop_place(parts["loop"]) if "loop" in parts else None,
            _stream_number(parts["thread"]) if "thread" in parts else None,
            start,
            stop,
        )

    def as_json(self) -> dict[str, Any]:
        """What a profile says of it; only what was given."""
        parts = {
            "function": self.function,
            "loop": None if self.loop is None else f"{self.loop[0]}:{self.loop[1]}",
            "thread": self.thread,
            "from": None if self.start is None else self.start.shown,
            "to": None if self.stop is None else self.stop.shown,
        }
        return {name: value for name, value in parts.items() if value is not None}


def _loop_place(text: Any) -> tuple[str, int]:
    file, _, line = str(text).rpartition(":")
    if not (file and line.isascii() and line.isdecimal()):
        raise TracekitError(f"--loop takes a FILE:LINE, not {text!r}.")
    return file, int(line)


def _stream_number(number: Any) -> int:
    if not (str(number).isascii() and str(number).isdecimal()):
        raise TracekitError(f"--thread takes the number of a stream, not {number!r}.")
    return int(number)


@dataclass(frozen=True)
class WindowBatch(Batch):
    """What passes of a batch of n events."""

    inside: NDArray[np.uint8]
    """(n): 1 inside the window, 0 for events that only keep a state right."""


# -- the filter ------------------------------------------------------------------------------------


class WindowFilter:
    """Filters the batches of a replay by a window, and counts the loads and stores inside.

    streams: those of the trace; accesses: gives how many loads and stores it has, for percentages. Raises TracekitError
    for a function, loop or stream that the trace does not have.
    """

    def __init__(self, window: Window, program: Program, streams: Collection[int], accesses: Callable[[], int]) -> None:
        self.thread = window.thread
        if self.thread is not None and self.thread not in streams:
            shown = ", ".join(map(str, sorted(streams)[:20])) + (", ..." if len(streams) > 20 else "")
            raise TracekitError(f"The trace has no stream {self.thread}; its streams are: {shown}.")
        self.functions = None if window.function is None else functions_named(program, window.function)
        self.loops = None if window.loop is None else loops_at(program, window.loop)
        first = window.start.accesses(accesses) if window.start else 0
        last = window.stop.accesses(accesses) if window.stop else LAST
        self._place = np.array([0, first, last, 0], np.int64)
        self._open: dict[int, NDArray[np.int64]] = {}

    @property
    def events(self) -> frozenset[str]:
        """The events that it needs, beside those that it filters."""
        needed = set(ACCESS_EVENTS)
        if self.functions is not None:
            needed |= set(FUNCTION_EVENTS)
        if self.loops is not None:
            needed |= {"loop_invocation", "loop_exit"}
        return frozenset(needed)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it needs."""
        return frozenset() if self.functions is None and self.loops is None else frozenset(("subject",))

    @property
    def first(self) -> int:
        """How many loads and stores come before the window; 0 where that depends on more than their number."""
        return int(self._place[kernels.FIRST]) if self.functions is None and self.loops is None else 0

    def go_on_from(self, accesses: int) -> None:
        """Count on from so many loads and stores: the replay begins behind them."""
        self._place[kernels.ACCESSES] = accesses

    @property
    def accesses_inside(self) -> int:
        """Loads and stores inside the window so far."""
        return int(self._place[kernels.INSIDE_SO_FAR])

    def batches(self, batches: Iterable[Batch], events: Collection[str], to_end: bool) -> Iterator[WindowBatch]:
        """Of each batch the `events` that pass, maybe none; the columns are written over the replay's.

        `to_end`: whether those behind the window, which only keep a state right, are wanted, too.
        Batches stay as they are for as long as the replay's, so who keeps some counts those.
        """
        keep = np.zeros(256, np.uint8)
        for name in events:
            keep[CODE[name]] = kernels.INSIDE if name in RESTRICTED else kernels.ALWAYS
        inside = np.empty(0, np.uint8)
        for batch in batches:
            columns = batch.columns
            if inside.size < batch.kind.size:
                inside = np.empty(batch.kind.size, np.uint8)
            opened = self._open.setdefault(batch.stream, np.zeros(2, np.int64))
            here = int(self.thread is None or self.thread == batch.stream)
            rows = None if columns.wide is None else np.empty(batch.kind.size, np.uint32)
            passed = kernels.select(
                keep,
                self.functions,
                self.loops,
                opened,
                self._place,
                here,
                columns.kind,
                columns.subject,
                columns.address,
                columns.size,
                columns.value,
                inside,
                rows,
            )
            yield WindowBatch(batch.stream, _first(columns, passed, rows), inside[:passed].copy())
            if not to_end and self._place[kernels.ACCESSES] >= self._place[kernels.LAST]:
                return


def _first(columns: Columns, passed: int, rows: NDArray[np.uint32] | None) -> Columns:
    """The first `passed` rows of columns, which were moved there from `rows` (u4); wide values go with their events."""
    kept: dict[str, Any] = {
        name: column[:passed] for name in ("kind", *COLUMNS) if (column := getattr(columns, name)) is not None
    }
    if rows is not None:
        wide = columns.wide
        assert wide is not None
        there = np.isin(wide.events, rows[:passed])
        now = np.searchsorted(rows[:passed], wide.events[there])
        kept["wide"] = wide._replace(words=wide.words[there], events=now.astype(np.uint32))
    return columns._replace(**kept)


class Restriction:
    """The window of one pass over a trace, or none: then all batches pass as they are.

    given: the parts of :meth:`Window.of`. Raises TracekitError as that does, and :class:`WindowFilter`.
    """

    def __init__(self, given: Mapping[str, Any] | None, trace: TraceReader, program: Program) -> None:
        self.window = Window.of(given or {})
        self.events: frozenset[str] = frozenset()
        """The events that the replay has to deliver for it."""
        self.columns: frozenset[str] = frozenset()
        """The columns of them."""
        if self.window is not None:
            self._filter = WindowFilter(
                self.window, program, trace.streams(), lambda: trace_totals(trace, program)["accesses"]
            )
            self.events, self.columns = self._filter.events, self._filter.columns

    def batches(self, batches: Iterator[Batch], events: Collection[str], to_end: bool | None = None) -> Iterator[Batch]:
        """`batches`, or of each the `events` that the window lets pass, maybe none.

        `to_end`: whether any are wanted behind the last place that can be inside; None: if any can pass there.
        """
        if self.window is None:
            return batches
        return self._filter.batches(batches, events, not inside_only(events) if to_end is None else to_end)

    def beginning(self, trace: TraceReader, program: Program, events: Collection[str]) -> Snapshot | None:
        """Where a replay may begin if nobody but the window wants any but these `events`; None: where the trace does.

        What is not inside the window reaches no module, and nothing else does if all events are of that kind. The
        window then counts on from there.
        """
        if self.window is None or not inside_only(events):
            return None
        snapshot = nearest(trace, program, self._filter.first)
        if snapshot is not None:
            self._filter.go_on_from(snapshot.accesses)
        return snapshot

    @property
    def loop(self) -> tuple[str, int] | None:
        """File (or its end) and line of the loop that the window names, if it names one."""
        return None if self.window is None else self.window.loop

    @property
    def accesses_inside(self) -> int | None:
        """Loads and stores inside the window so far; None without one."""
        return None if self.window is None else self._filter.accesses_inside
