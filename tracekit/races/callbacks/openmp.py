"""What the race detector does at events of OpenMP: teams, tasks, and loops whose iterations run at once."""

from __future__ import annotations

import numpy as np

from tracekit.races.kernels import dependences, history, lanes, resources, shares, tasks
from tracekit.races.kernels.lock_orders import settle
from tracekit.races.kernels.locks import give_up_lock, take_lock
from tracekit.races.kernels.order import running
from tracekit.races.kernels.state import SHARED_LOOP, State


class OpenmpCallbacks:
    """Logical tasks, lanes of SIMD loops, parts of loops that threads share."""

    # -- logical tasks --

    @staticmethod
    def openmp_thread(state: State, type: int, stream: int) -> None:
        """A thread is known to OpenMP's runtime."""
        tasks.know_thread(state, running(state, stream), type)

    @staticmethod
    def own_memory(state: State, address: int, size: int, stream: int) -> None:
        """Thread-local variables, copies for reductions."""
        tasks.own_bytes(state, stream, address, size)

    @staticmethod
    def task_memory(state: State, address: int, size: int) -> None:
        """Arguments and private variables of a task are new."""
        history.forget(state, address, size)

    @staticmethod
    def parallel_begin(state: State, instruction: int, team: int, threads: int, stream: int, context: int) -> None:
        """A team is made."""
        tasks.begin_team(state, running(state, stream), team, context, instruction, threads)

    @staticmethod
    def parallel_end(state: State, team: int) -> None:
        """All of it is over."""
        tasks.end_team(state, team)

    @staticmethod
    def implicit_begin(state: State, index: int, team: int, task: int, stream: int, context: int) -> None:
        """A thread begins with its part of a team."""
        tasks.begin_implicit(state, stream, running(state, stream), index, team, task, context)

    @staticmethod
    def implicit_end(state: State, task: int, stream: int) -> None:
        """And ends it."""
        tasks.end_implicit(state, stream, task)

    @staticmethod
    def task_create(state: State, instruction: int, flags: int, task: int, stream: int, context: int) -> None:
        """A task is made."""
        tasks.create_task(state, running(state, stream), task, flags, context, instruction)

    @staticmethod
    def task_schedule(state: State, status: int, next: int, task: int, stream: int, context: int) -> None:
        """A thread goes from one task to another."""
        tasks.schedule(state, stream, running(state, stream), status, next, task, context)

    @staticmethod
    def task_dependence(state: State, kind: int, address: int, task: int, stream: int) -> None:
        """A task depends on others."""
        dependences.depend(state, running(state, stream), kind, address, task)

    @staticmethod
    def sync_begin(state: State, kind: int, task: int) -> None:
        """A task comes to a barrier, or begins a group."""
        tasks.begin_sync(state, kind, task)

    @staticmethod
    def sync_waited(state: State, kind: int, task: int) -> None:
        """The tasks of a group are over."""
        tasks.end_waiting(state, kind, task)

    @staticmethod
    def sync_end(state: State, kind: int, task: int) -> None:
        """What a task waited for is there."""
        tasks.end_sync(state, kind, task)

    @staticmethod
    def mutex_acquired(state: State, kind: int, address: int, stream: int, group: int, offset: int) -> None:
        """A lock, a critical region."""
        is_plain = kind == tasks.LOCK or kind == tasks.NEST_LOCK or kind == tasks.CRITICAL
        take_lock(state, running(state, stream), address, 0, is_plain, group, offset)
        shares.draw(state)

    @staticmethod
    def mutex_released(state: State, address: int, stream: int, group: int, object: int, offset: int) -> None:
        """It is given up."""
        if running(state, stream) != 0:
            resources.use_on(state, address, (address, group, object, offset))
            settle(state, np.uint64(0), (address, group, object, offset))
        give_up_lock(state, running(state, stream), address, False)

    @staticmethod
    def reduction_begin(state: State, task: int) -> None:
        """A task combines what others reduced."""
        tasks.begin_reduction(state, task)

    @staticmethod
    def reduction_end(state: State, task: int) -> None:
        """It has."""
        tasks.end_reduction(state, task)

    @staticmethod
    def work_begin(state: State, kind: int, stream: int) -> None:
        """A region that any thread of a team might run: `single`."""
        if kind == shares.SINGLE_EXECUTOR or kind == shares.SINGLE_OTHER:
            tasks.pass_single(state, running(state, stream))
        if kind == shares.SINGLE_EXECUTOR:
            shares.begin_single(state, stream)

    @staticmethod
    def work_end(state: State, kind: int, stream: int) -> None:
        """It is over."""
        if kind == shares.SINGLE_EXECUTOR:
            shares.end_single(state, stream)

    # -- lanes of SIMD loops, parts of loops that threads share --

    @staticmethod
    def loop_invocation(state: State, loop: int, stream: int, context: int) -> None:
        """A loop begins with its first iteration."""
        many = lanes.lanes_of(state, loop)
        if many == SHARED_LOOP:
            shares.begin_loop(state, stream, loop)
        elif many > 1:
            lanes.begin_loop(state, stream, loop, context)

    @staticmethod
    def loop_iteration(state: State, loop: int, stream: int) -> None:
        """Another one."""
        many = lanes.lanes_of(state, loop)
        if many == SHARED_LOOP:
            shares.next_iteration(state, stream, loop)
        elif many > 1:
            lanes.next_iteration(state, stream, loop)

    @staticmethod
    def loop_exit(state: State, loop: int, stream: int) -> None:
        """It is over."""
        many = lanes.lanes_of(state, loop)
        if many == SHARED_LOOP:
            shares.end_loop(state, stream, loop)
        elif many > 1:
            lanes.end_loop(state, stream)
