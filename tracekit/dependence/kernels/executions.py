"""Executions of instructions that both load and store: atomic operations, copies, library calls.

The consecutive loads and then stores of such an instruction, with no other event between, are one execution. Its loads
wait, and enter the history when it is over, so that its own stores do not depend on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import USED, Arena, take
from tracekit.containers.kernels.shadow import changing, enter
from tracekit.dependence.kernels.dependence_table import keep_alone
from tracekit.dependence.kernels.final_stores import has_history, is_needed
from tracekit.dependence.kernels.load_history import add_reader, push_reader
from tracekit.dependence.kernels.sharding import is_alone, open_execution
from tracekit.jit.kernel import inlined, kernel

WAITING = np.dtype([("access", "<i8"), ("stamp", "<i8"), ("start", "<i8"), ("end", "<i8")])

# Elements of Runs.control.
NUMBER = 0  # the present execution
INSTRUCTION = 1  # its instruction plus 1; 0: it is over with its first access
STORING = 2  # 1 once it has stored
STREAM = 3  # its stream
CONTROL = 4
"""How many there are."""


class Runs(NamedTuple):
    """The execution that is under way."""

    updating: NDArray[np.uint8]  # [instruction]: 1 if it both loads and stores
    waiting: Arena  # WAITING: loads that have not entered the history
    control: NDArray[np.int64]


@inlined
def begin(state: Any, levels: Any, instruction: Any, stream: Any, time: Any, storing: Any) -> Any:
    """An access: the number of the execution that it belongs to."""
    control, updating = state.runs.control, state.runs.updating[np.uint64(instruction)]
    if control[INSTRUCTION] != 0 or updating != 0 or control[STREAM] != stream:
        if control[INSTRUCTION] == instruction + 1 and control[STREAM] == stream and storing >= control[STORING]:
            control[STORING] = storing
            return control[NUMBER]
        finish(state, levels, stream)
        control[STORING] = storing
        if updating != 0:
            control[INSTRUCTION] = instruction + 1
            open_execution(state.shared)
    control[NUMBER] = time + 1
    return time + 1


@inlined
def wait(runs: Any, access: Any, stamp: Any, address: Any, size: Any) -> None:
    """Let a load of the present execution wait for its end."""
    row = runs.waiting.rows[take(runs.waiting, 1)]
    row.access = access
    row.stamp = stamp
    row.start = address
    row.end = address + size


@kernel
def cut(waiting: Arena, start: Any, end: Any) -> None:
    """Take bytes that are stored, allocated or freed out of what waits."""
    for number in range(1, waiting.control[USED]):
        part = waiting.rows[number]
        if part.start < end and start < part.end:
            if part.start < start and end < part.end:
                behind = waiting.rows[take(waiting, 1)]
                behind.access = part.access
                behind.stamp = part.stamp
                behind.start = end
                behind.end = part.end
                part.end = start
            elif part.start < start:
                part.end = start
            elif end < part.end:
                part.start = end
            else:
                part.end = part.start


@kernel
def finish(state: Any, levels: Any, stream: Any) -> None:
    """The execution is over: its loads enter the history of its stream; then turn to `stream`."""
    control, waiting, memory = state.runs.control, state.runs.waiting, state.memory
    for number in range(1, waiting.control[USED]):
        part = waiting.rows[number]
        if not has_history(state, part.start, part.end - part.start):
            continue
        for row in changing(memory, part.start, part.end - part.start):
            if not is_needed(memory.rows[row]):
                continue
            if control[STREAM] == stream:
                add_reader(state.readers, memory, row, part.access, part.stamp, levels)
            else:
                push_reader(state.readers, memory, row, part.access, part.stamp)
    waiting.control[USED] = 1
    if control[INSTRUCTION] != 0 and is_alone(state.shared.control):
        keep_alone(state.relations, state.shared)
    control[INSTRUCTION] = 0
    if control[STREAM] != stream:
        control[STREAM] = stream
        enter(memory, stream)
