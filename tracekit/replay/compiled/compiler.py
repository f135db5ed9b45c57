"""Compiles the paths that a replay takes often, in a thread beside it, and replays by them once they are there.

The first records are counted. Then the thread makes a library: the loop over records and one function for each event,
which holds the callbacks of all modules; and after it the paths, in shares, the hottest first. Each share is taken into
use when it is there. All of it is kept on disk.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracekit.counted import counted
from tracekit.formats.errors import CLAIMS_TOO_MUCH, TracekitError
from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.formats.reader import TraceReader
from tracekit.jit import cache as jit_cache
from tracekit.jit import machine_code, object_cache, raised
from tracekit.jit.cache import CHECKS_ALL_BOUNDS, CHECKS_BOUNDS
from tracekit.replay.compiled import bounds, driver_code, machine
from tracekit.replay.compiled.driver_code import Handler
from tracekit.replay.compiled.functions import Constants, NumbaFunction, count
from tracekit.replay.compiled.ingredients import ingredients
from tracekit.replay.compiled.machine import ARGUMENTS, Machine
from tracekit.replay.compiled.path_code import (
    CONSTANT_SIZES,
    PathCode,
    Wanted,
    function_name,
    handler_name,
)
from tracekit.replay.compiled.plan import Plan, Share, Shares, possible
from tracekit.replay.compiled.range_code import range_name
from tracekit.replay.compiled.sample import Predecessors, Sample
from tracekit.replay.compiled.worker import EndedError, Worker
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels.derive import derive
from tracekit.replay.kernels.seldom import ASKED, SELDOM, Step

SETTING = "TRACEKIT_COMPILE_PATHS"
"""0: never; ``always``: every path, from the first records on, waiting for the compiler (for tests)."""
ENOUGH = 1 << 20
"""Records that are counted before paths are compiled."""
PART = 32
"""... of a trace with few records, which are long runs: so many times fewer than it has."""
LONG_ENOUGH = 1 << 26
"""Work of a trace (work_of) from which on that is worth it."""
LONG_ENOUGH_TO_LOAD = 1 << 25
"""Work from which on it is worth it to load what an earlier replay has compiled."""
WORTH = 0.85
"""Share of a batch of records from which on compiled paths replay it: a record without one costs more than before."""
ENOUGH_SHARE = 0.92
"""Share from which on no more paths are looked for."""
LOOK_AT_EACH = 8
"""Of so many records one is looked at, to see how many of them have code."""
FIRST_BATCHES = 3
"""Batches of records before the thread begins: LLVM serves one thread at a time, and the kernels have to be loaded."""
ROUNDS = 4
"""Times that paths are compiled at most."""
USUAL = 7
"""Accesses for each record, on average, of programs without long runs. Where there are more, the kernels fill in runs
as fast as compiled paths call callbacks one by one (0.9 to 1.3 of the time), and more slowly than they call callbacks
for many accesses (0.02 to 0.9)."""
ACCESSES_OF_RUNS = 3
"""Accesses in runs that take the kernels as long as a usual record."""
SHARE = 0.99
"""Paths that make this share of the records that paths can make are compiled."""
TOGETHER = 48
"""Paths that are compiled, loaded and kept together."""
BUDGET = 1 << 20
"""Events that modules make room for at once."""
PAUSE = 1 << 24
"""Events of runs, and of records without code, after which a call comes back though modules need no room: a run may
claim any number of iterations, and somebody may want to end the replay."""
LARGE = 200_000
"""Bytes of bitcode of a module's function for an event from which on it is not copied for each size."""
EVENT = (np.int64(0), np.uint32(0), np.uint64(0), np.uint64(0), np.uint64(0))
"""Values like those of an event: stream, subject, address, size, value."""
MANY = (np.int64(0), np.uint32(0), *[np.int64(0)] * len(driver_code.RANGE))
"""... of many accesses of one instruction."""

Arguments = Sequence[Any]
"""Those of the derive kernel."""


class Sink(Protocol):
    """What takes events one by one: a module, alone with its state."""

    @property
    def handlers(self) -> Mapping[str, Any]:
        """Event -> kernel (state, contexts, levels, clock, stream, subject, address, size, value)."""

    @property
    def ranges(self) -> Mapping[str, Any]:
        """What it has for many accesses of one instruction (codegen.Kernels.ranges): kernels with the same first
        arguments; empty if it takes events one by one.
        """

    def arguments(self, stream: int, events: int) -> tuple[Any, Any, Any, Any]:
        """The first four of them, with room for so many events of a stream; only the third ever moves."""

    def check(self) -> None:
        """Raise TracekitError if the module has run out of memory."""

    def failure(self, error: Exception, file: str, line: int) -> Exception | None:
        """What to raise for an error that comes from this place; None if the place is not in the module's code."""


