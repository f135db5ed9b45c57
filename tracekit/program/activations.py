"""What the tables say of how activations begin, are left and landed in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag, OpKind
from tracekit.program import validation
from tracekit.program.program import Program
from tracekit.program.tables import U4


def call_rows(program: Program, ops: U4) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which of `ops` are calls, and the rows of ``calls`` of those."""
    used = ops != NONE
    used[used] = program.ops["kind"][ops[used]] == OpKind.CALL
    return used, program.ops["base"][ops[used]].astype(np.int64)


def may_enter(program: Program, ops: U4) -> NDArray[np.bool_]:
    """Whether each call may enter instrumented code."""
    used, calls = call_rows(program, ops)
    enters = np.zeros(len(ops), np.bool_)
    open_ended = program.calls["flags"][calls] & int(CallFlag.INDIRECT | CallFlag.MAY_CALL_BACK) != 0
    enters[used] = open_ended | (program.callees.count[calls] > 0)
    return enters


def landing_words(program: Program) -> U4:
    """For each block, which of its words is the frame address of a landing, or NONE."""
    words = np.concatenate([[0], np.cumsum(validation.op_words(program.ops))])
    landing_word = np.full(len(program.blocks), NONE, np.uint32)
    landings = np.flatnonzero(program.ops["kind"] == OpKind.LANDING)
    block_of = np.full(len(program.ops), NONE, np.uint32)
    block_of[validation.runs(program.blocks["first_op"], program.blocks["ops"])] = np.repeat(
        np.arange(len(program.blocks), dtype=np.uint32), program.blocks["ops"]
    )
    landings = landings[block_of[landings] != NONE][::-1]  # of several the first counts
    home = block_of[landings]
    landing_word[home] = words[landings] - words[program.blocks["first_op"][home]]
    return landing_word
