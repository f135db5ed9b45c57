"""Memory dependences between instructions: flow, or all kinds; with counts, distances, contexts, as asked for.

PROMPT's dependence profiler and its ladder of options (Table 5). A dependence is (source, destination, kind): both
touch a common byte, and no store to that byte lies between. Dependences are found within a thread; memory that is
allocated or freed loses its history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import Count, Module, option
from tracekit.replay import carried, ladder, maps, shadows
from tracekit.replay.contextstate import empty_stream
from tracekit.replay.dependence_state import empty_state
from tracekit.replay.found import found
from tracekit.replay.hottest import with_loop
from tracekit.replay.kernels.carried import Carried
from tracekit.replay.kernels.dependence import (
    State,
    Wanted,
    in_context,
    interrupt,
    loaded,
    passed_by,
    stored,
    without_context,
)
from tracekit.replay.kernels.dependence import forget as forget_history
from tracekit.replay.kernels.shadows import Shadow, clear, reading, turn_to, writing
from tracekit.replay.kernels.sharing import Part
from tracekit.replay.ladder_join import join_dependences

OBJECT_EVENTS = ("heap_alloc", "heap_free", "stack_alloc", "stack_free", "global_init")
OTHER_EVENTS = ("function_entry", "function_exit", "loop_invocation", "loop_iteration", "loop_exit", "external_call")


@dataclass(frozen=True)
class Options:
    """What to find out."""

    counts: bool = option(False, "Count the executions of the destination that had the dependence.")
    kinds: str = option("raw", "Kinds of dependences, any of raw, war, waw.", "KINDS")
    distance: bool = option(False, "In which loops it is carried, and over how many iterations.")
    context: bool = option(False, "Tell calling and loop contexts apart at both ends.")
    carried_by: str = option("", "Only what this loop carries; `hottest`: that of --loop, or the one with the most "
                             "accesses of those that were iterated.", "FILE:LINE")

    def __post_init__(self) -> None:
        ladder.check_kinds(self.kinds)
        if self.carried_by != "hottest":
            ladder.check_place(self.carried_by)


# -- flow dependences ------------------------------------------------------------------------------

KNOWN = 8
"""Sources of an instruction that are found without the map."""


class Flow(NamedTuple):
    """For each byte the instruction that stored it, plus 1."""

    memory: Shadow
    known: Any  # [instruction * KNOWN + way]: sources that an instruction depended on lately, for they come again
    found: maps.CountTable  # by source << 32 | destination


def load(state: Flow, instruction: int, address: int, size: int, stream: int) -> None:
    """Note who stored the bytes."""
    turn_to(state.memory, stream)
    instruction = min(instruction, state.known.size // KNOWN - 1)
    for row in reading(state.memory, address, size):
        source = state.memory.rows[row]
        way = np.uint64(instruction * KNOWN + (source & (KNOWN - 1)))
        if source != 0 and source != state.known[way]:
            state.known[way] = source
            maps.count(state.found, (np.int64(source) << 32) | instruction)


def store(state: Flow, instruction: int, address: int, size: int, stream: int) -> None:
    """Remember the store."""
    turn_to(state.memory, stream)
    for row in writing(state.memory, address, size):
        state.memory.rows[row] = min(instruction, state.known.size // KNOWN - 1) + 1


def forget(state: Any, address: int, size: int) -> None:
    """Memory that begins or ends has no history."""
    clear(state.memory, address, size)


# -- the ladder ------------------------------------------------------------------------------------


class Ladder(NamedTuple):
    """The state of all rungs above flow dependences."""

    history: State
    wanted: Wanted
    idle: Any  # levels of a stream without any


def load_any(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, start: int, whole: int,
             mine: int) -> None:
    """Without loops and contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, state.idle, instruction, address, stream, time, 0, part):
        access = without_context(state.history, instruction)
        loaded(state.history, state.wanted, state.idle, instruction, access, address, size, stream, time, part)


def store_any(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, start: int, whole: int,
              mine: int) -> None:
    """Without loops and contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, state.idle, instruction, address, stream, time, 1, part):
        access = without_context(state.history, instruction)
        stored(state.history, state.wanted, state.idle, instruction, access, address, size, stream, time, part)


def load_in_loops(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                  start: int, whole: int, mine: int) -> None:
    """With loops, without contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, levels, instruction, address, stream, time, 0, part):
        access = without_context(state.history, instruction)
        loaded(state.history, state.wanted, levels, instruction, access, address, size, stream, time, part)


