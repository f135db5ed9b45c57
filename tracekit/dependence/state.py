"""Makes the state that ``kernels/dependence.py`` works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tracekit.dependence.serialization  # noqa: F401  (says how states are taken elsewhere)
from tracekit.containers import arena, maps, shadow
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels.arena import USED
from tracekit.dependence.final_stores import nothing_known
from tracekit.dependence.kernels import (
    accesses,
    dependence_table,
    dependence_ways,
    executions,
    load_history,
    loop_sets,
    sharding,
)
from tracekit.dependence.kernels.dependence import State
from tracekit.dependence.kernels.dependence_table import DependenceTable
from tracekit.dependence.kernels.executions import Runs
from tracekit.dependence.kernels.final_stores import FinalStores
from tracekit.dependence.kernels.load_history import LoadHistory
from tracekit.dependence.kernels.loop_sets import LoopSets
from tracekit.dependence.kernels.sharding import Shared
from tracekit.formats.image import OpKind
from tracekit.program.program import Program
from tracekit.translation.identities import empty_objects
from tracekit.translation.translation import in_wrapper

MOST_ACCESSES = 1 << 28
MOST_LEVELS = 1 << 27
MOST_SETS = 1 << 26
UPDATING = (OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.CALL)
"""Operations of which one execution may both load and store."""


def empty_state(program: Program, final: FinalStores | None = None) -> State:
    """The state before the first event; `final`: what a pass found."""
    known, relations = empty_relations()
    return State(
        memory=shadow.empty(load_history.HISTORY, per_stream=True),
        readers=empty_load_history(len(relations.accesses.rows)),
        relations=relations,
        runs=_empty_runs(program),
        shared=Shared(
            arena.arena(sharding.FINDING, spare=1),
            arena.arena(sharding.FINDING, spare=1),
            arena.arena(sharding.LOAD_PART, spare=1),
            np.zeros(sharding.CONTROL, np.int64),
        ),
        objects=empty_objects(),
        identities=hash_table([]),
        in_wrapper=in_wrapper(program),
        access=np.zeros(len(program.ops) + 1, np.int64),  # the last: an unknown call
        known=known,
        ways=np.zeros(dependence_ways.WAYS, dependence_ways.WAY),
        final=nothing_known() if final is None else final,
    )


def empty_load_history(accesses: int) -> LoadHistory:
    """No loads; they are by at most so many accesses."""
    rows = arena.arena(load_history.LOAD, 1 << 32, parts=16).rows
    control = np.zeros(load_history.CONTROL, np.int64)
    control[USED], control[load_history.END] = 1, len(rows) // 2
    control[load_history.COLLECT_AT] = min(load_history.FIRST_COLLECTION, len(rows) // 4)
    return LoadHistory(
        rows, control, arena.reserve(load_history.SEEN, accesses), np.zeros(2 * load_history.WAYS, np.int64)
    )


def empty_relations() -> tuple[NDArray[Any], DependenceTable]:
    """No accesses at hand (KNOWN), and no dependences."""
    known, related, exposed_loops = arena.side_by_side(
        (1 << accesses.KNOWN_BITS, accesses.KNOWN),
        (1 << dependence_table.RELATED_BITS, dependence_table.RELATED),
        (1 << dependence_table.EXPOSED_BITS, dependence_table.EXPOSED_LOOPS),
    )
    dependences = hash_table(dependence_table.DEPENDENCE_FIELDS, beside=dependence_table.LYING.itemsize)
    levels = hash_table(dependence_table.LEVEL_FIELDS, MOST_LEVELS, dependence_table.TALLY.itemsize, parts=2)
    relations = DependenceTable(
        accesses=hash_table(dependence_table.ACCESS_FIELDS, MOST_ACCESSES, load_history.SEEN.itemsize),
        dependences=dependences,
        lying=arena.reserve(dependence_table.LYING, len(dependences.rows), dense=True),
        related=related,
        levels=levels,
        sets=LoopSets(
            hash_table(loop_sets.STEP_FIELDS, MOST_SETS),
            hash_table(loop_sets.WITHIN_FIELDS),
            np.zeros(loop_sets.NAMED_SETS, loop_sets.NAMED_SET),
        ),
        distances=maps.count_map(),
        tallies=arena.reserve(dependence_table.TALLY, len(levels.rows), dense=True),
        exposed=hash_table(dependence_table.EXPOSED_FIELDS),
        exposed_loops=exposed_loops,
        objects=hash_table(dependence_table.OBJECT_FIELDS),
    )
    return known, relations


def _empty_runs(program: Program) -> Runs:
    updating = np.ones(len(program.ops) + 1, np.uint8)
    updating[:-1] = np.isin(program.ops["kind"], UPDATING)
    control = np.zeros(executions.CONTROL, np.int64)
    control[executions.STREAM] = -1
    return Runs(updating, arena.arena(executions.WAITING, 1 << 28, spare=1), control)
