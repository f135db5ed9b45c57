"""Execution agents, which do what streams record: a thread, or an explicit task of OpenMP that the thread runs.

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
"""Numbers of agents below are those of streams, from here on those of tasks in the order of their creation."""

# Elements of Agents.present.
STREAM = 0  # that was asked for last, or -1
AGENT = 1  # its agent
TASKS = 2  # explicit ones so far


class Agents(NamedTuple):
    """The agent of each stream, and of each task."""

    present: NDArray[np.int64]
    streams: HashTable  # by stream: the agent plus 1, 0: the thread
    tasks: HashTable  # by a task's number in events: the same; 0 of implicit ones


@inlined
def agent_of(agents: Any, stream: Any) -> Any:
    """The agent that does what a stream records now."""
    if agents.present[STREAM] != stream:
        known = np.int64(agents.streams.rows[row_of(agents.streams, stream)].agent)
        agents.present[STREAM] = stream
        agents.present[AGENT] = known - 1 if known != 0 else stream
    return agents.present[AGENT]


@kernel
def task_made(agents: Agents, flags: Any, task: Any, stream: Any) -> Any:
    """A task is created; returns its agent."""
    agent = np.int64(agent_of(agents, stream))
    if flags & UNDEFERRED == 0:
        agent = FIRST_TASK + agents.present[TASKS]
        agents.present[TASKS] += 1
    agents.tasks.rows[row_of(agents.tasks, task)].agent = agent + 1
    return agent


@kernel
def task_left(agents: Agents, status: Any, following: Any, stream: Any) -> None:
    """A stream leaves a task and goes on with the `following` one."""
    if following != 0 and status not in FULFILLED:
        known = np.int64(agents.tasks.rows[row_of(agents.tasks, following)].agent)
        agents.streams.rows[row_of(agents.streams, stream)].agent = known
        agents.present[STREAM] = -1