def work_of(records: int, accesses: int, *, for_runs: bool) -> int:
    """How long the kernels take for a trace of so many records and accesses, in records of a usual program.

    0 if they are faster than compiled paths. `for_runs`: all modules take many accesses of a loop at once.
    """
    many = accesses - USUAL * records
    if many > 0 and not for_runs:
        return 0
    return records + max(many, 0) // ACCESSES_OF_RUNS


def pays(work: int) -> bool:
    """Whether compiled paths may make a replay shorter, and nobody has turned them off."""
    setting = os.environ.get(SETTING, "")
    if setting in ("0", "always"):
        return setting == "always"
    return not CHECKS_BOUNDS and work >= LONG_ENOUGH_TO_LOAD


def plan_of(program: bytes, events: Collection[str]) -> Plan:
    """What is known of a program for modules that want these events; which paths can be compiled changes, too."""
    return Plan([program, _sources(), *sorted({name.encode() for name in events})])


def records_of(trace: TraceReader) -> int:
    """How many records a trace has."""
    return sum(frame.items for frame in trace.chunk_frames())


@dataclass(frozen=True)
class Library:
    """The code around paths, loaded."""

    loaded: machine_code.Loaded
    wanted: Wanted
    replay: Any


@dataclass
class Many:
    """What modules have for many accesses of one instruction: by event, and what all of them have beside it."""

    ranges: dict[int, list[Handler]]
    unordered: list[Handler]
    passed: list[Handler]
    ordered: bool
    """Whether there is a module to which the order may always matter."""

    def handlers(self) -> list[Handler]:
        """All of them."""
        return [*(handler for some in self.ranges.values() for handler in some), *self.unordered, *self.passed]


