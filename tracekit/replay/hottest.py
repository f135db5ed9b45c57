"""Finds the loop that makes the most accesses, callees included: in a pass of its own, or from a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.formats.events import NONE
from tracekit.module import Module
from tracekit.replay import arena
from tracekit.replay.dependence_profile import ContextKind
from tracekit.replay.kernels.keyed import Keyed, row_of
from tracekit.replay.keyed import keyed, used_rows
from tracekit.replay.scopes import MOST_STREAMS

if TYPE_CHECKING:
    from tracekit.replay.program import Program


class Counted(NamedTuple):
    """How many accesses each stream has made, and each loop of it while it was open."""

    clocks: Any  # [stream]
    loops: Keyed  # stream << 32 | loop + 1: how often it is open, since which clock, accesses before


def loop_invocation(state: Counted, loop: int, stream: int) -> None:
    """The loop opens, once more in a recursion."""
    row = row_of(state.loops, (stream << 32) | (loop + 1))
    if state.loops.rows[row].open == 0:
        state.loops.rows[row].since = state.clocks[np.uint64(stream)]
    state.loops.rows[row].open += 1


def loop_exit(state: Counted, loop: int, stream: int) -> None:
    """It closes."""
    row = row_of(state.loops, (stream << 32) | (loop + 1))
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
        return {"load": access, "store": access, "loop_invocation": loop_invocation, "loop_exit": loop_exit}

    def state(self) -> Counted:
        """Nothing is open."""
        return Counted(arena.reserve("i8", MOST_STREAMS),
                       keyed([("open", "<i8"), ("since", "<i8"), ("accesses", "<i8")]))

    def by_loop(self, state: Counted) -> Counter[int]:
        """Row of a loop -> accesses, of all streams; loops that are still open count to the end."""
        found = Counter[int]()
        for row in used_rows(state.loops)[1:]:
            stream, loop = int(row["key"]) >> 32, (int(row["key"]) & 0xFFFF_FFFF) - 1
            found[loop] += int(row["accesses"])
            if row["open"] > 0:
                found[loop] += int(state.clocks[stream] - row["since"])
        return found

    def result(self, state: Counted) -> dict[str, Any]:
        """``{"hottest": (file, line)}``, or None if no loop ran."""
        return {"hottest": place_with_most(self.program, self.by_loop(state).items())}


def hottest_of(program: Program, nodes: Any) -> tuple[str, int] | None:
    """The same from the nodes of a dependence profile."""
    loops = nodes[(nodes["loop"] != NONE) & np.isin(nodes["kind"], (ContextKind.LOOP, ContextKind.RECURSION_LOOP))]
    return place_with_most(program, zip(loops["loop"].tolist(), loops["accesses"].tolist()))


def place_with_most(program: Program, accesses: Iterable[tuple[int, int]]) -> tuple[str, int] | None:
    """File and line of the loop with the most accesses; of several the first by name. None if there is none."""
    places = Counter[tuple[str, int]]()
    for loop, count in accesses:
        shown = program.loop(loop)
        places[shown["file"], shown["line"]] += count
    return min(places, key=lambda place: (-places[place], place), default=None)
