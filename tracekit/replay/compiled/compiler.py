"""Compiles the paths that a replay takes often, in a thread beside it, and replays by them once they are there.

The first records are counted. Then the thread makes a library: the loop over records and one function for each event,
which holds the callbacks of all modules; and after it the paths, in shares, the hottest first. Each share is taken into
use when it is there. All of it is kept on disk.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.counted import counted
from tracekit.formats.errors import CLAIMS_TOO_MUCH, TracekitError
from tracekit.jit import exceptions, machine_code, object_cache
from tracekit.jit.cache import CHECKS_ALL_BOUNDS
from tracekit.jit.worker import EndedError, Worker
from tracekit.replay.compiled import bounds, driver_code, machine
from tracekit.replay.compiled.cache_key import path_key
from tracekit.replay.compiled.cost_model import LONG_ENOUGH, LONG_ENOUGH_TO_LOAD, SETTING, WORK_OF_PATH
from tracekit.replay.compiled.functions import NumbaFunction
from tracekit.replay.compiled.hot_paths import SHARE, Predecessors, Sample
from tracekit.replay.compiled.library import Arguments, Library, LibraryMaker, Sink, key_of, sources
from tracekit.replay.compiled.machine import Machine
from tracekit.replay.compiled.path_code import (
    PathCode,
    function_name,
)
from tracekit.replay.compiled.plan import Plan, Share, Shares, possible
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels.slow_paths import PREDICATES, SLOW_PATHS

ENOUGH = 1 << 20
"""Records that are counted before paths are compiled."""
PART = 32
"""... of a trace with few records, which are long runs: so many times fewer than it has."""
WORTH = 0.85
"""Share of a batch of records from which on compiled paths replay it: a record without one costs more than before."""
ENOUGH_SHARE = 0.92
"""Share from which on no more paths are looked for."""
LOOK_AT_EACH = 8
"""Of so many records one is looked at, to see how many of them have code."""
FIRST_BATCHES = 3
"""Batches of records before the thread begins: LLVM serves one thread at a time, and the kernels have to be loaded."""
LOOK_FOR_PLAN = 16
"""Of so many batches of records, before one of them a replay that follows another looks what that has compiled."""
ROUNDS = 4
"""Times that paths are compiled at most."""
TOGETHER = 48
"""Paths that are compiled, loaded and kept together."""
BUDGET = 1 << 17
"""Events that modules make room for at once."""
PAUSE = 1 << 24
"""Events of runs, and of records without code, after which a call comes back though modules need no room: a run may
claim any number of iterations, and somebody may want to end the replay."""


def plan_of(program: bytes, events: Collection[str]) -> Plan:
    """What is known of a program for modules that want these events; which paths can be compiled changes, too."""
    return Plan([program, sources(), *sorted({name.encode() for name in events})])


class CompiledPaths:
    """The compiled paths of one replay."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        program: bytes,
        records: int,
        work: int | None = None,
        follows: bool = False,
        hot: Callable[[], int] = lambda: 0,
    ) -> None:
        """`program`: what tells the program from others; `records`: those of the trace; `work`: work_of it.

        `follows`: paths are only those that another replay, for modules that want the same events, has compiled.
        `hot`: how many paths are hot, asked where nothing is known of the program.
        """
        self.sinks = sinks
        self._plan_of = partial(plan_of, program, [name for sink in sinks for name in sink.handlers])
        self._plan = self._plan_of()
        self._follows = follows
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
        work = records if work is None else work
        is_known = self._plan.shares or self.waits or follows
        self._rounds = 0 if is_known or (work >= LONG_ENOUGH and hot() * WORK_OF_PATH <= work) else ROUNDS
        self._ends = False

    # -- which, and when -------------------------------------------------------------------------

    @property
    def may_compile(self) -> bool:
        """Whether the trace is long enough for what is known of the program, and for the paths that are hot in it."""
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
        if self._follows and not self.waits:
            return self._has_news()
        self.sample.add(ids)
        return self.waits or self.sample.records >= self._enough or bool(self._recalled())

    def _has_news(self) -> bool:
        """Whether the other replay's paths are known: looked for now and then, and taken once."""
        if self._thread is None and not self._plan.shares and self._batches % LOOK_FOR_PLAN == 0:
            self._plan = self._plan_of()
        return bool(self._recalled())

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
        tables = arguments[0]._replace(templates=arguments[0].templates.copy())  # the replay goes on making templates
        tables.templates[numbers] = runs
        given = [sink.arguments(stream, BUDGET) for sink in self.sinks]
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
        """Compile no more: the other process is ended; a function that Numba compiles in this one is waited for."""
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
                library = LibraryMaker(self.sinks, self._linkable, self._object_of).make(arguments, given)
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
        self._plan.keep()  # for replays that begin meanwhile: other segments of the trace
        self.seconds += time.thread_time() - begun + self._worker.seconds

    def _compile_paths(self, library: Library, what: Sample | Shares, tables: layouts.Tables) -> None:
        """Compile, load and take into use the hot paths of a sample, as far as they are not, or given ones."""
        head = driver_code.declared(library.handled, [kernel.__name__ for kernel in (*SLOW_PATHS, *PREDICATES)])
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
        hot = _hot_paths(sample, tables, 1.0 if self.waits else SHARE)
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
            codes = [PathCode(tables, library.handled, before, number, self.checks).text() for number, before in share]
            return self._object_of("\n\n".join([head, *codes]))

        parts = [path_key(tables, before, number) for number, before in share]
        checked = [f"checked, {len(tables.functions)}".encode()] if self.checks else []
        code, was_kept = object_cache.kept(key_of(library.handled, *parts, *checked), make)
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

    def _linkable(self, kernel: Any, arguments: Arguments) -> NumbaFunction:
        """A kernel for linking; raises EndedError if the replay has ended."""
        if self._ends:
            raise EndedError
        return NumbaFunction.of(kernel, arguments, None if self.waits else self._worker)

    def _object_of(
        self, text: str, linked: Iterable[bytes] = (), exported: Collection[str] = (), vectorizes: bool = False
    ) -> bytes:
        """Machine code; in another process unless that is waited for."""
        request = (text, list(linked), list(exported), vectorizes)
        if self.waits:
            return machine_code.object_of(*request)
        made: bytes = self._worker.call(machine_code.object_of, *request)
        return made

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
            own.words[machine.BUDGET] = (BUDGET if library.handled.has_budget else PAUSE) + reserve
            status = int(library.replay(own.address, self._paths.ctypes.data, len(self._paths), reserve))
            if raised := int(own.words[machine.RAISED]):
                raise self._failure(*exceptions.exception_at(raised))
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


def _hot_paths(sample: Sample, tables: layouts.Tables, share: float) -> NDArray[np.int64]:
    """The paths that make this share of the records of paths that can be compiled; the hottest first."""
    return sample.hottest(tables.templates["room"] != layouts.NEVER, share)


def _emptied(wide: layouts.Wide | None) -> bool:
    """Take the words behind the first of wide values, which no callback asks for, away; whether there were some."""
    if wide is None or wide.filled[0] == 0:
        return False
    wide.filled[0] = 0
    return True
