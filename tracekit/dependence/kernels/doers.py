"""Who does what a stream records: its thread, or an explicit task of OpenMP that the thread runs.

A task that its creator waits for at once is part of it. Implicit tasks are their threads'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.formats.event_values import TaskFlag, TaskStatus
from tracekit.jit.kernel import inlined, kernel

UNDEFERRED = int(TaskFlag.UNDEFERRED)
FULFILLED = (int(TaskStatus.EARLY_FULFILL), int(TaskStatus.LATE_FULFILL), int(TaskStatus.TASKWAIT_COMPLETE))
"""What task_schedule says of a task that the stream does not leave."""
FIRST_TASK = 1 << 24
"""Numbers of doers below are those of streams, from here on those of tasks in the order of their creation."""

# Elements of Doers.present.
STREAM = 0  # that was asked for last, or -1
DOER = 1  # its doer
TASKS = 2  # explicit ones so far


class Doers(NamedTuple):
    """The doer of each stream, and of each task."""

    present: NDArray[np.int64]
    streams: HashTable  # by stream: the doer plus 1, 0: the thread
    tasks: HashTable  # by a task's number in events: the same; 0 of implicit ones


@inlined
def doer_of(doers: Any, stream: Any) -> Any:
    """Who does what a stream records now."""
    if doers.present[STREAM] != stream:
        known = np.int64(doers.streams.rows[row_of(doers.streams, stream)].doer)
        doers.present[STREAM] = stream
        doers.present[DOER] = known - 1 if known != 0 else stream
    return doers.present[DOER]


@kernel
def task_made(doers: Doers, flags: Any, task: Any, stream: Any) -> Any:
    """A task is created; returns its doer."""
    doer = np.int64(doer_of(doers, stream))
    if flags & UNDEFERRED == 0:
        doer = FIRST_TASK + doers.present[TASKS]
        doers.present[TASKS] += 1
    doers.tasks.rows[row_of(doers.tasks, task)].doer = doer + 1
    return doer


@kernel
def task_left(doers: Doers, status: Any, following: Any, stream: Any) -> None:
    """A stream leaves a task and goes on with the `following` one."""
    if following != 0 and status not in FULFILLED:
        known = np.int64(doers.tasks.rows[row_of(doers.tasks, following)].doer)
        doers.streams.rows[row_of(doers.streams, stream)].doer = known
        doers.present[STREAM] = -1
