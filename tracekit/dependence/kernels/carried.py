"""Flow dependences that one loop carries, and nothing else: what ``dependence --carried-by FILE:LINE`` needs.

A load depends on an earlier store across iterations of an invocation that is open exactly if the store was made at or
after the invocation's tick and before that of its present iteration. So a word remembers who stored it and at which
tick, ticks are counted at this loop only, and what happens while it is not open is passed over: nothing that it carries
begins or ends there. Of several invocations of a recursion the innermost that was open at the store decides: in those
around it both ends lie in the same iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import maps
from tracekit.containers.kernels.shadow import Shadow, clear, reading, turn_to, writing
from tracekit.contexts.kernels.scopes import TICK, Scopes, close_loop, next_iteration, open_scope

SOURCE_BITS = 24
"""Of a word: the instruction that stored it, plus 1; the rest is the tick."""
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


def load(state: Carried, instruction: int, address: int, size: int, stream: int) -> None:
    """Note who stored the bytes in another iteration."""
    top = np.int64(state.scopes.top[np.uint64(stream)])
    if top == 0:
        return
    turn_to(state.memory, stream)
    for row in reading(state.memory, address, size):
        stored = np.int64(state.memory.rows[row])
        stamp = stored >> SOURCE_BITS
        if stored != 0 and stamp < state.scopes.rows.rows[top].iteration:
            holder = top
            while holder != 0 and stamp < state.scopes.rows.rows[holder].opened:
                holder = np.int64(state.scopes.rows.rows[holder].around)
            if holder != 0 and stamp < state.scopes.rows.rows[holder].iteration:
                source = stored & ((1 << SOURCE_BITS) - 1)
                instruction = min(instruction, state.instructions[0])
                way = np.uint64(instruction * KNOWN + (source & (KNOWN - 1)))
                if source != state.known[way]:
                    state.known[way] = source
                    maps.count(state.pairs, (source << 32) | instruction)


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
