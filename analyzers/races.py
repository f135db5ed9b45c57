"""Data races: two accesses to a common byte, one a store, that nothing orders, with contexts, locks and threads.

Happens-before by vector clocks, exact to the byte and for all accesses: what is reported is a race of this run's order,
whether or not the two came close in time (FastTrack). Atomic operations order threads in programs that were compiled
with ``tracekit cc --threads``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracekit.module import Display, Module, TracekitError, contexts_option, option
from tracekit.races.kernels import dependences, history, lanes, resources, shares, tasks
from tracekit.races.kernels.lock_orders import settle
from tracekit.races.kernels.locks import (
    call_outside,
    end_thread,
    give_up_lock,
    is_waiting,
    note_call,
    take_lock,
    takes_plainly,
)
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
from tracekit.races.kernels.state import (
    BEGIN,
    CALLS_BACK,
    DIRECT,
    END,
    MINGLED,
    OLD_BARRIERS,
    OUTSIDE,
    REORDERS,
    SHARED_LOOP,
    STOPPED,
    TAKES,
    TASKS,
    TEAMS,
    TRIES_LOCK,
    UNKNOWN,
    State,
)
from tracekit.races.rows import RaceRows
from tracekit.races.state import atomic_instructions, empty_state, lanes_of_loops
from tracekit.races.suppressions import Suppressions

OPENMP = ("__kmpc_fork_call", "__kmpc_fork_teams", "GOMP_parallel")
"""Calls by which compilers start parallel regions of OpenMP."""


UNTIL = ("end", "race", "try", "atomic", "fork", "task", "simd", "room")
"""Up to where other orders of locks were looked for, by what stopped that."""


@dataclass(frozen=True)
class RaceOptions:
    """What is left out, what is looked for, and how contexts are told apart."""

    suppress: str = option(
        "", "Leave out races in these functions or files, or those named in FILE.", "KIND:PATTERN,...|@FILE"
    )
    contexts: str = contexts_option()
    lock_orders: bool = option(True, "Find races, too, that only another order of locks has.")

    def __post_init__(self) -> None:
        Suppressions.of(self.suppress)


class Races(Module):
    """One row for each two places that race."""

    whole_because = "clocks of threads and what is known of each byte go on"
    Options = RaceOptions
    stack_objects = True
    compute_bound = True

    def state(self) -> State:
        """No thread, no access."""
        state = empty_state(self.program)
        state.now[REORDERS] = self.options.lock_orders
        return state

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those of loops are for programs with SIMD loops and loops that OpenMP shares out, those of calls for other
        orders of locks."""
        unused = set() if lanes_of_loops(self.program).any() else {"loop_invocation", "loop_iteration", "loop_exit"}
        if not self.options.lock_orders:
            unused |= {"external_call", "function_entry"}
        return {name: function for name, function in super().callbacks().items() if name not in unused}

    # -- what orders threads --

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
        """One calls back."""
        call_outside(state, stream, history.kind_of(state, call) & CALLS_BACK)

    # -- synchronisation objects, file descriptors --

    @staticmethod
    def resource_begin(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """One is initialised or opened: whoever uses it has to come after that."""
        if not history.is_alone(state, stream):
            history.change(state, instruction, context, BEGIN, address, (address, group, object, offset))

    @staticmethod
    def resource_use(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """It is about to be used; by the only thread, too, which may give it up when there are others."""
        if running(state, stream) != 0 and history.kind_of(state, instruction) & DIRECT:
            note_call(state, stream, history.kind_of(state, instruction), address)
            resources.use(state, instruction, context, address, (address, group, object, offset))
            settle(state, np.uint64(0), (address, group, object, offset))

    @staticmethod
    def resource_end(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """It is about to be destroyed or closed: whoever uses it has to come before that."""
        if not history.is_alone(state, stream):
            history.change(state, instruction, context, END, address, (address, group, object, offset))

    # -- logical tasks of OpenMP --

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

    # -- accesses --

    @staticmethod
    def load(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A load."""
        if not history.is_alone(state, stream):
            history.load(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def store(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A store."""
        if not history.is_alone(state, stream):
            history.store(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def heap_free(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A block ends: whoever accesses it, or frees it again, has to come before."""
        if size > 0 and not history.is_alone(state, stream):
            history.free(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def heap_alloc(state: State, address: int, size: int, stream: int) -> None:
        """A block is new."""
        history.forget(state, address, size)
        shares.note_block(state, stream, address)

    @staticmethod
    def stack_alloc(state: State, address: int, size: int, stream: int) -> None:
        """So is a local variable."""
        history.forget(state, address, size)
        shares.note_local(state, stream, address, size)

    @staticmethod
    def global_init(state: State, address: int, size: int) -> None:
        """And what an image brings."""
        history.forget(state, address, size)

    # -- the profile --

    def result(self, state: State) -> dict[str, Any]:
        """The races, and the threads and tasks that they are between; what was not seen."""
        if state.now[TEAMS] == 0 and state.streams.control[0] > 2 and self.uses_openmp():
            raise TracekitError(
                "The program uses OpenMP, and the trace does not say what OpenMP's runtime orders: record it again, "
                "with LLVM's libomp as a shared library and without OMP_TOOL=disabled."
            )
        shown = RaceRows(self, state)
        rows = shown.rows()
        left_out = Suppressions.of(self.options.suppress)
        kept = [row for row in rows if not (left_out.match(row["first"]) or left_out.match(row["second"]))]
        return {
            "summary": {
                "races": len(kept),
                "suppressed": len(rows) - len(kept),
                "threads": len(shown.threads),
                "tasks": int(state.now[TASKS]),
                "mingled_tasks": int(state.now[MINGLED]),
                "accesses_of_no_thread": int(state.now[UNKNOWN]),
                "old_barriers": int(state.now[OLD_BARRIERS]),
                "unordered_atomics": self.unordered_atomics(state),
                **({"lock_orders_until": UNTIL[state.now[STOPPED]]} if self.options.lock_orders else {}),
            },
            "races": kept,
            "threads": shown.thread_rows(kept),
            "tasks": shown.task_rows(kept),
        }

    def uses_openmp(self) -> bool:
        """Whether there are calls by which compilers start parallel regions."""
        return not {self.program.callee_name(row) for row in range(len(self.program.calls))}.isdisjoint(OPENMP)

    def unordered_atomics(self, state: State) -> int:
        """Atomic instructions that ran beside other threads, and whose order is not in the trace."""
        if self.program.has_atomic_order:
            return 0
        return int(
            (atomic_instructions(self.program)[:-1] & (state.recent["site"].reshape(-1, 2)[:-1].any(axis=1))).sum()
        )


DISPLAY = Display(
    text="tracekit.render.races:races_text",
    failed="tracekit.render.races:has_races",
    heading="Data races",
    columns={
        "races": "first:end second:end count object:object number offset one_thread",
        "threads": "thread function creator created_in:context",
        "tasks": "task kind instruction:instruction created_in:context",
    },
)
MODULE = Races
