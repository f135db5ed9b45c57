"""Makes the state that ``kernels/dependence.py`` works on."""

from __future__ import annotations

import numpy as np

from tracekit.formats.image import OpKind
from tracekit.replay import arena, shadows
from tracekit.replay.kernels import readers, relating, runs, sharing
from tracekit.replay.kernels.dependence import State
from tracekit.replay.kernels.readers import Readers
from tracekit.replay.kernels.relating import Relations
from tracekit.replay.kernels.runs import Runs
from tracekit.replay.kernels.sharing import Shared
from tracekit.replay.keyed import keyed
from tracekit.replay.objects import empty_objects
from tracekit.replay.program import Program

MOST_ACCESSES = 1 << 28
MOST_LEVELS = 1 << 28
UPDATING = (OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.CALL)
"""Operations of which one execution may both load and store."""


def empty_state(program: Program) -> State:
    """The state before the first event."""
    relations = empty_relations()
    return State(
        memory=shadows.empty(readers.HISTORY, per_stream=True),
        readers=empty_readers(len(relations.accesses.rows)),
        relations=relations,
        runs=_empty_runs(program),
        shared=Shared(arena.arena(sharing.FINDING, spare=1), arena.arena(sharing.FINDING, spare=1),
                      np.zeros(sharing.CONTROL, np.int64)),
        objects=empty_objects(),
        identities=keyed([]),
        known=np.zeros(len(program.ops) + 1, np.int64),  # the last row: an unknown call
    )


def empty_readers(accesses: int) -> Readers:
    """No loads; they are by at most so many accesses."""
    rows = arena.arena(readers.READER, 1 << 33, spare=readers.UNIT, beside=1, parts=16).rows  # a mark is of UNIT rows
    control = np.zeros(readers.CONTROL, np.int64)
    control[arena.USED], control[readers.COLLECT_AT] = readers.UNIT, readers.FIRST_COLLECTION
    return Readers(rows, control, arena.reserve(readers.SEEN, accesses),
                   arena.reserve("u4", len(rows) // readers.UNIT + 1))


def empty_relations() -> Relations:
    """No dependences."""
    levels = keyed(relating.LEVEL_FIELDS, MOST_LEVELS, relating.TALLY.itemsize, parts=2)
    return Relations(
        accesses=keyed(relating.ACCESS_FIELDS, MOST_ACCESSES, readers.SEEN.itemsize),
        dependences=keyed(relating.DEPENDENCE_FIELDS),
        levels=levels, distances=keyed([("times", "<i8")], parts=4),
        tallies=arena.reserve(relating.TALLY, len(levels.rows)),
        exposed=keyed([]), objects=keyed(relating.OBJECT_FIELDS),
    )


def _empty_runs(program: Program) -> Runs:
    updating = np.ones(len(program.ops) + 1, np.uint8)
    updating[:-1] = np.isin(program.ops["kind"], UPDATING)
    control = np.zeros(runs.CONTROL, np.int64)
    control[runs.STREAM] = -1
    return Runs(updating, arena.arena(runs.WAITING, 1 << 28, spare=1), control)
