"""What ``valgrind --tool=lackey --trace-mem=yes`` prints, read into records of one stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.imports.kernels import lackey as kernels
from tracekit.imports.trace_builder import TraceBuilder

LONGEST = 1 << 20
"""Bytes of a line at most: the program's own output may be among them, where a line of lackey's is expected."""


def read(pieces: Iterator[bytes], made: TraceBuilder, name: str) -> dict[str, Any]:
    """Read all lines. Returns what META says of them; raises TracekitError, with the number of a line that is wrong."""
    state = np.zeros(kernels.STATE, np.int64)
    before = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            _read_lines(before + piece[:end], state, made, name)
            before = b""
        before += piece[end:]
        if len(before) > LONGEST:
            raise _wrong(name, int(state[kernels.LINE]), before)
    if before:
        raise TracekitError(f"{name} ends too early, inside line {int(state[kernels.LINE]) + 1:,}.")
    return {"instructions": int(state[kernels.INSTRUCTIONS])}


def _read_lines(data: bytes, state: Any, made: TraceBuilder, name: str) -> None:
    state[kernels.AT] = 0
    given = np.frombuffer(data, np.uint8)
    while state[kernels.AT] < len(data):
        status = kernels.read(given, state, made.instructions, made.stream(0))
        if status == kernels.DAMAGED:
            raise _wrong(name, int(state[kernels.LINE]), data[int(state[kernels.AT]) :])
        if state[kernels.AT] < len(data):
            made.flush(0)


def _wrong(name: str, lines: int, rest: bytes) -> TracekitError:
    line = rest[:80].split(b"\n")[0].decode("ascii", "backslashreplace")
    return TracekitError(f"Line {lines + 1:,} of {name} is none of lackey's: {line!r}.")
