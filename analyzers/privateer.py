"""What the Privateer system asks for: points-to, lifetimes, constant values, and what each loop reads, writes, reduces.

Privateer (Johnson et al., ported to PROMPT in its section 6.2) puts each object of a loop into a heap of its own kind:
read only, private, short-lived, or reduced. A loop's sets hold what was accessed while it was open, callees included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.analyzers import object_lifetime, points_to, value_pattern
from tracekit.analyzers.object_lifetime import (
    ObjectLifetime,
    allocated,
    born,
    died,
    freed,
    life_tables,
    loaded,
    unloaded,
)
from tracekit.analyzers.points_to import PointsTo, access, created, pointer_tables
from tracekit.analyzers.value_pattern import ValuePattern, follow
from tracekit.containers.hash_table import united_table
from tracekit.module import (
    FRAMES,
    LEVELS,
    NONE,
    ContextNames,
    Display,
    HashTable,
    ScopeNames,
    close_call,
    close_loop,
    contexts_option,
    hash_table,
    inlined,
    next_iteration,
    open_scope,
    option,
    row_of,
    used_rows,
)
from tracekit.objects.kernels.live import DEAD, STACK, known_at
from tracekit.objects.live import SiteNames, found_objects
from tracekit.objects.module import ObjectModule
from tracekit.objects.profile import LAYOUTS, MIXED, ObjectProfile, either, same
from tracekit.verdicts.transformations import Updates

if TYPE_CHECKING:
    from tracekit.program.program import Program


class State(NamedTuple):
    """The states of three modules, which share the live objects, and the sets."""

    lifetimes: object_lifetime.State
    pointers: points_to.State
    values: value_pattern.State
    regions: HashTable  # region around << 32 | loop + 1: a set of open loops
    sets: HashTable  # region << 32 | site, 0 for memory of no known object
    known: Any  # 2 * instruction + 1 for stores: its last region << 32 | site
    operators: Any  # instruction: of the update that it is a part of, or 0


REGION = [("loop", "<i4"), ("around", "<u4"), ("region", "<u4"), ("accesses", "<i8")]
"""``region``: the row itself, or that around it, if the loop is open there already (a recursion)."""
SET = [("reads", "<i4"), ("writes", "<i4"), ("operator", "<i8")]
"""``operator``: that of all accesses, MIXED if not all are parts of updates by one."""


@dataclass(frozen=True)
class PrivateerOptions:
    """What counts as a predictable value."""

    linear: bool = option(False, "Also values in equal steps.")
    small_set: int = option(0, "Also instructions with at most N different values.", "N")
    contexts: str = contexts_option("static")

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
        row, operator = state.sets.rows[row_of(state.sets, key)], state.operators[np.uint64(instruction)]
        if operator == 0 or (row.operator != 0 and row.operator != operator):
            operator = MIXED
        row.operator = operator
        row.reads |= 1 - is_store
        row.writes |= is_store


class Privateer(ObjectModule):
    """One row for each loop, beside those of three modules."""

    tables = ("lifetimes", "lives", "pointers", "totals", "sets", "loops")

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
        return State(
            lifetimes,
            pointers,
            self.values.state(),
            hash_table(REGION),
            hash_table(SET),
            np.zeros(2 * len(operators), np.int64),
            operators,
        )

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, value: int, stream: int, options: Any) -> None:
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
    def heap_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, inside: int, levels: Any
    ) -> None:
        """An object begins, or grows."""
        allocated(state.lifetimes, instruction, context, address, size, stream, inside, levels)

    @staticmethod
    def stack_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, inside: int, levels: Any
    ) -> None:
        """A local variable begins."""
        born(state.lifetimes, STACK, instruction, context, address, size, stream, inside, levels.control[FRAMES])

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

    def resumed(self, state: State) -> State:
        """With the objects, scopes and regions of what was before; nothing was accessed yet."""
        return state._replace(pointers=points_to.begun(state.pointers))

    def remains(self, state: State) -> State:
        """What the modules need of theirs."""
        lifetimes = self.lifetimes.remains(state.lifetimes)
        return state._replace(lifetimes=lifetimes, pointers=points_to.waiting(state.pointers))

    def fold(self, first: State, then: State) -> State:
        """What the modules make of theirs; a loop's accesses add, and its sets."""
        regions = used_rows(first.regions)["accesses"]
        used_rows(then.regions)["accesses"][: len(regions)] += regions
        return then._replace(
            pointers=points_to.joined(first.pointers, then.pointers),
            values=self.values.fold(first.values, then.values),
            sets=united_table([first.sets, then.sets], {"reads": either, "writes": either, "operator": same}),
        )

    def collected(self, state: State) -> ObjectProfile:
        """What the modules found, and the sets and accesses of each loop, by source location."""
        tables = {
            **life_tables(state.lifetimes, self.contexts),
            **pointer_tables(self.program, state.pointers),
            **set_tables(self.program, state),
        }
        return found_objects(self.program, self.contexts, state.lifetimes.live, tables)

    def result(self, state: State) -> dict[str, Any]:
        """The tables of the three modules, and the loops by source location."""
        return {**super().result(state), **self.values.result(state.values)}

    def merge_state(self, state: State) -> dict[str, Any]:
        """What the three modules keep."""
        return {**super().merge_state(state), **self.values.merge_state(state.values)}

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """What follows from the objects of all runs, and the values that hold in all."""
        joined, values = super().merge(profiles, program), ValuePattern.merge(profiles, program)
        return {part: {**joined[part], **values[part]} for part in joined}

    def shown(self, profile: ObjectProfile) -> dict[str, Any]:
        """Loops by source location, then what the two modules show."""
        contexts = ContextNames(self.program, profile.nodes)
        sites, short = SiteNames(self.program, profile, contexts), self._short_lived(profile, contexts)
        rows_of: defaultdict[int, list[Any]] = defaultdict(list)
        for loop, *row in profile["sets"].tolist():
            rows_of[loop].append(row)
        loops = {tuple(self.program.loop(loop).items()): (loop, count) for loop, count in profile["loops"].tolist()}
        rows = []
        for place, (loop, accesses) in sorted(loops.items()):
            listed = sorted(rows_of[loop], key=lambda row: (row[0] != NONE, row[0]))  # what is of no object comes first
            named = [(sites.show(site) if site != NONE else {"kind": "unknown"}, *rest) for site, *rest in listed]
            plain = [row for row in named if row[3] <= 0]
            rows.append(
                {
                    "loop": dict(place),
                    "accesses": accesses,
                    "reads": [shown for shown, reads, _, _ in plain if reads],
                    "writes": [shown for shown, _, writes, _ in plain if writes],
                    "reductions": [
                        {"operator": self.program.text(operator), **shown}
                        for shown, _, _, operator in named
                        if operator > 0
                    ],
                    "short_lived": [sites.show(site) for site, *_ in listed if site in short[place]],
                }
            )
        return {"loops": rows, **self.lifetimes.shown(profile), **self.pointers.shown(profile)}

    def _short_lived(self, profile: ObjectProfile, contexts: ContextNames) -> defaultdict[Any, set[int]]:
        """Loop, by its place -> the sites whose every object lived within one iteration of it."""
        scopes = ScopeNames(self.program, contexts)
        lifetimes = profile["lifetimes"]
        forever = set(lifetimes["site"][lifetimes["never_freed"] > 0].tolist())
        short_lived: defaultdict[Any, set[int]] = defaultdict(set)
        for site, held in object_lifetime.ended(profile).items():
            for node, iteration in scopes.chain(scopes.join(held)) if site not in forever else ():
                if iteration:
                    loop = self.program.loop(int(profile.nodes["loop"][node]))
                    short_lived[tuple(loop.items())].add(site)
        return short_lived


