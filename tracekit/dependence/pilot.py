"""What goes ahead of the analysis of a trace in segments: the last store of each byte, and what objects there are.

A segment can be analysed by itself if it is known who stored each byte last before it, in which context and at which
clock, and which objects live. A pass that looks at nothing else finds that out. What was loaded before a segment, it
does not look at: kernels/open_stores.py says how the dependences on that are found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels.clearing import clear, dirty_pages
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.containers.kernels.initial_pages import STORED
from tracekit.containers.kernels.shadow import Shadow, turn_to, writing
from tracekit.contexts.kernels.iterations import is_in_loop
from tracekit.contexts.kernels.streams import CLOCK
from tracekit.contexts.state import empty_stream
from tracekit.dependence.kernels.accesses import access_in
from tracekit.dependence.kernels.dependence import ENDING, allocate, change_object
from tracekit.dependence.kernels.dependence_table import DependenceTable
from tracekit.dependence.kernels.final_stores import FinalStores, by_access
from tracekit.dependence.state import empty_relations
from tracekit.formats.events import OBJECT_EVENTS
from tracekit.jit.kernel import inlined
from tracekit.modules.contract import Module
from tracekit.objects.kernels.live import GLOBAL, STACK
from tracekit.program.program import Program
from tracekit.translation.identities import empty_objects
from tracekit.translation.kernels.identities import Objects
from tracekit.translation.translation import in_wrapper


class PilotState(NamedTuple):
    """What is known at one moment."""

    memory: Shadow  # STORED
    dirty: NDArray[np.uint8]  # [page of the shadow]: 1 if it has changed since the last segment began
    relations: DependenceTable  # the accesses alone
    access: NDArray[np.int64]
    known: NDArray[Any]
    objects: Objects
    identities: HashTable
    in_wrapper: NDArray[np.uint8]
    final: FinalStores
    idle: Any  # levels of a stream without any


@inlined
def _stored(
    state: Any, levels: Any, context: Any, instruction: Any, address: Any, size: Any, stream: Any, time: Any
) -> None:
    """Remember a store."""
    turn_to(state.memory, stream)
    access = access_in(state, levels, min(instruction, state.access.size - 1), context)
    stored = by_access(state.final, access, time)
    for row in writing(state.memory, address, size):
        state.memory.rows[row].store = stored
        state.memory.rows[row].stamp = levels.control[CLOCK]
    dirty_pages(state.memory, state.dirty, address, size)


def store_in_context(
    state: PilotState,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    context: int,
) -> None:
    """With contexts. (Whoever asks for the time has loads counted.)"""
    _stored(state, levels, context, instruction, address, size, stream, time)


def store_in_loops(
    state: PilotState, instruction: int, address: int, size: int, stream: int, time: int, levels: Any
) -> None:
    """With loops, without contexts."""
    _stored(state, levels, None, instruction, address, size, stream, time)


def store_any(state: PilotState, instruction: int, address: int, size: int, stream: int, time: int) -> None:
    """Without loops and contexts."""
    _stored(state, state.idle, None, instruction, address, size, stream, time)


@inlined
def _stored_in_loop(
    state: Any,
    levels: Any,
    context: Any,
    instruction: Any,
    address: Any,
    size: Any,
    step: Any,
    count: Any,
    stream: Any,
    time: Any,
    period: Any,
) -> None:
    """Remember stores in consecutive iterations of the innermost loop."""
    turn_to(state.memory, stream)
    access = access_in(state, levels, min(instruction, state.access.size - 1), context)
    clock, ticks = levels.control[CLOCK], is_in_loop(levels)
    for number in range(count):
        stored = by_access(state.final, access, time + number * period)
        for row in writing(state.memory, address, size):
            state.memory.rows[row].store = stored
            state.memory.rows[row].stamp = clock
        dirty_pages(state.memory, state.dirty, address, size)
        address += step
        clock += ticks


def stores_in_context(
    state: PilotState,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
    context: int,
) -> None:
    """With contexts."""
    _stored_in_loop(state, levels, context, instruction, address, size, step, count, stream, time, period)


def stores_in_loops(
    state: PilotState,
    instruction: int,
    address: int,
    size: int,
    step: int,
    count: int,
    stream: int,
    time: int,
    period: int,
    levels: Any,
) -> None:
    """With loops, without contexts."""
    _stored_in_loop(state, levels, None, instruction, address, size, step, count, stream, time, period)


@inlined
def _forget(state: Any, address: Any, size: Any) -> None:
    if size > 0:
        clear(state.memory, address, size)
        dirty_pages(state.memory, state.dirty, address, size)


def forget(state: PilotState, address: int, size: int) -> None:
    """Memory that begins or ends has no history."""
    _forget(state, address, size)


def heap_alloc(state: PilotState, instruction: int, address: int, size: int, levels: Any) -> None:
    """A heap block begins."""
    _forget(state, address, size)
    allocate(state, levels, instruction, address, size)


def stack_alloc(state: PilotState, instruction: int, address: int, size: int) -> None:
    """A local variable begins."""
    _forget(state, address, size)
    change_object(state, STACK, instruction, address, size)


def global_init(state: PilotState, object: int, address: int, size: int) -> None:
    """A global begins."""
    _forget(state, address, size)
    change_object(state, GLOBAL, object, address, size)


def free(state: PilotState, address: int, size: int) -> None:
    """An object ends."""
    _forget(state, address, size)
    change_object(state, ENDING, 0, address, size)


def external_call(state: PilotState) -> None:
    """The context manager alone notes it."""


OBJECTS: dict[str, Callable[..., None]] = {
    "heap_alloc": heap_alloc,
    "heap_free": free,
    "stack_alloc": stack_alloc,
    "stack_free": free,
    "global_init": global_init,
}


class Pilot(Module):
    """The pass ahead. `context`, `loops`: what the analysis tells apart; `objects`: whether it names objects; `final`:
    what an earlier pass found, if the analysis looks at loads.
    """

    def __init__(
        self, program: Program, options: Any, context: bool, loops: bool, objects: bool, final: FinalStores
    ) -> None:
        super().__init__(program, options)
        self.final = final
        self.on_store = store_in_context if context else store_in_loops if loops else store_any
        self.on_stores = stores_in_context if context else stores_in_loops if loops else None
        self.objects = objects

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """For stores and objects."""
        objects = OBJECTS if self.objects else dict.fromkeys(OBJECT_EVENTS, forget)
        return {"store": self.on_store, "external_call": external_call, **objects}

    def range_callbacks(self) -> dict[str, Callable[..., None]]:
        """For the stores of loops; where these are not looked at, the analysis takes accesses one by one, too."""
        return {} if self.on_stores is None else {"stores": self.on_stores}

    def state(self) -> PilotState:
        """Nothing is known."""
        memory = shadow.empty(STORED, per_stream=True)
        known, relations = empty_relations()
        return PilotState(
            memory=memory,
            dirty=arena.reserve("u1", len(memory.pages)),
            relations=relations,
            access=np.zeros(len(self.program.ops) + 1, np.int64),
            known=known,
            objects=empty_objects(),
            identities=hash_table([]),
            in_wrapper=in_wrapper(self.program),
            final=self.final,
            idle=empty_stream(0, 1),
        )

    def result(self, state: PilotState) -> dict[str, Any]:
        """It is no analysis by itself."""
        raise NotImplementedError
