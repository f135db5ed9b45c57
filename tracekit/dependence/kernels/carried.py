"""Flow dependences that one loop carries, and nothing else: what ``dependence --carried-by FILE:LINE`` needs.

A load depends on an earlier store across iterations of an invocation that is open exactly if the store was made at or
after the invocation's tick and before that of its present iteration. So a word remembers who stored it and at which
tick, ticks are counted at this loop only, and what happens while it is not open is passed over: nothing that it carries
begins or ends there. Of several invocations of a recursion the innermost that was open at the store decides: in those
around it both ends lie in the same iteration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import maps
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.shadow import Shadow, reading, touching, turn_to, writing
from tracekit.contexts.kernels.scopes import TICK, Scopes, close_loop, next_iteration, open_scope
from tracekit.dependence.kernels.front import Front, in_row, lay_over, note_first
from tracekit.jit.kernel import inlined, kernel

SOURCE_BITS = 24
"""Of a word: the instruction that stored it, plus 1; the rest is the tick."""
OPEN = 1 << 62
"""Of a row in a segment: nothing was stored there yet; the rest is the number of its newest first load, or 0."""
KNOWN = 8
"""Sources of an instruction that are found without the map."""


class Carried(NamedTuple):
    """The last stores, and the dependences."""

    memory: Shadow  # u8: tick << SOURCE_BITS | instruction + 1
    loops: NDArray[np.uint8]  # 1 for rows of loops at the place
    scopes: Scopes  # their invocations
    known: NDArray[np.uint32]  # [instruction * KNOWN + way]
    pairs: maps.CountTable  # by source + 1 << 32 | destination
    instructions: NDArray[np.int64]  # one element
    open: NDArray[np.int64]  # one element: invocations in all streams
    front: Any = None  # in a segment of the trace: CarriedFront


class CarriedFront(NamedTuple):
    """What a segment notes, and when it began."""

    loads: Front
    began: NDArray[np.int64]  # one element: the tick
    scopes: NDArray[Any]  # SCOPE: as they were then


def load(state: Carried, instruction: int, address: int, size: int, stream: int) -> None:
    """Note who stored the bytes in another iteration."""
    top = np.int64(state.scopes.top[np.uint64(stream)])
    if top == 0:
        return
    turn_to(state.memory, stream)
    own = min(instruction, state.instructions[0])
    _load(state, state.front, state.scopes.rows.rows, top, 0, own, address, size, stream)


@inlined
def _load(
    state: Any, front: Any, scopes: Any, top: Any, moved: Any, own: Any, address: Any, size: Any, stream: Any
) -> None:
    """A load in the scope `top`, the innermost. moved: 1 if its present iteration began after all of `scopes` did."""
    if front is None:  # Numba compiles one of the two
        for row in reading(state.memory, address, size):
            _depend(state, scopes, top, moved, own, np.int64(state.memory.rows[row]))
        return
    kept, began, at = np.int64(top), front.began[0], address
    while kept != 0 and scopes[kept].opened > began:
        kept = np.int64(scopes[kept].around)
    has_moved = np.int64(scopes[kept].iteration > began or (moved != 0 and kept == top))
    for row in touching(state.memory, address, size):
        stored, length = np.int64(state.memory.rows[row]), in_row(state.memory, row, at, address + size)
        if stored & OPEN == 0:
            _depend(state, scopes, top, moved, own, stored)
        elif kept != 0:  # else no scope that is open now was open at the store
            note_first(front.loads, state.memory.rows, row, OPEN, own, stream, kept, has_moved, at, length)
        at += length


@inlined
def _depend(state: Any, scopes: Any, top: Any, moved: Any, own: Any, stored: Any) -> None:
    """A load of what was `stored` depends on it if that was in another iteration."""
    stamp = stored >> SOURCE_BITS
    if stored != 0 and (moved != 0 or stamp < scopes[top].iteration):
        holder = np.int64(top)
        while holder != 0 and stamp < scopes[holder].opened:
            holder = np.int64(scopes[holder].around)
        if holder != 0 and (stamp < scopes[holder].iteration or (moved != 0 and holder == top)):
            source = stored & ((1 << SOURCE_BITS) - 1)
            way = np.uint64(own * KNOWN + (source & (KNOWN - 1)))
            if source != state.known[way]:
                state.known[way] = source
                maps.count(state.pairs, (source << 32) | own)


def store(state: Carried, instruction: int, address: int, size: int, stream: int) -> None:
    """Remember the store."""
    if state.scopes.top[np.uint64(stream)] == 0:
        return
    turn_to(state.memory, stream)
    stamped = np.uint64((state.scopes.control[TICK] << SOURCE_BITS) | (min(instruction, state.instructions[0]) + 1))
    for row in writing(state.memory, address, size):
        state.memory.rows[row] = stamped


def forget(state: Carried, address: int, size: int) -> None:
    """Memory that begins or ends has no history."""
    if state.open[0] != 0:
        clear(state.memory, address, size)


def loop_invocation(state: Carried, loop: int, stream: int) -> None:
    """The loop opens."""
    if state.loops[np.uint64(loop)] != 0:
        open_scope(state.scopes, stream, 0, True)
        state.open[0] += 1


def loop_iteration(state: Carried, loop: int, stream: int) -> None:
    """Its next iteration begins."""
    if state.loops[np.uint64(loop)] != 0:
        next_iteration(state.scopes, stream)


def loop_exit(state: Carried, loop: int, stream: int) -> None:
    """It closes."""
    if state.loops[np.uint64(loop)] != 0 and state.scopes.top[np.uint64(stream)] != 0:
        close_loop(state.scopes, stream)
        state.open[0] -= 1


# -- segments --------------------------------------------------------------------------------------


@kernel
def join(state: Carried, later: Any) -> None:
    """Let a state go on through the next segment, whose state is `later`, but for the dependences that this has."""
    loads = later.front.loads.loads
    for number in range(1, loads.control[USED]):
        first = loads.rows[number]
        stream = np.int64(first.stream)
        turn_to(state.memory, stream)
        _load(
            state,
            state.front,
            later.front.scopes,
            np.int64(first.scope),
            np.int64(first.moved),
            np.int64(first.instruction),
            first.start,
            np.int64(first.length),
            stream,
        )
    lay_over(state.memory, later.memory, OPEN)
