"""ChampSim's traces, ``input_instr`` after ``input_instr``, read into records of one stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.formats.export.champsim import INPUT_INSTR
from tracekit.imports.kernels import champsim as kernels
from tracekit.imports.trace_builder import TraceBuilder


def read(pieces: Iterator[bytes], made: TraceBuilder, name: str, size: int = 1) -> dict[str, Any]:
    """Read all instructions; accesses are taken to have `size` bytes. Returns what META says of them.

    Raises TracekitError, with the offset, where an instruction is none, or is cut.
    """
    state = np.zeros(kernels.STATE, np.int64)
    before, done, unit = b"", 0, INPUT_INSTR.itemsize
    for piece in pieces:
        data = before + piece
        given = np.frombuffer(data, INPUT_INSTR, len(data) // unit)
        state[kernels.AT] = 0
        while state[kernels.AT] < len(given):
            if kernels.read(given, state, made.instructions, made.stream(0), size) == kernels.DAMAGED:
                at = done + int(state[kernels.AT])
                raise TracekitError(
                    f"{name} is no trace of ChampSim's, or damaged: at byte {unit * at:,} there is no instruction."
                )
            if state[kernels.AT] < len(given):
                made.flush(0)
        done += len(given)
        before = data[unit * len(given) :]
    if before:
        raise TracekitError(f"{name} ends too early, at byte {unit * done + len(before):,}, inside an instruction.")
    return {"instructions": done, "access_bytes": size}
