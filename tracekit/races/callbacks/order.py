"""What the race detector does at events that order threads: creation and end, locks, barriers, atomic operations."""

from __future__ import annotations

import numpy as np

from tracekit.races.kernels import history, resources, shares
from tracekit.races.kernels.lanes import note_call
from tracekit.races.kernels.lock_orders import settle
from tracekit.races.kernels.locks import call_outside, end_thread, give_up_lock, is_waiting, take_lock, takes_plainly
from tracekit.races.kernels.order import (
    acquire_object,
    begin_thread,
    create_thread,
    enter_barrier,
    join_thread,
    leave_barrier,
    make_barrier,
    operate,
    pass_barrier,
    pass_fence,
    release_object,
    running,
    start_program,
)
from tracekit.races.kernels.state import CALLS_BACK, OUTSIDE, TAKES, TRIES_LOCK, State


class OrderCallbacks:
    """Threads and what they synchronise by."""

    @staticmethod
    def program_start(state: State, stream: int) -> None:
        """The process begins, or a forked one."""
        start_program(state, stream)

    @staticmethod
    def thread_create(state: State, stream: int, context: int, own_stream: int) -> None:
        """A thread is made."""
        create_thread(state, running(state, own_stream), stream, context)

    @staticmethod
    def thread_start(state: State, stream: int) -> None:
        """It runs."""
        begin_thread(state, stream)

    @staticmethod
    def thread_exit(state: State, stream: int) -> None:
        """It ends."""
        end_thread(state, stream)

    @staticmethod
    def thread_join(state: State, stream: int, own_stream: int) -> None:
        """It has ended."""
        join_thread(state, running(state, own_stream), stream)

    @staticmethod
    def thread_memory(state: State, address: int, size: int) -> None:
        """Its stack was another's."""
        history.forget(state, address, size)

    @staticmethod
    def lock(state: State, address: int, stream: int, group: int, offset: int) -> None:
        """A lock was got."""
        is_plain = takes_plainly(state, stream, address)
        take_lock(state, running(state, stream), address, 0, is_plain, group, offset)
        shares.draw(state)

    @staticmethod
    def lock_shared(state: State, address: int, stream: int, group: int, offset: int) -> None:
        """By a reader."""
        takes_plainly(state, stream, address)
        take_lock(state, running(state, stream), address, 1, False, group, offset)

    @staticmethod
    def unlock(state: State, address: int, stream: int, group: int, object: int, offset: int) -> None:
        """It is given up."""
        if running(state, stream) != 0:
            resources.use_on(state, address, (address, group, object, offset))
            settle(state, np.uint64(0), (address, group, object, offset))
        give_up_lock(state, running(state, stream), address, is_waiting(state, stream))

    @staticmethod
    def release(state: State, address: int, thread: int, stream: int) -> None:
        """A semaphore is posted, ..."""
        release_object(state, stream, thread, address)

    @staticmethod
    def acquire(state: State, address: int, thread: int, stream: int) -> None:
        """And waited for."""
        acquire_object(state, stream, thread, address)

    @staticmethod
    def barrier_init(state: State, address: int, count: int) -> None:
        """A barrier is made."""
        make_barrier(state, address, count)

    @staticmethod
    def barrier_enter(state: State, address: int, stream: int) -> None:
        """A thread arrives."""
        enter_barrier(state, running(state, stream), address)

    @staticmethod
    def barrier_leave(state: State, address: int, stream: int, group: int, object: int, offset: int) -> None:
        """And goes on."""
        leave_barrier(state, running(state, stream), address)
        if running(state, stream) != 0:
            resources.use_on(state, address, (address, group, object, offset))
            settle(state, np.uint64(0), (address, group, object, offset))

    @staticmethod
    def barrier(state: State, address: int, stream: int) -> None:
        """What older recorders say of a barrier."""
        pass_barrier(state, running(state, stream), address)

    @staticmethod
    def atomic(state: State, address: int, order: int, stream: int) -> None:
        """An atomic operation."""
        operate(state, running(state, stream), address, order)

    @staticmethod
    def fence(state: State, order: int, stream: int) -> None:
        """A fence."""
        pass_fence(state, running(state, stream), order)

    # -- what libraries do out of sight --

    @staticmethod
    def external_call(state: State, instruction: int, stream: int) -> None:
        """One was called."""
        call_outside(state, stream, history.kind_of(state, instruction) & (OUTSIDE | TRIES_LOCK | TAKES))

    @staticmethod
    def function_entry(state: State, call: int, stream: int) -> None:
        """One calls back, or a lane of a SIMD loop calls a function of the program."""
        note_call(state, stream, call)
        call_outside(state, stream, history.kind_of(state, call) & CALLS_BACK)
