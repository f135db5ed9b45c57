"""Finds the loop that makes the most accesses, callees included, in a pass that only counts.

What is counted are the accesses made while a loop at a place, FILE:LINE, is open in their stream: once, also if two
loops of the place are, one inside the other, or one loop several times in a recursion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.contexts.kernels.scopes import Scopes, close_loop, open_scope
from tracekit.contexts.scopes import MOST_STREAMS, open_scopes
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS
from tracekit.modules.contract import Count, Module

if TYPE_CHECKING:
    from tracekit.program.program import Program

Place = tuple[str, int]
"""File and line."""

PLACE_FIELDS = [
    ("open", "<i8"),  # invocations of its loops, more than one in a nest or a recursion
    ("since", "<i8"),  # the clock at which the outermost began
    ("accesses", "<i8"),  # in those before
    ("iterated", "<i8"),  # 1 if an invocation came to a second iteration
]


class Counted(NamedTuple):
    """How many accesses each stream has made, and each place of it while a loop there was open."""

    clocks: Any  # [stream]
    place_of: Any  # [loop]: number of its place
    places: HashTable  # PLACE_FIELDS, by stream << 32 | place + 1
    scopes: Scopes  # the open invocations, each with the place of its loop as `node` and its iterations as `region`


def loop_invocation(state: Counted, loop: int, stream: int) -> None:
    """A loop of a place opens, maybe inside another one or once more in a recursion."""
    place = np.int64(state.place_of[np.uint64(loop)])
    row = row_of(state.places, (stream << 32) | (place + 1))
    if state.places.rows[row].open == 0:
        state.places.rows[row].since = state.clocks[np.uint64(stream)]
    state.places.rows[row].open += 1
    scope = open_scope(state.scopes, stream, place, True)
    state.scopes.rows.rows[scope].region = 1


def loop_iteration(state: Counted, loop: int, stream: int) -> None:
    """Its next iteration begins."""
    state.scopes.rows.rows[state.scopes.top[np.uint64(stream)]].region += 1


def loop_exit(state: Counted, loop: int, partial: int, stream: int) -> None:
    """It closes; a visit of its header that only tested is no iteration."""
    row = row_of(state.places, (stream << 32) | (np.int64(state.place_of[np.uint64(loop)]) + 1))
    place = state.places.rows[row]
    if np.int64(state.scopes.rows.rows[state.scopes.top[np.uint64(stream)]].region) - partial > 1:
        place.iterated = 1
    close_loop(state.scopes, stream)
    if place.open > 0:
        place.open -= 1
        if place.open == 0:
            place.accesses += state.clocks[np.uint64(stream)] - place.since


def access(state: Counted, stream: int) -> None:
    """A load or a store."""
    state.clocks[np.uint64(stream)] += 1


class Hottest(Module):
    """Counts the accesses that are made while a loop of each place is open, callees included."""

    def __init__(self, program: Program, options: Any) -> None:
        super().__init__(program, options)
        shown = [program.loop(loop) for loop in range(len(program.loops))]
        numbers: dict[Place, int] = {}
        self.place_of = np.array(
            [numbers.setdefault((loop["file"], loop["line"]), len(numbers)) for loop in shown], np.int64
        )
        self.places = list(numbers)

    def callbacks(self) -> dict[str, Any]:
        """Contexts are not asked for: keeping them would take most of the pass."""
        return {
            **dict.fromkeys(ACCESS_EVENTS, access),
            "loop_invocation": loop_invocation,
            "loop_iteration": loop_iteration,
            "loop_exit": loop_exit,
        }

    def state(self) -> Counted:
        """Nothing is open."""
        return Counted(arena.reserve("i8", MOST_STREAMS), self.place_of, hash_table(PLACE_FIELDS), open_scopes())

    def by_place(self, state: Counted) -> tuple[Counter[Place], set[Place]]:
        """Accesses, of all streams; loops that are still open count to the end. And the places that were iterated."""
        accesses, iterated = Counter[Place](), set[Place]()
        for row in used_rows(state.places)[1:]:
            stream, place = int(row["key"]) >> 32, self.places[(int(row["key"]) & 0xFFFF_FFFF) - 1]
            accesses[place] += int(row["accesses"])
            if row["open"] > 0:
                accesses[place] += int(state.clocks[stream] - row["since"])
            if row["iterated"]:
                iterated.add(place)
        for top in state.scopes.top[np.flatnonzero(state.clocks)].tolist():
            while top != 0:
                scope = state.scopes.rows.rows[top]
                if scope["region"] > 1:
                    iterated.add(self.places[int(scope["node"])])
                top = int(scope["around"])
        return accesses, iterated

    def result(self, state: Counted) -> dict[str, Any]:
        """``{"hottest": (file, line)}``, or None if no loop ran whose place is known."""
        return {"hottest": place_with_most(*self.by_place(state))}


def place_with_most(accesses: Mapping[Place, int], iterated: Set[Place]) -> Place | None:
    """The place with the most accesses; of several the first by name. None if there is none.

    A loop that never came to a second iteration carries nothing: it is chosen only if none did.
    """
    return min(
        (place for place in accesses if place[0]),
        key=lambda place: (place not in iterated, -accesses[place], place),
        default=None,
    )


def with_loop(options: Any, loop: Place | None, count: Count) -> Any:
    """Options whose ``carried_by`` may be `hottest`, with that loop in its place (Analysis.settled)."""
    if options.carried_by != "hottest":
        return options
    place = loop or count(Hottest)["hottest"]
    if place is None:
        raise TracekitError("No loop ran in this trace.")
    return replace(options, carried_by=f"{place[0]}:{place[1]}")