class CompiledPaths:
    """The compiled paths of one replay."""

    def __init__(self, sinks: Sequence[Sink], program: bytes, records: int, work: int | None = None) -> None:
        """`program`: what tells the program from others; `records`: those of the trace; `work`: work_of it."""
        self.sinks = sinks
        self._plan = plan_of(program, [name for sink in sinks for name in sink.handlers])
        self.waits = os.environ.get(SETTING) == "always"
        self.checks = CHECKS_ALL_BOUNDS
        """Whether the code of paths makes sure that it does not leave its tables (bounds.py)."""
        self.seconds = 0.0
        self.from_cache = 0
        self.failure: BaseException | None = None
        self.sample = Sample()
        """Records whose paths are to be compiled next."""
        self._machines: dict[int, Machine] = {}
        self._library: Library | None = None
        self._loaded: list[machine_code.Loaded] = []
        self._before: dict[int, frozenset[int]] = {}  # of each compiled path
        self._paths = np.zeros((0, 2), np.uint64)
        """By record id: the address of its path's function, 0 if there is none, and the words of the record."""
        self._is_compiled = np.zeros(1, np.uint8)  # by record id
        self._batches = 0
        self._serves: dict[int, bool] = {}  # by stream: the records at hand
        self._thread: threading.Thread | None = None
        self._worker = Worker()
        self._enough = ENOUGH if records >= LONG_ENOUGH_TO_LOAD else records // PART
        self._rounds = (
            0 if (records if work is None else work) >= LONG_ENOUGH or self._plan.shares or self.waits else ROUNDS
        )
        self._ends = False

    # -- which, and when -------------------------------------------------------------------------

    @property
    def may_compile(self) -> bool:
        """Whether the trace is long enough for what is known of the program."""
        return self._rounds < ROUNDS

    def see(self, stream: int, ids: NDArray[np.uint32]) -> bool:
        """Look at the next records of a stream; returns whether it is time to compile paths (:meth:`start`)."""
        some = ids[::LOOK_AT_EACH]
        share = self._is_compiled.take(some, mode="clip").sum() / max(len(some), 1)
        self._serves[stream] = self._library is not None and bool(share >= WORTH or self.waits)
        self._batches += 1
        kernels_are_there = self._batches > FIRST_BATCHES or self.waits
        if share >= ENOUGH_SHARE or self._rounds >= ROUNDS or self.failure is not None or not kernels_are_there:
            return False
        if self._thread is not None and self._thread.is_alive():
            return False
        self.sample.add(ids)
        return self.waits or self.sample.records >= self._enough or bool(self._recalled())

    def seen(self) -> NDArray[np.uint32]:
        """The record ids that were seen since the last start, or those that an earlier replay has compiled."""
        recalled = [number for share in self._recalled() for number, _ in share]
        return np.array(recalled, np.uint32) if recalled else self.sample.ids()

    def _recalled(self) -> Shares:
        """What an earlier replay of the program has compiled; nothing once that is done."""
        return () if self.waits or self._thread is not None else self._plan.shares

    def start(self, arguments: Arguments, stream: int, runs: NDArray[np.void], numbers: NDArray[np.int64]) -> None:
        """Begin to compile the paths that were seen and whose templates stand in the tables.

        runs: templates of those that are runs, beside `numbers`, their record ids.
        """
        sample, self.sample = self.sample, Sample()
        recalled = self._recalled()
        self._rounds += 1
        given = [sink.arguments(stream, BUDGET) for sink in self.sinks]
        tables = arguments[0]._replace(templates=arguments[0].templates.copy())  # the replay goes on making templates
        tables.templates[numbers] = runs
        arguments = (tables, *arguments[1:])
        self._worker = Worker()
        self._thread = threading.Thread(target=self._compile, args=(recalled or sample, arguments, given), daemon=True)
        self._thread.start()
        if self.waits:
            self._thread.join()
            self._serves[stream] = True
            if self.failure is not None:
                raise self.failure

    def wait(self) -> None:
        """Wait for what is being compiled, and for nothing more to be; raises what has gone wrong with it."""
        if self._thread is not None:
            self._thread.join()
        self._rounds = ROUNDS
        if self.failure is not None:
            raise self.failure

    def end(self) -> None:
        """Compile no more. What Numba is at is waited for (one function at most), LLVM is ended."""
        self._ends = True
        self._worker.end()
        if self._thread is not None:
            self._thread.join()
        self._plan.keep()

    # -- in the thread ---------------------------------------------------------------------------

    def _compile(self, what: Sample | Shares, arguments: Arguments, given: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        begun = time.thread_time()
        try:
            if self._library is None:
                library = self._make_library(arguments, given)
                self._compile_paths(library, what, arguments[0])
                self._library = library  # only now: a record without a function costs more than before
            else:
                self._compile_paths(self._library, what, arguments[0])
        except EndedError:
            pass
        except Exception as error:  # the replay goes on as it did; --explain says so
            self.failure = error
        finally:
            self._worker.end()
        self.seconds += time.thread_time() - begun + self._worker.seconds

    def _compile_paths(self, library: Library, what: Sample | Shares, tables: layouts.Tables) -> None:
        """Compile, load and take into use the hot paths of a sample, as far as they are not, or given ones."""
        head = driver_code.declared(library.wanted, [kernel.__name__ for kernel in (*SELDOM, *ASKED)])
        if not len(self._paths):
            self._paths = np.zeros((len(tables.templates), 2), np.uint64)
            self._is_compiled = np.zeros(len(tables.templates) + 1, np.uint8)
        for share in self._shares(what, tables) if isinstance(what, Sample) else possible(what, tables):
            if self._ends:
                return
            self._compile_share(library, tables, head, share)

    def _shares(self, sample: Sample, tables: layouts.Tables) -> Shares:
        """The hot paths of a sample that are not compiled, or not for all blocks that come before them."""
        predecessors = Predecessors(tables, sample)
        hot = sample.hottest(tables.templates["room"] != layouts.NEVER, 1.0 if self.waits else SHARE)
        chosen = []
        for number in hot.tolist():
            known = self._before.get(number, frozenset())
            before = known.union(predecessors.of(number))
            if before != known:
                chosen.append((number, sorted(before)))
        shares = [chosen[first : first + TOGETHER] for first in range(0, len(chosen), TOGETHER)]
        self._plan.add(shares)
        return shares

    def _compile_share(self, library: Library, tables: layouts.Tables, head: str, share: Share) -> None:
        def make() -> bytes:
            codes = [PathCode(tables, library.wanted, before, number, self.checks).text() for number, before in share]
            return self._object_of("\n\n".join([head, *codes]))

        parts = [ingredients(tables, before, number) for number, before in share]
        checked = [f"checked, {len(tables.functions)}".encode()] if self.checks else []
        code, was_kept = object_cache.kept(self._key(library.wanted, *parts, *checked), make)
        names = [function_name(number) for number, _ in share]
        symbols = {**library.loaded.functions, "functions": tables.functions.ctypes.data}
        loaded = machine_code.Loaded(code, symbols, names)
        self._loaded.append(loaded)
        numbers = [number for number, _ in share]
        self._paths[numbers, 1] = tables.templates["words"][numbers]
        self._paths[numbers, 0] = [loaded.functions[name] for name in names]
        self._is_compiled[numbers] = 1
        self._before.update((number, frozenset(before)) for number, before in share)
        self.from_cache += len(share) * was_kept

    def _make_library(self, arguments: Arguments, given: Sequence[tuple[Any, Any, Any, Any]]) -> Library:
        """The code around paths."""
        tables, stream, _, out = arguments[:4]
        handlers = self._handlers(given)
        many = self._ranges(given) if CODE["loop_iteration"] not in handlers else Many({}, [], [], ordered=False)
        large = {event for event, some in handlers.items() if sum(len(each.function.code) for each in some) > LARGE}
        wanted = Wanted(
            frozenset(handlers),
            frozenset({CODE["load"], CODE["store"]} & (handlers.keys() - large)),
            any(levels is not None for _, _, levels, _ in given),
            frozenset(many.ranges),
            many.ordered,
            bool(many.unordered),
            bool(many.passed),
        )
        constants = Constants(tuple((state, contexts, clock) for state, contexts, _, clock in given))
        places = np.cumsum([ARGUMENTS, *(count(argument) for argument in arguments)]).tolist()
        step = Step(np.uint32(0), np.uint32(0), np.uint32(0), np.uint8(0))
        example = (tables, stream, out, step, np.uint64(0), np.uint64(0))
        seldom = {kernel.__name__: self._linkable(kernel, example) for kernel in SELDOM}
        asked = {kernel.__name__: self._linkable(kernel, example) for kernel in ASKED}
        others = seldom | asked
        every = [handler for some in (*handlers.values(), many.handlers()) for handler in some]
        derived = self._linkable(derive, arguments)
        columns = {
            getattr(machine, name.upper()): getattr(out, name) is not None
            for name in ("subject", "address", "size", "value")
        }
        text = [
            driver_code.declarations(
                every, {name: (function, example) for name, function in others.items()} | {"d": (derived, arguments)}
            ),
            *(driver_code.event_function(event, some, constants, places[-1]) for event, some in handlers.items()),
            *(driver_code.sized_function(event, size) for event in sorted(wanted.sized) for size in CONSTANT_SIZES),
            *(driver_code.range_function(event, some, constants, places[-1]) for event, some in many.ranges.items()),
            driver_code.unordered_function(many.unordered, constants, places[-1]),
            driver_code.passed_function(many.passed, constants, places[-1]),
            driver_code.drain_function(wanted, columns),
            *(
                driver_code.asked_function(name, function, example[:3], (places[0], places[1], places[3]))
                for name, function in asked.items()
            ),
            *(
                driver_code.seldom_function(name, function, example[:3], (places[0], places[1], places[3]))
                for name, function in seldom.items()
            ),
            driver_code.derive_function(derived, arguments),
            "!0 = !{}",
            driver_code.REPLAY,
        ]
        names = ["replay", *others, *(handler_name(event) for event in wanted.codes), "unordered", "passed"]
        names += [range_name(event) for event in many.ranges]
        names += [handler_name(event, size) for event in wanted.sized for size in CONSTANT_SIZES]
        symbols = {**constants.addresses}
        linked = {handler.function.name: handler.function.code for handler in every}
        linked |= {function.name: function.code for function in (*others.values(), derived)}
        whole = "\n\n".join([machine_code.externals(symbols), *text])
        key = self._key(wanted, whole.encode(), *(code for _, code in sorted(linked.items())))
        code, _ = object_cache.kept(key, lambda: self._object_of(whole, linked.values(), names, bool(many.ranges)))
        loaded = machine_code.Loaded(code, symbols, names)
        return Library(loaded, wanted, machine_code.callable_at(loaded.functions["replay"]))

    def _handlers(self, given: Sequence[tuple[Any, Any, Any, Any]]) -> dict[int, list[Handler]]:
        """Event -> what modules do for it, in their order."""
        handlers: dict[int, list[Handler]] = {}
        at = 0
        for sink, arguments in zip(self.sinks, given):
            for name, kernel in sink.handlers.items():
                handlers.setdefault(CODE[name], []).append(self._handler(kernel, arguments, at, EVENT))
            at += count(arguments[2])
        return handlers

    def _ranges(self, given: Sequence[tuple[Any, Any, Any, Any]]) -> Many:
        """What modules have for many accesses, if all that want an access have it."""
        many = Many({}, [], [], ordered=False)
        one_by_one = set()
        at = 0
        for sink, arguments in zip(self.sinks, given):
            for name in ACCESS_EVENTS:
                if name in sink.ranges:
                    handler = self._handler(sink.ranges[name], arguments, at, MANY)
                    many.ranges.setdefault(CODE[name], []).append(handler)
                elif name in sink.handlers:
                    one_by_one.add(CODE[name])
            if "unordered" in sink.ranges:
                many.unordered.append(self._handler(sink.ranges["unordered"], arguments, at, ()))
            elif sink.handlers.keys() & set(ACCESS_EVENTS):
                many.ordered = True
            if "passed" in sink.ranges:
                many.passed.append(self._handler(sink.ranges["passed"], arguments, at, MANY[:1]))
            at += count(arguments[2])
        for event in one_by_one:
            many.ranges.pop(event, None)
        return many

    def _handler(
        self, kernel: Any, arguments: tuple[Any, Any, Any, Any], levels_at: int, event: Sequence[Any]
    ) -> Handler:
        """A module's kernel; `levels_at`: the leaf of all modules' where its levels begin."""
        state, contexts, levels, clock = arguments
        return Handler(self._linkable(kernel, (*arguments, *event)), state, contexts, levels, levels_at, clock, event)

    def _linkable(self, kernel: Any, arguments: Arguments) -> NumbaFunction:
        """A kernel for linking; raises EndedError if the replay has ended."""
        if self._ends:
            raise EndedError
        return NumbaFunction.of(kernel, arguments)

    def _object_of(
        self, text: str, linked: Iterable[bytes] = (), exported: Collection[str] = (), vectorizes: bool = False
    ) -> bytes:
        """Machine code; in another process unless that is waited for."""
        return (machine_code if self.waits else self._worker).object_of(text, linked, exported, vectorizes)

    def _key(self, wanted: Wanted, *parts: bytes) -> str:
        sets = (wanted.codes, wanted.sized, wanted.ranges)
        truths = (wanted.has_budget, wanted.ordered, wanted.limited, wanted.timed)
        events = repr((*map(sorted, sets), *truths)).encode()
        return object_cache.key_of([_sources(), machine_code.target(), events, *parts])

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, stream: int, arguments: Arguments) -> int | None:
        """Replay records of a stream from its cursor on; None if there is no code for that yet.

        Returns a status of the derive kernel's. Raises what a module raises, and TracekitError if it has run out of
        memory or an event's size cannot be.
        """
        library = self._library
        if library is None or not self._serves.get(stream):
            return None
        own = self._machines.setdefault(stream, Machine(stream))
        reserve = len(arguments[3].kind) + (1 << 17)
        while True:
            given = [sink.arguments(stream, BUDGET + reserve) for sink in self.sinks]
            own.describe(arguments, tuple(levels for _, _, levels, _ in given))
            own.words[machine.BUDGET] = (BUDGET if library.wanted.has_budget else PAUSE) + reserve
            status = int(library.replay(own.address, self._paths.ctypes.data, len(self._paths), reserve))
            if told := int(own.words[machine.RAISED]):
                raise self._failure(*raised.exception_at(told))
            if outside := int(own.words[machine.OUTSIDE]):
                raise bounds.error_of(outside)
            for sink in self.sinks:
                sink.check()
            if status == driver_code.BROKEN:
                raise TracekitError(CLAIMS_TOO_MUCH)
            if status != driver_code.ROOM and not (_emptied(arguments[3].wide) and status == layouts.FULL):
                return status

    def _failure(self, error: Exception, file: str, line: int) -> Exception:
        """What to raise for what one of the modules has raised."""
        failures = (sink.failure(error, file, line) for sink in self.sinks)
        return next((failure for failure in failures if failure is not None), error)

    def share(self, records: int) -> float:
        """The share of so many records that compiled paths have replayed."""
        replayed = sum(int(own.words[machine.COMPILED]) for own in self._machines.values())
        return replayed / max(records, 1)

    def explained(self, records: int) -> str:
        """How many paths were compiled, what they replayed of so many records, and what that took."""
        if self.failure is not None:
            return f"compiled paths: none, for this failed: {self.failure}"
        if self._library is None:
            return "compiled paths: none; the trace is too short"
        return (
            f"compiled paths: {counted(len(self._before), 'path')} replayed {100 * self.share(records):.1f} % of the "
            "records; "
            f"{self.seconds:.1f} s of processor time to compile them, {self.from_cache} were in the cache"
        )


def _emptied(wide: layouts.Wide | None) -> bool:
    """Take the words behind the first of wide values, which no callback asks for, away; whether there were some."""
    if wide is None or wide.filled[0] == 0:
        return False
    wide.filled[0] = 0
    return True


def _sources() -> bytes:
    """What the text of paths depends on: this package, and the layouts of the replay kernels."""
    here = Path(__file__).parent
    return "".join(jit_cache.digest(path) for path in sorted(here.glob("*.py"))).encode()
