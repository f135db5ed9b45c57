"""Flow dependences alone: which instruction stored what another one loads.

In a segment of the trace (flow_segments.py) the state has a `front`, and its rows OPEN where nothing was stored yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers import maps
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.shadow import (
    Shadow,
    alike,
    reading,
    reading_range,
    touching,
    turn_to,
    writing,
    writing_range,
)
from tracekit.dependence.kernels.front import in_row, lay_over, note_first
from tracekit.jit.kernel import inlined, kernel

OPEN = 1 << 31
"""Of a row in a segment: nothing was stored there yet; the rest is the number of its newest first load, or 0."""

KNOWN = 8
"""Sources of an instruction that are found without the map."""


class Flow(NamedTuple):
    """For each byte the instruction that stored it, plus 1."""

    memory: Shadow
    known: Any  # [instruction * KNOWN + way]: sources that an instruction depended on lately, for they come again
    pairs: maps.CountTable  # by source << 32 | destination
    front: Any = None  # in a segment of the trace: Front


@inlined
def note(state: Flow, instruction: int, source: Any) -> None:
    """The instruction has loaded what `source` stored."""
    way = np.uint64(instruction * KNOWN + (source & (KNOWN - 1)))
    if source != 0 and source != state.known[way]:
        state.known[way] = source
        maps.count(state.pairs, (np.int64(source) << 32) | instruction)


@inlined
def number_of(state: Flow, instruction: int) -> Any:
    """Its row; library code has the last one."""
    return min(instruction, state.known.size // KNOWN - 1)


@inlined
def _load(state: Any, front: Any, own: Any, address: Any, size: Any, stream: Any) -> None:
    if front is None:  # Numba compiles one of the two
        for row in reading(state.memory, address, size):
            note(state, own, state.memory.rows[row])
        return
    at = address
    for row in touching(state.memory, address, size):
        stored, length = np.int64(state.memory.rows[row]), in_row(state.memory, row, at, address + size)
        if stored & OPEN != 0:
            note_first(front, state.memory.rows, row, OPEN, own, stream, 0, 0, at, length)
        else:
            note(state, own, stored)
        at += length


def load(state: Flow, instruction: int, address: int, size: int, stream: int) -> None:
    """Note who stored the bytes."""
    turn_to(state.memory, stream)
    _load(state, state.front, number_of(state, instruction), address, size, stream)


def store(state: Flow, instruction: int, address: int, size: int, stream: int) -> None:
    """Remember the store."""
    turn_to(state.memory, stream)
    for row in writing(state.memory, address, size):
        state.memory.rows[row] = number_of(state, instruction) + 1


def loads(state: Flow, instruction: int, address: int, size: int, step: int, count: int, stream: int) -> None:
    """Loads of one instruction; those that adjoin or overlap look at each word once."""
    turn_to(state.memory, stream)
    _loads(state, state.front, number_of(state, instruction), address, size, step, count, stream)


@inlined
def _loads(state: Any, front: Any, own: Any, address: Any, size: Any, step: Any, count: Any, stream: Any) -> None:
    if front is not None or abs(step) > size:
        for _ in range(count):
            _load(state, front, own, address, size, stream)
            address += step
        return
    address += min(step * (count - 1), 0)
    left = abs(step) * (count - 1) + size
    seen: Any = 0
    while left > 0:
        row, last, taken = reading_range(state.memory, address, left)
        while row <= last:
            source = np.int64(state.memory.rows[np.uint64(row)])
            if source != seen:
                note(state, own, source)
                seen = source
            row += alike(state.memory.rows, row, last - row + 1)
        address += taken
        left -= taken


def stores(state: Flow, instruction: int, address: int, size: int, step: int, count: int, stream: int) -> None:
    """Stores of one instruction: the last of those that overlap is of the same instruction as the first."""
    turn_to(state.memory, stream)
    own = number_of(state, instruction) + 1
    if abs(step) > size:
        for _ in range(count):
            for row in writing(state.memory, address, size):
                state.memory.rows[row] = own
            address += step
        return
    address += min(step * (count - 1), 0)
    left = abs(step) * (count - 1) + size
    while left > 0:
        row, last, taken = writing_range(state.memory, address, left)
        while row <= last:
            state.memory.rows[np.uint64(row)] = own
            row += 1
        address += taken
        left -= taken


def forget(state: Any, address: int, size: int) -> None:
    """Memory that begins or ends has no history."""
    clear(state.memory, address, size)


# -- segments --------------------------------------------------------------------------------------


@kernel
def join(state: Any, later: Any) -> None:
    """Let a state go on through the next segment, whose state is `later`, but for the dependences that this has."""
    for number in range(1, later.front.loads.control[USED]):
        first = later.front.loads.rows[number]
        turn_to(state.memory, np.int64(first.stream))
        _load(
            state,
            state.front,
            np.int64(first.instruction),
            first.start,
            np.int64(first.length),
            np.int64(first.stream),
        )
    lay_over(state.memory, later.memory, OPEN)
