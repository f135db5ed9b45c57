"""Kernels that write down every event that compiled paths hand on: what a module that wants all of them would see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, Event
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


def _handler(event: Event) -> Any:
    """The kernel that writes down such events."""
    code = event.code

    def write(log, contexts, levels, clock, stream, subject, address, size, value):  # type: ignore[no-untyped-def]
        return _write(log, code, stream, subject, address, size, value)

    write.__name__ = write.__qualname__ = event.name  # machine code is known by it
    return inlined(write)


HANDLERS = {event.name: _handler(event) for event in BY_CODE.values() if event.delivered}
