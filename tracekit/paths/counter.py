"""Counts the paths that the records of a trace took."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import check
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.formats.errors import TracekitError
from tracekit.formats.limits import DEEPEST
from tracekit.jit.caller import Caller
from tracekit.paths.kernels import layouts
from tracekit.paths.kernels.layouts import ROW, SCALARS, TOP, Counted, Stream
from tracekit.paths.kernels.walk import end_all, walk
from tracekit.paths.tables import walked
from tracekit.program.linker import Rows
from tracekit.program.program import Program

FRAMES = 64
"""Activations that a stream has room for at first."""


class PathCounter:
    """The paths of a program's run; `most`: rows of the table (layouts.py) from which on no path becomes longer."""

    def __init__(self, program: Program, most: int) -> None:
        self.walked, self.work = walked(program)
        rows = most + 2 * len(self.walked.segments) + 16  # a path of one segment always has room
        self.counted = Counted(hash_table(ROW, rows), np.array([most], np.int64))
        self._stream: Stream | None = None
        self._number = -1
        self._functions = len(program.functions)
        self._walk = Caller(walk)
        self.scalars = np.zeros(SCALARS, np.int64)
        """The sums of the scalars (layouts.py) of all streams."""

    @property
    def rows(self) -> Rows:
        """The rows of the table; row 0 is none of them."""
        return used_rows(self.counted.rows)

    def add(self, stream: int, ids: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
        """Count whole records. Those of one stream come in their order, and streams one after another."""
        if stream != self._number or self._stream is None:
            self.finish()
            self._number = stream
            scalars = np.zeros(SCALARS, np.int64)
            scalars[TOP] = -1
            active = np.zeros(max(self._functions, 1), np.int64)
            self._stream = Stream(np.zeros(FRAMES, layouts.FRAME), active, scalars)
        cursor = np.zeros(2, np.int64)
        while self._walk(self.walked, self.counted, self._stream, ids, words, cursor):
            self._stream = _with_room(self._stream, stream)
        check(self.counted.rows)

    def finish(self) -> None:
        """No more records of the present stream come."""
        if self._stream is not None:
            end_all(self.counted, self._stream)
            self.scalars += self._stream.scalars
            self._stream = None


def _with_room(stream: Stream, number: int) -> Stream:
    """The stack with room for twice as many frames."""
    if len(stream.frames) >= DEEPEST:
        raise TracekitError(f"The trace is damaged: the stack of stream {number} never stops growing.")
    larger = np.zeros(2 * len(stream.frames), layouts.FRAME)
    larger[: len(stream.frames)] = stream.frames
    return stream._replace(frames=larger)
