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

from tracekit.formats.errors import TracekitError
from tracekit.module import Module, inlined, option
from tracekit.replay import carried, ladder, maps, shadows
from tracekit.replay.kernels import runs
from tracekit.replay.kernels.carried import Carried
from tracekit.replay.kernels.contexts import ACCESSES, CLOCK, CONTEXT, DEPTH
from tracekit.replay.kernels.readers import Readers, add_reader, collect, drop_readers
from tracekit.replay.kernels.relating import RAW, WAR, WAW, Relations, access_of, place, relate
from tracekit.replay.kernels.runs import Runs
from tracekit.replay.kernels.shadows import Shadow, changing, clear, reading, turn_to, writing
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
    carried_by: str = option("", "Only what this loop carries; `hottest`: the one with the most accesses.", "FILE:LINE")

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

HISTORY = np.dtype([("store", "<u4"), ("readers", "<u4"), ("stamp", "<i8")])


class Wanted(NamedTuple):
    """Which kinds are wanted, and whether the loops that carry them and the distances are."""

    raw: int
    war: int
    waw: int
    loops: int
    distance: int


class State(NamedTuple):
    """For each byte its last store, when that was, and the loads since."""

    memory: Shadow
    readers: Readers
    relations: Relations
    runs: Runs
    wanted: Wanted
    known: Any  # [instruction]: context << 32 | its access there
    idle: Any  # levels of a stream without any


@inlined
def depends(state: Any, levels: Any, kind: Any, source: Any, access: Any, stamp: Any, now: Any) -> None:
    """A byte of an access depends on an earlier one."""
    accesses = state.relations.accesses.rows
    row = relate(state.relations, kind, accesses[source].printed, accesses[access].printed, now)
    if state.wanted.loops:
        place(state.relations, levels, row, stamp, np.int64(accesses[source].depth), now, state.wanted.distance)


@inlined
def loaded(state: Any, levels: Any, instruction: Any, access: Any, address: Any, size: Any, stream: Any,
           time: Any) -> None:
    """A load depends on the stores of its bytes."""
    now = runs.begin(state.runs, state.readers, state.memory, levels, instruction, stream, time, 0)
    stamp = levels.control[CLOCK]
    if state.wanted.raw:
        for row in reading(state.memory, address, size):
            known = state.memory.rows[row]
            if known.store != 0:
                depends(state, levels, RAW, np.int64(known.store), access, known.stamp, now)
    if state.wanted.war:
        if state.runs.updating[np.uint64(instruction)] != 0:
            runs.wait(state.runs, access, stamp, address, size)
        else:
            for row in changing(state.memory, address, size):
                add_reader(state.readers, state.memory, row, access, stamp, levels)
        collect(state.readers, state.memory)


@inlined
def stored(state: Any, levels: Any, instruction: Any, access: Any, address: Any, size: Any, stream: Any,
           time: Any) -> None:
    """A store depends on the stores of its bytes, and on the loads since."""
    now = runs.begin(state.runs, state.readers, state.memory, levels, instruction, stream, time, 1)
    if state.wanted.waw or state.wanted.war:
        for row in reading(state.memory, address, size):
            known = state.memory.rows[row]
            kind, source, stamp = WAW, np.int64(known.store) * state.wanted.waw, known.stamp
            entry = np.int64(known.readers)
            earliest = False  # of an entry both ends count: first the latest load, then the earliest
            while True:
                if source != 0:
                    depends(state, levels, kind, source, access, stamp, now)
                if entry == 0:
                    break
                reader = state.readers.rows[entry]
                kind, source, stamp = WAR, np.int64(reader.access), reader.earliest
                if not earliest:
                    stamp = reader.latest
                earliest = not earliest and reader.earliest != reader.latest
                if not earliest:
                    entry = np.int64(reader.next)
    if state.runs.waiting.control[0] > 1:
        runs.cut(state.runs.waiting, address, address + size)
    for row in writing(state.memory, address, size):
        drop_readers(state.readers, state.memory, row)
        state.memory.rows[row].store = access
        state.memory.rows[row].stamp = levels.control[CLOCK]


@inlined
def without_context(state: Any, instruction: Any) -> Any:
    """The access of an instruction, whatever its context."""
    access = np.int64(state.known[np.uint64(instruction)])
    if access == 0:
        access = access_of(state.relations, instruction, 0, 0, 0)
        state.known[np.uint64(instruction)] = access
    return access


@inlined
def in_context(state: Any, levels: Any, instruction: Any, context: Any) -> Any:
    """The access of an instruction in the present context."""
    known = np.int64(state.known[np.uint64(instruction)])
    if known == 0 or known >> 32 != levels.control[CONTEXT]:
        found = access_of(state.relations, instruction, levels.control[CONTEXT], context, levels.control[DEPTH])
        known = (levels.control[CONTEXT] << 32) | found
        state.known[np.uint64(instruction)] = known
    return known & 0xFFFFFFFF


def load_any(state: State, instruction: int, address: int, size: int, stream: int, time: int) -> None:
    """Without loops and contexts."""
    instruction = min(instruction, state.known.size - 1)
    loaded(state, state.idle, instruction, without_context(state, instruction), address, size, stream, time)


