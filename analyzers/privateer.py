"""What the Privateer system asks for: points-to, lifetimes, constant values, and what each loop reads, writes, reduces.

Privateer (Johnson et al., ported to PROMPT in its section 6.2) puts each object of a loop into a heap of its own kind:
read only, private, short-lived, or reduced. A loop's sets hold what was accessed while it was open, callees included.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.analyzers import object_lifetime, points_to, value_pattern
from tracekit.analyzers.object_lifetime import ObjectLifetime, allocated, born, died, freed, loaded, unloaded
from tracekit.analyzers.points_to import PointsTo, access, created
from tracekit.analyzers.value_pattern import ValuePattern, follow
from tracekit.module import Module, inlined, option
from tracekit.replay.kernels.contexts import LEVELS
from tracekit.replay.kernels.keyed import Keyed, row_of
from tracekit.replay.kernels.liveobjects import DEAD, STACK, known_at
from tracekit.replay.kernels.scopes import close_call, close_loop, next_iteration, open_scope
from tracekit.replay.keyed import keyed, used_rows
from tracekit.replay.liveobjects import SiteNames
from tracekit.replay.recipes import Updates
from tracekit.replay.scopes import ScopeNames


class State(NamedTuple):
    """The states of three modules, which share the live objects, and the sets."""

    lifetimes: object_lifetime.State
    pointers: points_to.State
    values: value_pattern.State
    regions: Keyed  # region around << 32 | loop + 1: a set of open loops
    sets: Keyed  # region << 32 | site, 0 for memory of no known object
    known: Any  # 2 * instruction + 1 for stores: its last region << 32 | site
    operators: Any  # instruction: of the update that it is a part of, or 0


REGION = [("loop", "<i4"), ("around", "<u4"), ("region", "<u4"), ("accesses", "<i8")]
"""``region``: the row itself, or that around it, if the loop is open there already (a recursion)."""
SET = [("reads", "<i4"), ("writes", "<i4"), ("operator", "<i8")]
"""``operator``: that of all accesses, MIXED if not all are parts of updates by one."""
MIXED = -1


@dataclass(frozen=True)
class PrivateerOptions:
    """What counts as a predictable value."""

    linear: bool = option(False, "Also values in equal steps.")
    small_set: int = option(0, "Also instructions with at most N different values.", "N")

    def __post_init__(self) -> None:
        value_pattern.PatternOptions(small_set=self.small_set)  # refuses what that refuses


@inlined
def region_of(regions: Any, around: Any, loop: Any) -> Any:
    """The set of the loops of a region and one more."""
    row = np.int64(row_of(regions, (np.int64(around) << 32) | (loop + 1)))
    new = regions.rows[row]
    if new.region == 0:
        outer = np.int64(around)
        while outer != 0 and regions.rows[outer].loop != loop:
            outer = np.int64(regions.rows[outer].around)
        new.loop = loop
        new.around = around
        new.region = row if outer == 0 else around
    return new.region


@inlined
def touched(state: Any, instruction: Any, address: Any, stream: Any, is_store: Any) -> None:
    """An access, for the sets of all open loops."""
    scopes = state.lifetimes.scopes
    region = np.int64(scopes.rows.rows[scopes.top[np.uint64(stream)]].region)
    if region == 0:
        return
    state.regions.rows[region].accesses += 1
    instruction = min(instruction, state.operators.size - 1)
    site = known_at(state.lifetimes.live, address, stream)
    site = np.int64(state.lifetimes.live.objects.rows[site].site) if site < DEAD else site ^ DEAD
    key = (region << 32) | site
    if state.known[np.uint64(2 * instruction + is_store)] != key:
        state.known[np.uint64(2 * instruction + is_store)] = key
        found, operator = state.sets.rows[row_of(state.sets, key)], state.operators[np.uint64(instruction)]
        if operator == 0 or (found.operator != 0 and found.operator != operator):
            operator = MIXED
        found.operator = operator
        found.reads |= 1 - is_store
        found.writes |= is_store


class Privateer(Module):
    """One row for each loop, beside those of three modules."""

    Options = PrivateerOptions

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        patterns = value_pattern.PatternOptions(linear=options.linear, small_set=options.small_set)
        self.lifetimes = ObjectLifetime(program, ObjectLifetime.Options())
        self.pointers = PointsTo(program, points_to.PointsToOptions())
        self.values = ValuePattern(program, patterns)

    def state(self) -> State:
        """Nothing is known."""
        lifetimes = self.lifetimes.state()
        pointers = self.pointers.state()._replace(live=lifetimes.live)
        operators = Updates(self.program).operator
        return State(lifetimes, pointers, self.values.state(), keyed(REGION), keyed(SET),
                     np.zeros(2 * len(operators), np.int64), operators)

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, value: int, stream: int,
             options: Any) -> None:
        """A load."""
        touched(state, instruction, address, stream, 0)
        access(state.pointers, instruction, address, size, stream, False)
        if instruction < state.values.patterns.size:
            follow(state.values, instruction, value, options)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, stream: int) -> None:
        """A store."""
        touched(state, instruction, address, stream, 1)
        access(state.pointers, instruction, address, size, stream, False)

    @staticmethod
    def pointer_creation(state: State, instruction: int, address: int, stream: int) -> None:
        """A pointer."""
        created(state.pointers, instruction, address, stream)

    @staticmethod
    def heap_alloc(state: State, instruction: int, address: int, size: int, context: int, stream: int,
                   inside: int) -> None:
        """An object begins, or grows."""
        allocated(state.lifetimes, instruction, context, address, size, stream, inside)

    @staticmethod
    def stack_alloc(state: State, instruction: int, address: int, size: int, context: int, stream: int,
                    inside: int) -> None:
        """A local variable begins."""
        born(state.lifetimes, STACK, instruction, context, address, size, stream, inside)

    @staticmethod
    def global_init(state: State, object: int, address: int, size: int, stream: int, inside: int) -> None:
        """An image was loaded."""
        loaded(state.lifetimes, object, address, size, stream, inside)

    @staticmethod
    def heap_free(state: State, address: int, size: int, stream: int) -> None:
        """An object ends, or is cut."""
        freed(state.lifetimes, address, size, stream)

    @staticmethod
    def stack_free(state: State, address: int, size: int, stream: int) -> None:
        """A local variable ends."""
        died(state.lifetimes, address, size, stream)

    @staticmethod
    def image_unload(state: State, image: int, stream: int) -> None:
        """The globals of a library end."""
        unloaded(state.lifetimes, image, stream)

    @staticmethod
    def function_entry(state: State, context: int, stream: int) -> None:
        """A call opens."""
        open_scope(state.lifetimes.scopes, stream, context, False)

    @staticmethod
    def function_exit(state: State, stream: int) -> None:
        """It closes."""
        close_call(state.lifetimes.scopes, stream)

    @staticmethod
    def loop_invocation(state: State, loop: int, stream: int, levels: Any) -> None:
        """A loop opens."""
        node = levels.levels[levels.control[LEVELS] - 1].node
        scope = state.lifetimes.scopes.rows.rows[open_scope(state.lifetimes.scopes, stream, node, True)]
        scope.region = region_of(state.regions, scope.region, loop)

    @staticmethod
    def loop_iteration(state: State, stream: int) -> None:
        """Its next iteration begins."""
        next_iteration(state.lifetimes.scopes, stream)

    @staticmethod
    def loop_exit(state: State, stream: int) -> None:
        """It closes."""
        close_loop(state.lifetimes.scopes, stream)

    def result(self, state: State) -> dict[str, Any]:
        """The tables of the three modules, and the loops by source location."""
        self.lifetimes.contexts = self.pointers.contexts = self.contexts
        sites = SiteNames(self.program, self.contexts, state.lifetimes.live)
        short = self._short_lived(state)
        accesses = self._accesses(state)
        rows = []
        for place, found in sorted(self._by_place(loop_sets(state)).items()):
            listed = [(sites.show(site) if site else {"kind": "unknown"}, *found[site])
                      for site in [*([0] if 0 in found else []), *sites] if site in found]
            plain = [each for each in listed if each[3] <= 0]
            rows.append({
                "loop": dict(place),
                "accesses": accesses[place],
                "reads": [shown for shown, reads, _, _ in plain if reads],
                "writes": [shown for shown, _, writes, _ in plain if writes],
                "reductions": [{"operator": self.program.text(operator), **shown}
                               for shown, _, _, operator in listed if operator > 0],
                "short_lived": [sites.show(site) for site in sites if site in found and site in short[place]],
            })
        return {"loops": rows, **self.lifetimes.result(state.lifetimes), **self.pointers.result(state.pointers),
                **self.values.result(state.values)}

    def _accesses(self, state: State) -> Counter[Any]:
        """Loop, by its place -> loads and stores that were made while it was open."""
        regions = used_rows(state.regions)
        found: Counter[Any] = Counter()
        for row in np.flatnonzero(regions["accesses"]).tolist():
            for place in {tuple(self.program.loop(loop).items()) for loop in loops_of(regions, row)}:
                found[place] += int(regions["accesses"][row])
        return found

    def _by_place(self, sets: dict[int, dict[int, Any]]) -> dict[Any, dict[int, Any]]:
        """Loops of one source location are one loop."""
        merged: defaultdict[Any, dict[int, Any]] = defaultdict(dict)
        for loop, found in sets.items():
            place = merged[tuple(self.program.loop(loop).items())]
            for site, access_of in found.items():
                place[site] = unite(place.get(site), access_of)
        return merged

    def _short_lived(self, state: State) -> defaultdict[Any, set[int]]:
        """Loop, by its place -> the sites whose every object lived within one iteration of it."""
        scopes = ScopeNames(self.program, self.contexts)
        lives, forever = object_lifetime.ended(state.lifetimes, scopes), object_lifetime.unended(state.lifetimes)
        found: defaultdict[Any, set[int]] = defaultdict(set)
        for site, held in lives.items():
            for node, iteration in scopes.chain(scopes.join(held)) if not forever[site] else ():
                if iteration:
                    loop = self.program.loop(int(self.contexts.nodes["loop"][node]))
                    found[tuple(loop.items())].add(site)
        return found


def loop_sets(state: State) -> dict[int, dict[int, Any]]:
    """Loop -> site -> (read, written, operator of all its accesses or MIXED)."""
    regions = used_rows(state.regions)
    found: defaultdict[int, dict[int, Any]] = defaultdict(dict)
    for row in used_rows(state.sets)[1:]:
        region, site = int(row["key"]) >> 32, int(row["key"]) & 0xFFFF_FFFF
        access_of = bool(row["reads"]), bool(row["writes"]), int(row["operator"])
        for loop in loops_of(regions, region):
            found[loop][site] = unite(found[loop].get(site), access_of)
    return found


def loops_of(regions: Any, region: int) -> Iterator[int]:
    """The loops that are open in a region, each once, the innermost first."""
    while region != 0:
        yield int(regions["loop"][region])
        region = int(regions["around"][region])


def unite(one: Any, other: Any) -> Any:
    """What two groups of accesses to an object come to."""
    if one is None:
        return other
    return one[0] or other[0], one[1] or other[1], one[2] if one[2] == other[2] else MIXED


MODULE = Privateer
