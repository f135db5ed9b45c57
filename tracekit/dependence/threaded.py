"""The callbacks of the dependence family with --threads: what a module finds without, and one history for all threads.

One worker has all accesses, so an access is never given in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracekit.contexts.kernels.allocation_site import allocation_site
from tracekit.contexts.kernels.roles import created, entered
from tracekit.dependence.inter_thread import empty_inter_thread
from tracekit.dependence.kernels.agents import FIRST_TASK, agent_of, task_left, task_made
from tracekit.dependence.kernels.dependence import (
    ENDING,
    Access,
    Detail,
    State,
    change_object,
    forget,
    interrupt,
    load_access,
    store_access,
)
from tracekit.dependence.kernels.executions import NUMBER
from tracekit.dependence.kernels.inter_thread import InterThread, forgotten, loaded, stored
from tracekit.dependence.kernels.sharding import Part
from tracekit.dependence.state import empty_state
from tracekit.formats.events import CONTEXT_EVENTS
from tracekit.jit.kernel import inlined
from tracekit.objects.kernels.live import GLOBAL, HEAP, STACK
from tracekit.program.program import Program


class Threaded(NamedTuple):
    """The state of a module with --threads."""

    own: State  # as without: the dependences of each thread by itself
    inter_thread: InterThread
    detail: Detail


def empty_threaded(program: Program, detail: Detail) -> Threaded:
    """Nothing is known."""
    return Threaded(empty_state(program), empty_inter_thread(program), detail)


def load(state: Threaded, instruction: int, address: int, size: int, stream: int, time: int, levels: Any) -> None:
    """A load, contexts not told apart."""
    access = Access(instruction, address, size, stream, time)
    load_access(state.own, state.detail, levels, None, access, Part(address, 1, 1))
    loaded(state.inter_thread, state.detail, 0, access, state.own.runs.control[NUMBER])


def store(state: Threaded, instruction: int, address: int, size: int, stream: int, time: int, levels: Any) -> None:
    """A store, contexts not told apart."""
    access = Access(instruction, address, size, stream, time)
    store_access(state.own, state.detail, levels, None, access, Part(address, 1, 1))
    stored(state.inter_thread, state.detail, 0, access, state.own.runs.control[NUMBER])


def load_in_context(
    state: Threaded, instruction: int, address: int, size: int, stream: int, time: int, levels: Any, context: int
) -> None:
    """A load in its context."""
    access = Access(instruction, address, size, stream, time)
    load_access(state.own, state.detail, levels, context, access, Part(address, 1, 1))
    loaded(state.inter_thread, state.detail, context, access, state.own.runs.control[NUMBER])


def store_in_context(
    state: Threaded, instruction: int, address: int, size: int, stream: int, time: int, levels: Any, context: int
) -> None:
    """A store in its context."""
    access = Access(instruction, address, size, stream, time)
    store_access(state.own, state.detail, levels, context, access, Part(address, 1, 1))
    stored(state.inter_thread, state.detail, context, access, state.own.runs.control[NUMBER])


@inlined
def _begin_object(state: Any, kind: Any, site: Any, address: Any, size: Any, stream: Any, levels: Any) -> None:
    forget(state.own, levels, address, size, stream)
    if state.detail.profile:
        change_object(state.own, kind, site, address, size)
    forgotten(state.inter_thread, address, size)


def heap_alloc(state: Threaded, instruction: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    site = allocation_site(state.own.in_wrapper, instruction, levels)
    _begin_object(state, HEAP, site, address, size, stream, levels)


def stack_alloc(state: Threaded, instruction: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    _begin_object(state, STACK, instruction, address, size, stream, levels)


def global_init(state: Threaded, object: int, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory begins without history."""
    _begin_object(state, GLOBAL, object, address, size, stream, levels)


def free(state: Threaded, address: int, size: int, stream: int, levels: Any) -> None:
    """Memory ends, and its history with it."""
    _begin_object(state, ENDING, 0, address, size, stream, levels)


def thread_memory(state: Threaded, address: int, size: int) -> None:
    """The stack of a new thread, which was another's; or what a task has of its own."""
    forgotten(state.inter_thread, address, size)


def function_entry(state: Threaded, function: int, stream: int, levels: Any) -> None:
    """An execution ends; what a thread or task begins with is its role."""
    interrupt(state.own, levels, stream)
    entered(state.inter_thread.roles, function, agent_of(state.inter_thread.agents, stream))


def thread_create(state: Threaded, stream: int, context: int) -> None:
    """A thread is made."""
    created(state.inter_thread.roles, stream, context)


def task_create(state: Threaded, flags: int, task: int, stream: int) -> None:
    """A task is made, contexts not told apart."""
    task_made(state.inter_thread.agents, flags, task, stream)


def task_create_in_context(state: Threaded, flags: int, task: int, stream: int, context: int) -> None:
    """A task is made in a context."""
    agent = task_made(state.inter_thread.agents, flags, task, stream)
    if agent >= FIRST_TASK:
        created(state.inter_thread.roles, agent, context)


def task_schedule(state: Threaded, status: int, next: int, stream: int) -> None:
    """A thread goes from one task to another."""
    task_left(state.inter_thread.agents, status, next, stream)


def other(state: Threaded, stream: int, levels: Any) -> None:
    """What is no load or store ends an execution."""
    interrupt(state.own, levels, stream)


_ALIKE: dict[str, Callable[..., None]] = {
    "heap_alloc": heap_alloc,
    "heap_free": free,
    "stack_alloc": stack_alloc,
    "stack_free": free,
    "global_init": global_init,
    "thread_memory": thread_memory,
    "task_memory": thread_memory,
    "task_create": task_create,
    "task_schedule": task_schedule,
    **dict.fromkeys((*CONTEXT_EVENTS, "external_call"), other),
    "function_entry": function_entry,
}
CALLBACKS: dict[str, Callable[..., None]] = {"load": load, "store": store, **_ALIKE}
"""Without contexts."""
CALLBACKS_IN_CONTEXT: dict[str, Callable[..., None]] = {
    "load": load_in_context,
    "store": store_in_context,
    "thread_create": thread_create,
    **_ALIKE,
    "task_create": task_create_in_context,
}
