"""Finds the loop that makes the most accesses, callees included: in a pass of its own, or from a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.formats.events import NONE
from tracekit.module import Module
from tracekit.replay import arena
from tracekit.replay.dependence_profile import ContextKind
from tracekit.replay.kernels.keyed import Keyed, row_of
from tracekit.replay.kernels.scopes import Scopes, close_loop, open_scope
from tracekit.replay.keyed import keyed, used_rows
from tracekit.replay.scopes import MOST_STREAMS, open_scopes

if TYPE_CHECKING:
    from tracekit.replay.program import Program


LOOP_FIELDS = [
    ("open", "<i8"),  # invocations, more than one in a recursion
    ("since", "<i8"),  # the clock at which the outermost began
    ("accesses", "<i8"),  # in those before
    ("iterated", "<i8"),  # 1 if an invocation came to a second iteration
]


class Counted(NamedTuple):
    """How many accesses each stream has made, and each loop of it while it was open."""

    clocks: Any  # [stream]
    loops: Keyed  # LOOP_FIELDS, by stream << 32 | loop + 1
    scopes: Scopes  # the open invocations, each with its loop as `node` and its iterations as `region`


def loop_invocation(state: Counted, loop: int, stream: int) -> None:
    """The loop opens, once more in a recursion."""
    row = row_of(state.loops, (stream << 32) | (loop + 1))
    if state.loops.rows[row].open == 0:
        state.loops.rows[row].since = state.clocks[np.uint64(stream)]
    state.loops.rows[row].open += 1
    scope = open_scope(state.scopes, stream, loop, True)
    state.scopes.rows.rows[scope].region = 1


def loop_iteration(state: Counted, loop: int, stream: int) -> None:
    """Its next iteration begins."""
    state.scopes.rows.rows[state.scopes.top[np.uint64(stream)]].region += 1


def loop_exit(state: Counted, loop: int, partial: int, stream: int) -> None:
    """It closes; a visit of its header that only tested is no iteration."""
    row = row_of(state.loops, (stream << 32) | (loop + 1))
    if np.int64(state.scopes.rows.rows[state.scopes.top[np.uint64(stream)]].region) - partial > 1:
        state.loops.rows[row].iterated = 1
    close_loop(state.scopes, stream)
    if state.loops.rows[row].open > 0:
        state.loops.rows[row].open -= 1
        if state.loops.rows[row].open == 0:
            state.loops.rows[row].accesses += state.clocks[np.uint64(stream)] - state.loops.rows[row].since


def access(state: Counted, stream: int) -> None:
    """A load or a store."""
    state.clocks[np.uint64(stream)] += 1


class Hottest(Module):
    """Counts the accesses that are made while each loop is open, callees included."""

    def callbacks(self) -> dict[str, Any]:
        """Contexts are not asked for: keeping them would take most of the pass."""
        return {"load": access, "store": access, "loop_invocation": loop_invocation,
                "loop_iteration": loop_iteration, "loop_exit": loop_exit}

    def state(self) -> Counted:
        """Nothing is open."""
        return Counted(arena.reserve("i8", MOST_STREAMS), keyed(LOOP_FIELDS), open_scopes())

    def by_loop(self, state: Counted) -> tuple[Counter[int], set[int]]:
        """Row of a loop -> accesses, of all streams; loops that are still open count to the end. Those iterated."""
        found, iterated = Counter[int](), set[int]()
        for row in used_rows(state.loops)[1:]:
            stream, loop = int(row["key"]) >> 32, (int(row["key"]) & 0xFFFF_FFFF) - 1
            found[loop] += int(row["accesses"])
            if row["open"] > 0:
                found[loop] += int(state.clocks[stream] - row["since"])
            if row["iterated"]:
                iterated.add(loop)
        for top in state.scopes.top[np.flatnonzero(state.clocks)].tolist():
            while top != 0:
                scope = state.scopes.rows.rows[top]
                if scope["region"] > 1:
                    iterated.add(int(scope["node"]))
                top = int(scope["around"])
        return found, iterated

    def result(self, state: Counted) -> dict[str, Any]:
        """``{"hottest": (file, line)}``, or None if no loop ran."""
        return {"hottest": place_with_most(self.program, *self.by_loop(state))}


def hottest_of(program: Program, nodes: Any) -> tuple[str, int] | None:
    """The same from the nodes of a dependence profile."""
    loops = nodes[(nodes["loop"] != NONE) & np.isin(nodes["kind"], (ContextKind.LOOP, ContextKind.RECURSION_LOOP))]
    accesses = Counter[int]()
    for loop, count in zip(loops["loop"].tolist(), loops["accesses"].tolist()):
        accesses[loop] += count
    return place_with_most(program, accesses, set(loops["loop"][loops["most_iterations"] > 1].tolist()))


def place_with_most(program: Program, accesses: Mapping[int, int], iterated: Set[int]) -> tuple[str, int] | None:
    """File and line of the loop with the most accesses; of several the first by name. None if there is none.

    A loop that never came to a second iteration carries nothing: it is chosen only if none did.
    """
    places = Counter[tuple[str, int]]()
    repeated: set[tuple[str, int]] = set()
    for loop, count in accesses.items():
        shown = program.loop(loop)
        place = (shown["file"], shown["line"])
        places[place] += count
        if loop in iterated:
            repeated.add(place)
    return min(places, key=lambda place: (place not in repeated, -places[place], place), default=None)
