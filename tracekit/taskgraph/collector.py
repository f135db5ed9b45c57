"""Collects the steps of a trace's streams, from their records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE, FIRST_PATH
from tracekit.formats.limits import DEEPEST
from tracekit.jit.caller import Caller
from tracekit.paths.tables import walked
from tracekit.program.linker import Rows
from tracekit.program.program import Program
from tracekit.taskgraph.kernels import layouts
from tracekit.taskgraph.kernels.layouts import BROKEN, NUMBER, SCALARS, TOP, Steps, Stream
from tracekit.taskgraph.kernels.walk import begin, close, walk

FRAMES = 64
"""Activations that a stream has room for at first."""

THREADS = ("program_start", "thread_create", "thread_start", "thread_exit", "thread_join")
LOCKS = ("lock", "lock_shared", "unlock", "mutex_acquired", "mutex_released")
OPENMP = (
    "parallel_begin",
    "parallel_end",
    "implicit_begin",
    "implicit_end",
    "task_create",
    "task_schedule",
    "task_dependence",
    "sync_begin",
    "sync_end",
)
SIGNALS = ("release", "acquire", "barrier_init", "barrier_enter", "barrier_leave", "barrier", "atomic", "fence")


def ordering_events(locks: bool) -> tuple[str, ...]:
    """The names of events that begin a step; `locks`: whether those of locks do."""
    return (*THREADS, *SIGNALS, *OPENMP, *(LOCKS if locks else ()))


class StepCollector:
    """The steps of a program's run; `locks`: whether locks order them."""

    def __init__(self, program: Program, locks: bool) -> None:
        self.walked, self.work = walked(program)
        orders = np.zeros(FIRST_PATH, np.uint8)
        orders[[CODE[name] for name in ordering_events(locks)]] = 1
        self.collected = Steps(
            arena.arena(layouts.STEP, 1 << 30, spare=1, parts=4),
            arena.arena(layouts.USE, 1 << 32, spare=1, parts=4),
            hash_table([], parts=4),
            orders,
        )
        self.broken = 0
        self._stream: Stream | None = None
        self._counts = np.zeros(len(self.walked.records), np.int64)
        self._touched = np.zeros(len(self.walked.records), np.uint32)

    def add(self, number: int, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        """Take whole records. Those of one stream come in their order, and streams one after another."""
        if self._stream is None or self._stream.scalars[NUMBER] != number:
            self.finish()
            scalars = np.zeros(SCALARS, np.int64)
            scalars[TOP], scalars[NUMBER] = -1, number
            self._stream = Stream(np.zeros(FRAMES, layouts.FRAME), self._counts, self._touched, scalars)
            begin(self.collected, self._stream)
        cursor = np.zeros(2, np.int64)
        call = Caller(walk)
        while call(self.walked, self.collected, self._stream, ids, words, cursor):
            self._stream = _with_room(self._stream)
        arena.check(self.collected.steps, self.collected.uses, self.collected.contexts)

    def finish(self) -> None:
        """No more records of the present stream come."""
        if self._stream is not None:
            close(self.collected, self._stream)
            self.broken += int(self._stream.scalars[BROKEN])
            self._stream = None

    @property
    def steps(self) -> Rows:
        """STEP; row 0 is none."""
        table = self.collected.steps
        return table.rows[: table.control[0]]

    @property
    def uses(self) -> Rows:
        """USE; row 0 is none."""
        table = self.collected.uses
        return table.rows[: table.control[0]]

    def ordered(self) -> NDArray[np.int64]:
        """The rows of steps in the order of their tickets, which ascend within a stream; streams begin first."""
        steps = self.steps
        order: NDArray[np.int64] = np.argsort(steps["ticket"][1:], kind="stable") + 1
        return order

    def per_record(self, columns: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """What each path does once, by record id: sums of `columns` by segment."""
        records = self.walked.records
        first = records["segment"].astype(np.int64)
        end = first + records["segments"]
        sums = (np.concatenate([[0], np.cumsum(column)]) for column in columns)
        return [along[end] - along[first] for along in sums]


def _with_room(stream: Stream) -> Stream:
    """The stack with room for twice as many frames."""
    if len(stream.frames) >= DEEPEST:
        raise TracekitError(f"The trace is damaged: the stack of stream {stream.scalars[NUMBER]} never stops growing.")
    larger = np.zeros(2 * len(stream.frames), layouts.FRAME)
    larger[: len(stream.frames)] = stream.frames
    return stream._replace(frames=larger)
