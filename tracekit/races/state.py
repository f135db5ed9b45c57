"""Makes the state that the kernels work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table
from tracekit.formats.image import CallFlag, LoopFlag, OpFlag, OpKind, OpUse
from tracekit.program.shared_loops import shared_loops
from tracekit.races.kernels.clocks import CLOCK, Clocks
from tracekit.races.kernels.state import (
    ATOMIC,
    CALLS_BACK,
    CELL,
    CHAIN_ROW,
    COUNTS,
    DEPEND,
    DIRECT,
    EPOCH,
    GENERATION,
    GROUP,
    HELD,
    LINK,
    LOCK,
    MOST_ASIDE,
    MOST_CHAINS,
    MOST_HELD,
    MOST_LANES,
    MOST_REORDERED,
    NOW,
    OF_LANE,
    OF_RUNTIME,
    OUTSIDE,
    RACE,
    RECENT,
    RECENT_WAYS,
    RESOURCE,
    ROLE,
    SHARED_LOOP,
    SIMD_LOOP,
    SITE,
    SPLIT_ITERATIONS,
    STREAM,
    TAKES,
    TASK_ROW,
    TEAM,
    TELLS,
    TRIES_LOCK,
    UNORDERED,
    USER,
    WAITS,
    State,
)
from tracekit.races.lexical import lexical_places
from tracekit.races.libraries import TAKING, TRYING, WAITING, calls_of, library_calls, outside_calls
from tracekit.races.worksharing import runtimes_instructions, telling_instructions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

MOST_EPOCHS = 1 << 17
"""So many turns of locks and other points of order are looked at in other orders of locks."""
SCRATCH = 3 * MOST_CHAINS
"""Accesses of a set: at most one of each kind and chain."""


def atomic_instructions(program: Program) -> NDArray[np.uint8]:
    """u1 by instruction, and one more for libraries: 1 if what it does is atomic."""
    atomic = np.zeros(len(program.ops) + 1, np.uint8)
    atomic[:-1] = (program.ops["flags"] & OpFlag.ATOMIC != 0) | (program.ops["kind"] == OpKind.ATOMIC)
    return atomic


def kinds_of_instructions(program: Program) -> NDArray[np.uint16]:
    """u2 by instruction, and one more for libraries: ATOMIC, OF_LANE, TELLS and so on."""
    kinds: NDArray[np.uint16] = np.where(atomic_instructions(program) != 0, ATOMIC, 0).astype(np.uint16)
    kinds[:-1][program.ops["use"] & OpUse.OF_LANE != 0] |= OF_LANE
    kinds[:-1][runtimes_instructions(program)] |= OF_RUNTIME
    kinds[:-1][library_calls(program)] |= DIRECT
    if (lanes_of_loops(program) == SHARED_LOOP).any():
        kinds[:-1][telling_instructions(program)] |= TELLS
        kinds[:-1][program.ops["kind"] == OpKind.ATOMIC] |= COUNTS
    kinds[:-1][calls_of(program, TAKING)] |= TAKES
    kinds[:-1][calls_of(program, WAITING)] |= WAITS
    kinds[:-1][calls_of(program, TRYING)] |= TRIES_LOCK
    outside = outside_calls(program)
    kinds[:-1][program.calls["op"][outside]] |= OUTSIDE
    by_name = program.calls["flags"][outside] & int(CallFlag.INDIRECT) == 0
    kinds[:-1][program.calls["op"][outside[by_name]]] |= CALLS_BACK
    return kinds


def lanes_of_loops(program: Program) -> NDArray[np.uint8]:
    """u1 by loop: how many of its iterations the source lets run at once in lanes, at most MOST_LANES; else SHARED_LOOP
    of one whose iterations OpenMP shares out, 0 of others."""
    flags = program.loops["flags"]
    said = flags >> np.uint32(16)
    lanes = np.where(said == 0, MOST_LANES, np.minimum(said, MOST_LANES))
    shown: NDArray[np.uint8] = np.where(flags & LoopFlag.SIMD != 0, lanes, 0).astype(np.uint8)
    shared = shared_loops(program)
    shown[shared[shown[shared] == 0]] = SHARED_LOOP
    return shown


def fields(dtype: np.dtype[np.void]) -> list[tuple[str, np.dtype[np.generic]]]:
    """Those of a structured dtype, for a table."""
    return [(name, dtype[name]) for name in dtype.names or ()]


def empty_state(program: Program) -> State:
    """No task, no access."""
    now = np.zeros(NOW, np.int64)
    now[STREAM] = -1
    now[UNORDERED] = not program.has_atomic_order
    clock = ("clock", "<i8")
    lanes = lanes_of_loops(program)
    instructions = len(program.ops) + 1
    return State(
        now=now,
        memory=shadow.empty(CELL),
        clocks=Clocks(
            arena.arena(CLOCK, 1 << 28, spare=1), arena.arena("u4", spare=4 * MOST_CHAINS), np.zeros(1, np.int64)
        ),
        streams=hash_table([(name, "<i8") for name in ("task", "implicit", "simd", "tells", "taking")], 1 << 20),
        simd_loops=arena.arena(SIMD_LOOP, 1 << 28, spare=1),
        lanes_of=lanes,
        lexical=lexical_places(program, lanes),
        unsplit=np.full(len(program.loops), SPLIT_ITERATIONS, np.uint32),
        born=hash_table([("stream", "<i8")]),
        tasks=arena.arena(TASK_ROW, 1 << 28, spare=1),
        chains=arena.arena(CHAIN_ROW, MOST_CHAINS, spare=1),
        ended=np.zeros(MOST_CHAINS, np.int64),
        retired=hash_table([("into", "<i8")]),
        roles=hash_table(fields(ROLE)),
        held=arena.arena(HELD, 1 << 28, spare=MOST_HELD),
        objects=hash_table(fields(LOCK)),
        atomics=hash_table([clock, ("size", "<i8")]),
        barriers=hash_table([("count", "<i8"), ("arrivals", "<i8")]),
        rounds=hash_table([clock]),
        entered=hash_table([("round", "<i8")]),
        numbers=hash_table([("row", "<i8")]),
        teams=hash_table(fields(TEAM)),
        groups=arena.arena(GROUP, 1 << 28, spare=1),
        depends=hash_table(fields(DEPEND)),
        generations=arena.arena(GENERATION, 1 << 28, spare=1),
        links=arena.arena(LINK, 1 << 28, spare=1),
        steps=hash_table([clock]),
        own_lines=hash_table([("stream", "<i8")]),
        lock_sets=hash_table([]),
        situations=hash_table([]),
        places=hash_table([]),
        sites=hash_table(fields(SITE)),
        recent=np.zeros(2 * RECENT_WAYS * instructions, RECENT),
        kinds=kinds_of_instructions(program),
        accesses=hash_table([]),
        sets=hash_table([("stores", "<i8")]),
        scratch=np.zeros(SCRATCH, np.uint64),
        resources=hash_table(fields(RESOURCE)),
        closed=hash_table([("access", "<u8")]),
        users=hash_table(fields(USER)),
        races=hash_table(fields(RACE)),
        epochs=arena.arena(EPOCH, MOST_EPOCHS, spare=1),
        needed=arena.arena("u4", 8 * MOST_EPOCHS, spare=MOST_REORDERED),
        reached=np.zeros(MOST_REORDERED, np.int64),
        ran=np.zeros(MOST_REORDERED, np.int64),
        aside=np.zeros(MOST_ASIDE, np.uint64),
        tried=hash_table([("count", "<i8")]),
        reordered=hash_table(fields(RACE)),
    )
