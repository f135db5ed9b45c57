"""Kernels that write down every event that compiled paths hand on: what a module that wants all of them would see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.jit.kernel import inlined

ROW = np.dtype(
    [("stream", "i8"), ("code", "u8"), ("subject", "u8"), ("address", "u8"), ("size", "u8"), ("value", "u8")]
)


class Log(NamedTuple):
    """Rows, and how many there are."""

    rows: Any
    used: Any


class EventLog:
    """A sink (replay/compiled/compiler.py) for the events with these codes."""

    def __init__(self, room: int = 1 << 20) -> None:
        self.log = Log(np.zeros(room, ROW), np.zeros(1, np.int64))

    @property
    def handlers(self) -> Mapping[str, Any]:
        """One kernel for each event."""
        return HANDLERS

    @property
    def ranges(self) -> Mapping[str, Any]:
        """It takes events one by one."""
        return {}

    def arguments(self, stream: int, events: int) -> tuple[Any, Any, Any, Any]:
        """State, contexts, levels and clock."""
        return self.log, None, None, np.zeros(0, np.int64)

    def check(self) -> None:
        """Raise TracekitError if there is no more room."""
        if self.log.used[0] == len(self.log.rows):
            raise TracekitError("The log is full.")

    def failure(self, error: Exception, file: str, line: int) -> Exception | None:
        """These kernels raise nothing."""
        return None

    def taken(self) -> list[tuple[int, str, int, int, int]]:
        """The events since the last call: stream, name, subject, address, size."""
        rows = self.log.rows[: self.log.used[0]].tolist()
        self.log.used[0] = 0
        return [(row[0], BY_CODE[row[1]].name, *row[2:5]) for row in rows]


@inlined
def _write(log: Any, code: Any, stream: Any, subject: Any, address: Any, size: Any, value: Any) -> bool:
    if log.used[0] < log.rows.size:
        row = log.rows[log.used[0]]
        row.stream, row.code, row.subject, row.address, row.size, row.value = (
            stream,
            code,
            subject,
            address,
            size,
            value,
        )
        log.used[0] += 1
    return False


@inlined
def load(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 1, stream, subject, address, size, value)


@inlined
def store(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 2, stream, subject, address, size, value)


@inlined
def pointer_creation(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 3, stream, subject, address, size, value)


@inlined
def heap_alloc(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 4, stream, subject, address, size, value)


@inlined
def heap_free(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 5, stream, subject, address, size, value)


@inlined
def stack_alloc(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 6, stream, subject, address, size, value)


@inlined
def stack_free(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 7, stream, subject, address, size, value)


@inlined
def global_init(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 8, stream, subject, address, size, value)


@inlined
def heap_realloc(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 9, stream, subject, address, size, value)


@inlined
def function_entry(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 10, stream, subject, address, size, value)


@inlined
def function_exit(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 11, stream, subject, address, size, value)


@inlined
def loop_invocation(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 12, stream, subject, address, size, value)


@inlined
def loop_iteration(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 13, stream, subject, address, size, value)


@inlined
def loop_exit(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 14, stream, subject, address, size, value)


@inlined
def external_call(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 15, stream, subject, address, size, value)


@inlined
def library_load(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 16, stream, subject, address, size, value)


@inlined
def library_store(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 17, stream, subject, address, size, value)


@inlined
def program_start(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 20, stream, subject, address, size, value)


@inlined
def program_end(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 21, stream, subject, address, size, value)


@inlined
def thread_start(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 22, stream, subject, address, size, value)


@inlined
def thread_exit(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 23, stream, subject, address, size, value)


@inlined
def thread_create(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 24, stream, subject, address, size, value)


@inlined
def thread_join(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 25, stream, subject, address, size, value)


@inlined
def lock(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 26, stream, subject, address, size, value)


@inlined
def unlock(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 27, stream, subject, address, size, value)


@inlined
def barrier(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 28, stream, subject, address, size, value)


@inlined
def fork(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 29, stream, subject, address, size, value)


@inlined
def exec(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 30, stream, subject, address, size, value)


@inlined
def signal_enter(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 31, stream, subject, address, size, value)


@inlined
def signal_leave(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 32, stream, subject, address, size, value)


@inlined
def image_load(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 33, stream, subject, address, size, value)


@inlined
def image_unload(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 34, stream, subject, address, size, value)


@inlined
def dropped(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 35, stream, subject, address, size, value)


@inlined
def window_open(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 36, stream, subject, address, size, value)


@inlined
def window_close(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 37, stream, subject, address, size, value)


@inlined
def fork_begin(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 38, stream, subject, address, size, value)


@inlined
def window_begin(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 48, stream, subject, address, size, value)


@inlined
def window_end(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
    return _write(log, 49, stream, subject, address, size, value)


HANDLERS = {
    "load": load,
    "store": store,
    "pointer_creation": pointer_creation,
    "heap_alloc": heap_alloc,
    "heap_free": heap_free,
    "stack_alloc": stack_alloc,
    "stack_free": stack_free,
    "global_init": global_init,
    "heap_realloc": heap_realloc,
    "function_entry": function_entry,
    "function_exit": function_exit,
    "loop_invocation": loop_invocation,
    "loop_iteration": loop_iteration,
    "loop_exit": loop_exit,
    "external_call": external_call,
    "library_load": library_load,
    "library_store": library_store,
    "program_start": program_start,
    "program_end": program_end,
    "thread_start": thread_start,
    "thread_exit": thread_exit,
    "thread_create": thread_create,
    "thread_join": thread_join,
    "lock": lock,
    "unlock": unlock,
    "barrier": barrier,
    "fork": fork,
    "exec": exec,
    "signal_enter": signal_enter,
    "signal_leave": signal_leave,
    "image_load": image_load,
    "image_unload": image_unload,
    "dropped": dropped,
    "window_open": window_open,
    "window_close": window_close,
    "fork_begin": fork_begin,
    "window_begin": window_begin,
    "window_end": window_end,
}