def store_any(state: State, instruction: int, address: int, size: int, stream: int, time: int) -> None:
    """Without loops and contexts."""
    instruction = min(instruction, state.known.size - 1)
    stored(state, state.idle, instruction, without_context(state, instruction), address, size, stream, time)


def load_in_loops(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any) -> None:
    """With loops, without contexts."""
    levels.control[ACCESSES] += 1
    instruction = min(instruction, state.known.size - 1)
    loaded(state, levels, instruction, without_context(state, instruction), address, size, stream, time)


def store_in_loops(state: State, instruction: int, address: int, size: int, stream: int, time: int,
                   levels: Any) -> None:
    """With loops, without contexts."""
    levels.control[ACCESSES] += 1
    instruction = min(instruction, state.known.size - 1)
    stored(state, levels, instruction, without_context(state, instruction), address, size, stream, time)


def load_in_context(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                    context: int) -> None:
    """With contexts."""
    levels.control[ACCESSES] += 1
    instruction = min(instruction, state.known.size - 1)
    access = in_context(state, levels, instruction, context)
    loaded(state, levels, instruction, access, address, size, stream, time)


def store_in_context(state: State, instruction: int, address: int, size: int, stream: int, time: int, levels: Any,
                     context: int) -> None:
    """With contexts."""
    levels.control[ACCESSES] += 1
    instruction = min(instruction, state.known.size - 1)
    access = in_context(state, levels, instruction, context)
    stored(state, levels, instruction, access, address, size, stream, time)


def forget_any(state: State, address: int, size: int, stream: int) -> None:
    """Memory that begins or ends has no history."""
    runs.finish(state.runs, state.readers, state.memory, state.idle, stream)
    clear(state.memory, address, size)


def forget_in_loops(state: State, address: int, size: int, stream: int, levels: Any) -> None:
    """The same, with loops."""
    runs.finish(state.runs, state.readers, state.memory, levels, stream)
    clear(state.memory, address, size)


def interrupt(state: State, stream: int) -> None:
    """Another event ends an execution."""
    if state.runs.control[runs.INSTRUCTION] != 0:
        runs.finish(state.runs, state.readers, state.memory, state.idle, stream)


def interrupt_in_loops(state: State, stream: int, levels: Any) -> None:
    """The same, with loops."""
    if state.runs.control[runs.INSTRUCTION] != 0:
        runs.finish(state.runs, state.readers, state.memory, levels, stream)


class Dependence(Module):
    """One row for each dependence."""

    Options = Options

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.loops = bool(options.distance or options.carried_by)
        self.flow = options.kinds == "raw" and not (options.counts or options.context or self.loops)
        place = ladder.place_of(options.carried_by) if options.carried_by not in ("", "hottest") else None
        plain = options.kinds == "raw" and not (options.counts or options.context or options.distance)
        self.place = place if plain and carried.fits(program) else None
        """The loop, if that is all that is asked for: then there is a shorter way."""
        self.decoupled = "address" if self.flow or self.place else ""

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks for these options."""
        if self.flow:
            return {"load": load, "store": store} | dict.fromkeys(OBJECT_EVENTS, forget)
        if self.place:
            return carried.CALLBACKS
        functions: Sequence[Callable[..., None]] = (load_any, store_any, forget_any, interrupt)
        if self.options.context:
            functions = (load_in_context, store_in_context, forget_in_loops, interrupt_in_loops)
        elif self.loops:
            functions = (load_in_loops, store_in_loops, forget_in_loops, interrupt_in_loops)
        on_load, on_store, on_object, on_other = functions
        return {"load": on_load, "store": on_store} | dict.fromkeys(OBJECT_EVENTS, on_object) | dict.fromkeys(
            OTHER_EVENTS, on_other)

    def state(self) -> Flow | State | Carried:
        """Nothing is known."""
        if self.place:
            return carried.carried_by(self.program, self.place)
        instructions = len(self.program.ops) + 1
        if self.flow:
            known = np.zeros(instructions * KNOWN, np.uint32)
            return Flow(shadows.empty("u4", per_stream=True), known, maps.count_map())
        kinds = self.options.kinds.split(",")
        wanted = Wanted(raw=int("raw" in kinds), war=int("war" in kinds), waw=int("waw" in kinds),
                        loops=int(self.loops), distance=int(self.options.distance))
        return State(shadows.empty(HISTORY, per_stream=True), *ladder.tables(self.program), wanted,
                     np.zeros(instructions, np.int64), ladder.idle())

    def merge(self, states: Sequence[Any]) -> Any:
        """What all workers found."""
        if len(states) == 1:
            return states[0]
        return states[0]._replace(found=maps.merge([state.found for state in states]))

    def result(self, state: Any) -> dict[str, Any]:
        """Rows by kind, source, destination, contexts; a column that was not asked for is left out."""
        if self.flow or self.place:
            return {"dependences": ladder.flow_rows(self.program, maps.rows(state.found)["key"])}
        return {"dependences": ladder.rows(self, state.relations)}

    @classmethod
    def join(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """The dependences of all runs; with carried-by a run counts for those that it showed the loop to carry."""
        if profiles[0]["options"]["carried_by"] == "hottest":
            raise TracekitError("Profiles of dependence with --carried-by hottest cannot be merged: each run chose a "
                                "loop of its own; name the loop.")
        return {"result": {"dependences": join_dependences([each["result"]["dependences"] for each in profiles])}}


MODULE = Dependence
