"""What the numbers in fields of events mean: orders of atomics, OpenMP's regions and tasks, MPI's collectives."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class AtomicOrder(IntFlag):
    """What an atomic operation or fence does, and what it orders: `order` of the events atomic and fence."""

    LOAD = 1
    STORE = 2
    ACQUIRE = 4
    RELEASE = 8
    SIZE = 16  # times 1 + the binary logarithm of how many bytes an operation is of


class SyncKind(IntEnum):
    """What was released or acquired: `kind` of the events release and acquire."""

    SEMAPHORE = 1
    ONCE = 2  # also the initialisation of a static variable
    DESCRIPTOR = 3  # a pipe, a socket, an eventfd: the event's address is none


class SyncRegion(IntEnum):
    """What a task waits for, as OMPT numbers it: `kind` of the events sync_begin, sync_waited and sync_end."""

    BARRIER = 1
    BARRIER_IMPLICIT = 2
    BARRIER_EXPLICIT = 3
    BARRIER_IMPLEMENTATION = 4
    TASKWAIT = 5
    TASKGROUP = 6
    REDUCTION = 7
    BARRIER_IMPLICIT_WORKSHARE = 8
    BARRIER_IMPLICIT_PARALLEL = 9
    BARRIER_TEAMS = 10


class TaskFlag(IntFlag):
    """What a task is, as OMPT numbers it: `flags` of the event task_create."""

    INITIAL = 0x1
    IMPLICIT = 0x2
    EXPLICIT = 0x4
    TARGET = 0x8
    TASKWAIT = 0x10
    UNDEFERRED = 0x0800_0000
    UNTIED = 0x1000_0000
    FINAL = 0x2000_0000
    MERGEABLE = 0x4000_0000
    MERGED = 0x8000_0000


class TaskStatus(IntEnum):
    """Why a stream leaves a task, as OMPT numbers it: `status` of the event task_schedule."""

    COMPLETE = 1
    YIELD = 2
    CANCEL = 3
    DETACH = 4
    EARLY_FULFILL = 5
    LATE_FULFILL = 6
    SWITCH = 7
    TASKWAIT_COMPLETE = 8


class TaskDependence(IntEnum):
    """How a task depends on others, as OMPT numbers it: `kind` of the event task_dependence."""

    IN = 1
    OUT = 2
    INOUT = 3
    MUTEXINOUTSET = 4
    SOURCE = 5
    SINK = 6
    INOUTSET = 7
    OUT_ALL_MEMORY = 34
    INOUT_ALL_MEMORY = 35


class OpenmpMutex(IntEnum):
    """What was acquired, as OMPT numbers it: `kind` of the events mutex_acquired and mutex_released."""

    LOCK = 1
    TEST_LOCK = 2
    NEST_LOCK = 3
    TEST_NEST_LOCK = 4
    CRITICAL = 5
    ATOMIC = 6
    ORDERED = 7


class Work(IntEnum):
    """What is shared out to a team's threads, as OMPT numbers it: `kind` of the events work_begin and work_end."""

    LOOP = 1
    SECTIONS = 2
    SINGLE_EXECUTOR = 3  # the thread runs the region
    SINGLE_OTHER = 4  # it does not
    WORKSHARE = 5
    DISTRIBUTE = 6
    TASKLOOP = 7
    SCOPE = 8
    LOOP_STATIC = 10
    LOOP_DYNAMIC = 11
    LOOP_GUIDED = 12
    LOOP_OTHER = 13


class MpiCollective(IntEnum):
    """A collective operation of MPI: `operation` of the event mpi_collective."""

    BARRIER = 1
    BROADCAST = 2
    REDUCE = 3
    ALLREDUCE = 4
    SCAN = 5
    EXSCAN = 6
    REDUCE_SCATTER = 7
    GATHER = 8
    ALLGATHER = 9
    SCATTER = 10
    ALLTOALL = 11