def store_in_loops(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                   start: int, whole: int, mine: int) -> None:
    """With loops, without contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, levels, instruction, address, stream, time, 1, part):
        access = without_context(state.history, instruction)
        stored(state.history, state.wanted, levels, instruction, access, address, size, stream, time, part)


def load_in_context(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                    context: int, start: int, whole: int, mine: int) -> None:
    """With contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, levels, instruction, address, stream, time, 0, part):
        access = in_context(state.history, levels, instruction, context)
        loaded(state.history, state.wanted, levels, instruction, access, address, size, stream, time, part)


def store_in_context(state: Ladder, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                     context: int, start: int, whole: int, mine: int) -> None:
    """With contexts."""
    instruction, part = min(instruction, state.history.known.size - 1), Part(start, whole, mine)
    if not passed_by(state.history, levels, instruction, address, stream, time, 1, part):
        access = in_context(state.history, levels, instruction, context)
        stored(state.history, state.wanted, levels, instruction, access, address, size, stream, time, part)


def forget_any(state: Ladder, address: int, size: int, stream: int) -> None:
    """Memory that begins or ends has no history."""
    forget_history(state.history, state.idle, address, size, stream)


def forget_in_loops(state: Ladder, address: int, size: int, stream: int, levels: Any) -> None:
    """The same, with loops."""
    forget_history(state.history, levels, address, size, stream)


def interrupt_any(state: Ladder, stream: int) -> None:
    """Another event ends an execution."""
    interrupt(state.history, state.idle, stream)


def interrupt_in_loops(state: Ladder, stream: int, levels: Any) -> None:
    """The same, with loops."""
    interrupt(state.history, levels, stream)


class Dependence(Module):
    """One row for each dependence."""

    Options = Options
    decoupled = "address"

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.loops = bool(options.distance or options.carried_by)
        self.flow = options.kinds == "raw" and not (options.counts or options.context or self.loops)
        place = ladder.place_of(options.carried_by) if options.carried_by else None
        plain = options.kinds == "raw" and not (options.counts or options.context or options.distance)
        self.place = place if plain and carried.fits(program) else None
        """The loop, if that is all that is asked for: then there is a shorter way."""
        self.costly = not (self.flow or self.place)

    @classmethod
    def settled(cls, options: Any, loop: tuple[str, int] | None, count: Count) -> Any:
        """The hottest loop by its place."""
        return with_loop(options, loop, count)

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks for these options."""
        if self.flow:
            return {"load": load, "store": store} | dict.fromkeys(OBJECT_EVENTS, forget)
        if self.place:
            return carried.CALLBACKS
        functions: Sequence[Callable[..., None]] = (load_any, store_any, forget_any, interrupt_any)
        if self.options.context:
            functions = (load_in_context, store_in_context, forget_in_loops, interrupt_in_loops)
        elif self.loops:
            functions = (load_in_loops, store_in_loops, forget_in_loops, interrupt_in_loops)
        on_load, on_store, on_object, on_other = functions
        return {"load": on_load, "store": on_store} | dict.fromkeys(OBJECT_EVENTS, on_object) | dict.fromkeys(
            OTHER_EVENTS, on_other)

    def state(self) -> Flow | Ladder | Carried:
        """Nothing is known."""
        if self.place:
            return carried.carried_by(self.program, self.place)
        instructions = len(self.program.ops) + 1
        if self.flow:
            known = np.zeros(instructions * KNOWN, np.uint32)
            return Flow(shadows.empty("u4", per_stream=True), known, maps.count_map())
        kinds = self.options.kinds.split(",")
        wanted = Wanted(raw=int("raw" in kinds), war=int("war" in kinds), waw=int("waw" in kinds),
                        loops=int(self.loops), histogram=int(self.options.distance), profile=0)
        return Ladder(empty_state(self.program), wanted, empty_stream(0, 1))

    def merge(self, states: Sequence[Any]) -> Any:
        """What all workers found."""
        if not (self.flow or self.place):
            return found([state.history for state in states])
        if len(states) == 1:
            return states[0]
        return states[0]._replace(found=maps.merge([state.found for state in states]))

    def result(self, state: Any) -> dict[str, Any]:
        """Rows by kind, source, destination, contexts; a column that was not asked for is left out."""
        if self.flow or self.place:
            return {"dependences": ladder.flow_rows(self.program, maps.rows(state.found)["key"])}
        return {"dependences": ladder.rows(self, state)}

    @classmethod
    def join(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """The dependences of all runs; with carried-by a run counts for those that it showed the loop to carry."""
        return {"result": {"dependences": join_dependences([each["result"]["dependences"] for each in profiles])}}


MODULE = Dependence
