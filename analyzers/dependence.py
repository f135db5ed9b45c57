"""Memory dependences between instructions: flow, or all kinds; with counts, distances, contexts, as asked for.

PROMPT's dependence profiler and its variants (Table 5). A dependence is (source, destination, kind): both
touch a common byte, and no store to that byte lies between. Dependences are found within a thread, with --threads also
between threads; memory that is allocated or freed loses its history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tracekit.contexts.state import empty_stream
from tracekit.dependence import carried, final_stores, flow, pairs, threaded
from tracekit.dependence.carried_segments import CarriedSegments
from tracekit.dependence.flow_segments import FlowSegments
from tracekit.dependence.hottest import with_loop
from tracekit.dependence.inter_thread import WHOLE_BECAUSE, InterThreadRows, check_carried, joined, threads_option
from tracekit.dependence.kernels.carried import Carried
from tracekit.dependence.kernels.dependence import (
    Access,
    Detail,
    State,
    interrupt,
    load_access,
    store_access,
)
from tracekit.dependence.kernels.dependence import forget as forget_history
from tracekit.dependence.kernels.flow import Flow
from tracekit.dependence.kernels.sharding import Part
from tracekit.dependence.pairs_merge import join_dependences
from tracekit.dependence.reduce import reduce_states
from tracekit.dependence.segments import DependenceSegments
from tracekit.dependence.state import empty_state
from tracekit.module import (
    CONTEXT_EVENTS,
    OBJECT_EVENTS,
    Count,
    Display,
    Module,
    contexts_option,
    inlined,
    maps,
    option,
)

if TYPE_CHECKING:
    from tracekit.modules.segments import Segments


@dataclass(frozen=True)
class Options:
    """What to find out."""

    counts: bool = option(False, "Count the executions of the destination that had the dependence.")
    kinds: str = option("raw", "Kinds of dependences, any of raw, war, waw.", "KINDS")
    distance: bool = option(False, "In which loops it is carried, and over how many iterations.")
    context: bool = option(False, "Tell calling and loop contexts apart at both ends.")
    contexts: str = contexts_option()
    carried_by: str = option(
        "",
        "Only what this loop carries; `hottest`: that of --loop, or the one with the most "
        "accesses of those that were iterated.",
        "FILE:LINE",
    )
    threads: bool = threads_option()

    def __post_init__(self) -> None:
        pairs.check_kinds(self.kinds)
        if self.carried_by != "hottest":
            pairs.check_place(self.carried_by)
        check_carried(self.carried_by, self.threads)


# -- the variants ---------------------------------------------------------------------------------


class Variants(NamedTuple):
    """The state of every variant but flow dependences alone."""

    history: State
    detail: Detail
    idle: Any  # levels of a stream without any


@inlined
def _detail(state: Any) -> Any:
    """What is to be found out; a number that the compiler knows costs nothing."""
    detail = state.detail
    return Detail(detail.raw, detail.war, detail.waw, detail.loops, detail.histogram, 0)


def load_any(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """Without loops and contexts."""
    access = Access(instruction, address, size, stream, time)
    load_access(state.history, _detail(state), state.idle, None, access, Part(start, whole, mine))


def store_any(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """Without loops and contexts."""
    access = Access(instruction, address, size, stream, time)
    store_access(state.history, _detail(state), state.idle, None, access, Part(start, whole, mine))


def load_in_loops(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """With loops, without contexts."""
    access = Access(instruction, address, size, stream, time)
    load_access(state.history, _detail(state), levels, None, access, Part(start, whole, mine))


def store_in_loops(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """With loops, without contexts."""
    access = Access(instruction, address, size, stream, time)
    store_access(state.history, _detail(state), levels, None, access, Part(start, whole, mine))


def load_in_context(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    context: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """With contexts."""
    access = Access(instruction, address, size, stream, time)
    load_access(state.history, _detail(state), levels, context, access, Part(start, whole, mine))


def store_in_context(
    state: Variants,
    instruction: int,
    address: int,
    size: int,
    stream: int,
    time: int,
    levels: Any,
    context: int,
    start: int,
    whole: int,
    mine: int,
) -> None:
    """With contexts."""
    access = Access(instruction, address, size, stream, time)
    store_access(state.history, _detail(state), levels, context, access, Part(start, whole, mine))


def forget_any(state: Variants, address: int, size: int, stream: int) -> None:
    """Memory that begins or ends has no history."""
    forget_history(state.history, state.idle, address, size, stream)


def forget_in_loops(state: Variants, address: int, size: int, stream: int, levels: Any) -> None:
    """The same, with loops."""
    forget_history(state.history, levels, address, size, stream)


def interrupt_any(state: Variants, stream: int) -> None:
    """Another event ends an execution."""
    interrupt(state.history, state.idle, stream)


def interrupt_in_loops(state: Variants, stream: int, levels: Any) -> None:
    """The same, with loops."""
    interrupt(state.history, levels, stream)


class Dependence(Module):
    """One row for each dependence."""

    Options = Options
    ends_with_window = True
    shard_by = "address"

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.loops = bool(options.distance or options.carried_by)
        self.threads = bool(options.threads)
        if self.threads:
            self.shard_by, self.whole_because = "", WHOLE_BECAUSE
        self.flow = options.kinds == "raw" and not (options.counts or options.context or self.loops or self.threads)
        place = pairs.place_of(options.carried_by) if options.carried_by else None
        plain = options.kinds == "raw" and not (options.counts or options.context or options.distance)
        self.place = place if plain and carried.fits(program) else None
        """The loop, if that is all that is asked for: then there is a shorter way."""
        self.compute_bound = not (self.flow or self.place)

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """Without loops and contexts."""
        return not (options.distance or options.context or options.carried_by)

    @classmethod
    def settled(cls, options: Any, loop: tuple[str, int] | None, count: Count) -> Any:
        """The hottest loop by its place."""
        return with_loop(options, loop, count)

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks for these options."""
        if self.threads:
            return threaded.CALLBACKS_IN_CONTEXT if self.options.context else threaded.CALLBACKS
        if self.flow:
            return flow.CALLBACKS
        if self.place:
            return carried.CALLBACKS
        functions: Sequence[Callable[..., None]] = (load_any, store_any, forget_any, interrupt_any)
        if self.options.context:
            functions = (load_in_context, store_in_context, forget_in_loops, interrupt_in_loops)
        elif self.loops:
            functions = (load_in_loops, store_in_loops, forget_in_loops, interrupt_in_loops)
        on_load, on_store, on_object, on_other = functions
        return (
            {"load": on_load, "store": on_store}
            | dict.fromkeys(OBJECT_EVENTS, on_object)
            | dict.fromkeys((*CONTEXT_EVENTS, "external_call"), on_other)
        )

    def range_callbacks(self) -> dict[str, Callable[..., Any]]:
        """Those for flow dependences alone; what else is asked for depends on the order of accesses."""
        return flow.RANGE_CALLBACKS if self.flow else {}

    def state(self) -> Flow | Variants | Carried | threaded.Threaded:
        """Nothing is known."""
        if self.threads:
            return threaded.empty_threaded(self.program, self.detail)
        if self.place:
            return carried.carried_by(self.program, self.place)
        if self.flow:
            return flow.empty_flow(self.program)
        return Variants(empty_state(self.program, self.found_first.get("final")), self.detail, empty_stream(0, 1))

    def first_pass(self, totals: Mapping[str, int], records: int) -> type[Module] | None:
        """Which stores are final, where that pays."""
        is_it = "WAR" in self.kinds and not self.threads and final_stores.pays(totals, records)
        return final_stores.FinalStoresPass if is_it else None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds as profiles name them."""
        return frozenset(self.options.kinds.upper().split(","))

    @property
    def detail(self) -> Detail:
        """What the variants find out."""
        return Detail(
            raw=int("RAW" in self.kinds),
            war=int("WAR" in self.kinds),
            waw=int("WAW" in self.kinds),
            loops=int(self.loops),
            histogram=int(self.options.distance),
            profile=0,
        )

    def segments(self) -> Segments | None:
        """Flow dependences alone, and those that one loop carries, have ways of their own."""
        if self.whole_because:
            return None
        if self.flow:
            return FlowSegments(self)
        if self.place:
            return CarriedSegments(self)
        context = bool(self.options.context)
        final = self.found_first.get("final")
        return DependenceSegments(
            self.program, self.options, self.detail, context, lambda found: found, inside=True, final=final
        )

    def reduce(self, states: Sequence[Any]) -> Any:
        """What all workers found."""
        if self.threads:
            contexts = self.contexts if self.options.context else None
            self.inter_thread = InterThreadRows(self.program, states[0].inter_thread, contexts).rows(self.kinds)
            return reduce_states([states[0].own])
        if not (self.flow or self.place):
            return reduce_states([state.history for state in states])
        if len(states) == 1:
            return states[0]
        return states[0]._replace(pairs=maps.reduce([state.pairs for state in states]))

    def result(self, state: Any) -> dict[str, Any]:
        """Rows by kind, source, destination, contexts; a column that was not asked for is left out."""
        if self.flow or self.place:
            return {"dependences": pairs.flow_rows(self.program, maps.rows(state.pairs)["key"])}
        found = {"dependences": pairs.rows(self, state)}
        if self.threads:
            found["between_threads"] = [self._asked_for(row) for row in self.inter_thread]
        return found

    def _asked_for(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row without the columns that were not asked for."""
        unwanted = [] if self.options.counts else ["count"]
        if not self.options.context:
            unwanted += ["source_context", "destination_context"]
        return {name: value for name, value in row.items() if name not in unwanted}

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """The dependences of all runs; with carried-by a run counts for those that it showed the loop to carry."""
        results = [profile["result"] for profile in profiles]
        merged = {"dependences": join_dependences([result["dependences"] for result in results])}
        if "between_threads" in results[0]:
            merged["between_threads"] = joined([result["between_threads"] for result in results])
        return {"result": merged}


DISPLAY = Display(
    greatest="count",
    columns={
        "dependences": "kind source:instruction destination:instruction",
    },
)
MODULE = Dependence