def set_tables(program: Program, state: State) -> dict[str, Any]:
    """The tables ``sets`` and ``loops`` of a finished replay, as ``found_objects`` takes them.

    Loops of one source location are one loop; the first of the program's stands for it.
    """
    first: dict[Any, int] = {}
    place_of = [first.setdefault(tuple(program.loop(loop).items()), loop) for loop in range(len(program.loops))]
    regions = used_rows(state.regions)
    places = [sorted({place_of[loop] for loop in loops_of(regions, row)}) for row in range(len(regions))]
    sets = [
        (loop, int(row["key"]) & 0xFFFF_FFFF, row["reads"], row["writes"], row["operator"])
        for row in used_rows(state.sets)[1:]
        for loop in places[int(row["key"]) >> 32]
    ]
    loops = [
        (loop, regions["accesses"][row]) for row in np.flatnonzero(regions["accesses"]).tolist() for loop in places[row]
    ]
    return {"sets": np.array(sets, LAYOUTS["sets"].dtype), "loops": np.array(loops, LAYOUTS["loops"].dtype)}


def loops_of(regions: Any, region: int) -> Iterator[int]:
    """The loops that are open in a region, each once, the innermost first."""
    while region != 0:
        yield int(regions["loop"][region])
        region = int(regions["around"][region])


DISPLAY = Display(
    text="tracekit.render.objects:privateer_text",
    columns={
        "loops": "loop:loop accesses reads writes reductions short_lived",
        "sites": "object:made objects bytes never_freed scope.kind scope.function scope.context:context lives",
        "pointers": (
            "instruction:instruction count start interior past_end boundary dangling null elsewhere "
            "never_dereferenced objects"
        ),
        "instructions": "instruction:instruction count pattern value",
    },
)
MODULE = Privateer
