"""Traces of DynamoRIO's drmemtrace: files of one thread or one core each, or of several threads, read in order of time.

Each file says at many places what time it was. The file that stands at the earliest time goes on, of several the first,
as DynamoRIO's own tools have it; where another thread's accesses follow, its stream has a mark with a ticket (SPEC.md,
"Order between streams").
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tracekit.formats.drmemtrace import ENTRY, ENTRY_32, MARKER, NEWEST, OLDEST
from tracekit.formats.errors import TracekitError
from tracekit.imports.kernels import drmemtrace as kernels
from tracekit.imports.kernels.records import RECORDS, USED_WORDS, Records
from tracekit.imports.trace_builder import TraceBuilder

MARK = "window_open"
"""The event with a ticket that stands where a stream goes on."""

ENDLESS = 2**63 - 1
"""A time after all others."""

_NOWHERE = Records(np.empty(0, np.uint32), np.empty(0, np.uint64), np.zeros(2, np.int64))


def read(files: Sequence[tuple[str, Iterator[bytes]]], made: TraceBuilder, with_kernel: bool = False) -> dict[str, Any]:
    """Read all `files`, each with its name and its pieces. Returns what META says of them.

    `with_kernel`: keep accesses of the kernel, in traces of system calls and context switches. Raises TracekitError,
    with the offset, where one is damaged, cut off, or of a version that is not known.
    """
    turns = _Turns(made)
    inputs = [_Input(name, pieces, turns, with_kernel) for name, pieces in files]
    waiting = [(0, number) for number in range(len(inputs))]
    while waiting:
        _, number = heapq.heappop(waiting)
        time, other = waiting[0] if waiting else (ENDLESS, number)
        if inputs[number].advance(time - (other < number)):
            heapq.heappush(waiting, (int(inputs[number].state[kernels.TIME]), number))
    turns.drop_unused()
    states = [each.state.tolist() for each in inputs]
    kernel_accesses = sum(state[kernels.KERNEL_ACCESSES] for state in states)
    return {
        "instructions": sum(state[kernels.INSTRUCTIONS] for state in states),
        "versions": sorted({state[kernels.FOUND_VERSION] for state in states}),
        "file_types": sorted({state[kernels.TYPE] for state in states}),
        "threads": list(turns.streams),
        **({"kernel_accesses": kernel_accesses} if kernel_accesses else {}),
        **({"kernel": True} if with_kernel else {}),
    }


class _Turns:
    """Whose turn it is: the stream that has the newest records."""

    def __init__(self, made: TraceBuilder) -> None:
        self.made = made
        self.streams: dict[int, int] = {}  # thread -> stream
        self._tickets = 0
        self._now = self._before = -1  # streams
        self._unused: tuple[int, int] | None = None  # how full the present one was behind its mark

    def turn_to(self, thread: int) -> int:
        """The stream of a thread, which goes on now."""
        stream = self.streams.setdefault(thread, len(self.streams))
        if stream != self._now:
            self.drop_unused()
        if stream != self._now:
            self.made.mark(stream, MARK, self._tickets)
            self._tickets += 1
            filled = self.made.stream(stream).filled
            self._unused = (int(filled[RECORDS]), int(filled[USED_WORDS]))
            self._before, self._now = self._now, stream
        return stream

    def drop_unused(self) -> None:
        """Take the newest mark back if nothing came after it."""
        if self._unused is None:
            return
        filled = self.made.stream(self._now).filled
        if (int(filled[RECORDS]), int(filled[USED_WORDS])) == self._unused:
            filled -= 1
            self._now = self._before
        self._unused = None

    def flushed(self) -> None:
        """The stream whose turn it is has been flushed: what follows its mark is not looked for."""
        self._unused = None


class _Input:
    """One file."""

    def __init__(self, name: str, pieces: Iterator[bytes], turns: _Turns, with_kernel: bool) -> None:
        self.state = np.zeros(kernels.STATE, np.uint64)
        self._name = name
        self._pieces = pieces
        self._turns = turns
        self._with_kernel = with_kernel
        self._entries = np.empty(0, ENTRY)
        self._form = ENTRY  # of the file
        self._rest = b""
        self._before = 0  # entries in the pieces before

    def advance(self, limit: int) -> bool:
        """Read on up to a time after `limit`; returns whether there is more."""
        made, state = self._turns.made, self.state
        while True:
            thread = int(state[kernels.TID])
            stream = self._turns.turn_to(thread) if thread else -1
            out = made.stream(stream) if thread else _NOWHERE
            status = kernels.read(self._entries, state, made.instructions, out, limit, self._with_kernel)
            if status == kernels.NEW_TIME:
                return True
            if status == kernels.FULL:
                made.flush(stream)
                self._turns.flushed()
            elif status == kernels.GOES_ON and not self._next_piece():
                return False
            elif status not in (kernels.GOES_ON, kernels.NEW_THREAD):
                raise self._wrong(status)

    def _next_piece(self) -> bool:
        """Take the next piece of the file; returns whether there is one. Raises TracekitError if it is cut off."""
        self._before += len(self._entries)
        for piece in self._pieces:
            data = self._rest + piece
            if self._before == 0:
                if len(data) < 2 * ENTRY.itemsize:
                    self._rest = data
                    continue
                self._form = ENTRY_32 if _is_of_32_bits(data) else ENTRY
            unit = self._form.itemsize
            given = np.frombuffer(data, self._form, len(data) // unit)
            self._entries = given.astype(ENTRY, copy=False)
            self._rest = data[unit * len(given) :]
            self.state[kernels.AT] = 0
            return True
        self._entries = np.empty(0, ENTRY)
        if self._rest or not self.state[kernels.IS_OVER]:
            end = self._form.itemsize * self._before + len(self._rest)
            raise TracekitError(f"{self._name} ends too early, at byte {end:,}: no record says that it is over.")
        return False

    def _wrong(self, status: int) -> TracekitError:
        at = f"at byte {self._form.itemsize * (self._before + int(self.state[kernels.AT])):,}"
        if status == kernels.WRONG_VERSION:
            return TracekitError(
                f"{self._name} has version {int(self.state[kernels.FOUND_VERSION])} of drmemtrace's format; "
                f"versions {OLDEST} to {NEWEST} are read."
            )
        what = "an access of no thread" if status == kernels.NO_THREAD else "no record of drmemtrace's"
        return TracekitError(f"{self._name} is no trace of drmemtrace's, or damaged: {at} there is {what}.")


def _is_of_32_bits(data: bytes) -> bool:
    """Whether the first record, which says the version, has 8 bytes.

    The second one, a marker, then begins where others have the upper half of the version.
    """
    return data[ENTRY_32.itemsize : ENTRY_32.itemsize + 2] == MARKER.to_bytes(2, "little")
