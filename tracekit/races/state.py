"""Makes the state that the kernels work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table
from tracekit.formats.image import OpFlag, OpKind
from tracekit.races.kernels.clocks import CLOCK, Clocks
from tracekit.races.kernels.state import (
    CELL,
    HELD,
    MOST_HELD,
    MOST_THREADS,
    NOW,
    RACE,
    RECENT,
    SITE,
    STREAM,
    THREAD_ROW,
    State,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

SCRATCH = 3 * MOST_THREADS
"""Accesses of a set: at most one of each kind and thread."""


def atomic_instructions(program: Program) -> NDArray[np.uint8]:
    """u1 by instruction, and one more for libraries: 1 if what it does is atomic."""
    atomic = np.zeros(len(program.ops) + 1, np.uint8)
    atomic[:-1] = (program.ops["flags"] & OpFlag.ATOMIC != 0) | (program.ops["kind"] == OpKind.ATOMIC)
    return atomic


def fields(dtype: np.dtype[np.void]) -> list[tuple[str, np.dtype[np.generic]]]:
    """Those of a structured dtype, for a table."""
    return [(name, dtype[name]) for name in dtype.names or ()]


def empty_state(program: Program) -> State:
    """No thread, no access."""
    now = np.zeros(NOW, np.int64)
    now[STREAM] = -1
    clock = ("clock", "<i8")
    instructions = len(program.ops) + 1
    return State(
        now=now,
        memory=shadow.empty(CELL),
        clocks=Clocks(arena.arena(CLOCK, 1 << 28, spare=1), arena.arena("u4", spare=MOST_THREADS)),
        streams=hash_table([("thread", "<i8")], 1 << 20),
        threads=arena.arena(THREAD_ROW, MOST_THREADS, spare=1),
        held=arena.arena(HELD, MOST_HELD * (MOST_THREADS + 1), spare=MOST_HELD),
        objects=hash_table([clock, ("readers", "<i8"), ("group", "<i8"), ("offset", "<i8")]),
        atomics=hash_table([clock]),
        barriers=hash_table([("count", "<i8"), ("arrivals", "<i8")]),
        rounds=hash_table([clock]),
        entered=hash_table([("round", "<i8")]),
        lock_sets=hash_table([]),
        situations=hash_table([]),
        places=hash_table([]),
        sites=hash_table(fields(SITE)),
        recent=np.zeros(2 * instructions, RECENT),
        atomic=atomic_instructions(program),
        accesses=hash_table([]),
        sets=hash_table([]),
        scratch=np.zeros(SCRATCH, np.uint64),
        races=hash_table(fields(RACE)),
    )
