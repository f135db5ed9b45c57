"""Where pointers point: for each instruction that creates one, the objects, and what else its pointers were.

A pointer is created where it comes out of memory, out of a call or out of a number (``tracekit cc --pointers``). Those
that may not be dereferenced, null, past the end, dangling, numbers, are told apart (PROMPT, section 6.4, fails on
them). With ``--accesses``, for any trace, also the objects that each load and store touched.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.containers.hash_table import united_table
from tracekit.module import (
    ACCESS_EVENTS,
    FRAMES,
    NONE,
    ContextNames,
    Display,
    HashTable,
    Shadow,
    changing,
    contexts_option,
    grouped,
    hash_table,
    inlined,
    option,
    reading,
    row_of,
    shadow,
    used_rows,
)
from tracekit.objects.kernels.live import (
    DEAD,
    STACK,
    Live,
    Unloading,
    allocate,
    begin,
    end,
    ends_at,
    known_at,
    place,
    release,
    unload,
)
from tracekit.objects.live import SiteNames, found_objects, known_instructions, live_objects, table_alone, unloading
from tracekit.objects.module import ObjectModule
from tracekit.objects.profile import CLASSES, LAYOUTS, ObjectProfile, add, canonical

if TYPE_CHECKING:
    from tracekit.program.program import Program

# What a pointer is to an object: numbers of CLASSES.
START = 0
INTERIOR = 1
PAST_END = 2
BOUNDARY = 3  # the start of one object, and one past the end of another
DANGLING = 4
TOUCHED = 5  # an access to an object that lives
TOUCHED_DEAD = 6  # an access to one that has ended
CLASS_BITS = 3
PAGES = 1 << 15


class Elsewhere(NamedTuple):
    """Pointers to no object: whether an access touched the byte that they point to, afterwards."""

    marks: Shadow  # row of `addresses`
    pages: Any  # number of a page of 4 KiB modulo PAGES: 1 if one of them may have marks
    addresses: HashTable  # address: accesses so far
    pointers: HashTable  # row of addresses << 32 | instruction


class State(NamedTuple):
    """The live objects, and for each instruction and site how many pointers there were of each class."""

    live: Live
    counts: HashTable  # instruction << 32 | site << CLASS_BITS | class: count
    recent: Any  # instruction: site << CLASS_BITS | class of its last pointer << 32 | the row there
    totals: Any  # instruction: COUNTS
    limit: Any  # int64 (1)
    elsewhere: Elsewhere
    images: Unloading


COUNTS = np.dtype([("null", "<i8"), ("elsewhere", "<i8"), ("unknown", "<i8"), ("keys", "<i8")])
COUNT = [("count", "<i8")]
POINTER = [("waiting", "<i8"), ("accesses", "<i8")]
"""Created since the address had so many accesses."""


@dataclass(frozen=True)
class PointsToOptions:
    """What is listed."""

    most: int = option(0, "List the objects of an instruction only if they are at most N; 0: always.", "N")
    accesses: bool = option(False, "Also the objects that each load and store touched.")
    contexts: str = contexts_option("static")

    def __post_init__(self) -> None:
        if self.most < 0:
            raise ValueError(f"most is not negative, not {self.most}.")


@inlined
def note(state: Any, instruction: Any, site: Any, what: Any) -> None:
    """One more pointer of an instruction, or access, to an object of a site."""
    key = (np.int64(site) << CLASS_BITS) | what
    recent = state.recent[np.uint64(instruction)]
    if np.int64(recent >> np.uint64(32)) != key:
        totals, limit = state.totals[np.uint64(instruction)], state.limit[0]
        if limit > 0 and totals.keys > limit * len(CLASSES):
            key = np.int64(what)  # so many keys are more sites than are listed: from now on they are only counted
        before = state.counts.control[0]
        recent = (np.uint64(key) << np.uint64(32)) | np.uint64(row_of(state.counts, (instruction << 32) | key))
        totals.keys += state.counts.control[0] - before
        state.recent[np.uint64(instruction)] = recent
    state.counts.rows[recent & np.uint64(0xFFFFFFFF)].count += 1


@inlined
def note_elsewhere(state: Any, instruction: Any, address: Any) -> None:
    """A pointer to no object; if the byte is accessed from now on it was dereferenced."""
    state.totals[np.uint64(instruction)].elsewhere += 1
    place = np.int64(row_of(state.elsewhere.addresses, address))
    state.elsewhere.pages[np.uint64((address >> 12) & (PAGES - 1))] = 1
    for row in changing(state.elsewhere.marks, address, 1):
        state.elsewhere.marks.rows[row] = place
    accesses = state.elsewhere.addresses.rows[place].accesses
    pointer = state.elsewhere.pointers.rows[row_of(state.elsewhere.pointers, (place << 32) | instruction)]
    if pointer.accesses != accesses:
        pointer.waiting = 0
        pointer.accesses = accesses
    pointer.waiting += 1


@inlined
def access(state: Any, instruction: Any, address: Any, size: Any, stream: Any, wanted: Any) -> None:
    """A load or a store."""
    pages = state.elsewhere.pages
    if (
        pages[np.uint64((address >> 12) & (PAGES - 1))] | pages[np.uint64(((address + size - 1) >> 12) & (PAGES - 1))]
        or size > 4096
    ):
        for row in reading(state.elsewhere.marks, address, size):
            mark = state.elsewhere.marks.rows[row]
            if mark != 0:
                state.elsewhere.addresses.rows[mark].accesses += 1
    if wanted:
        instruction = min(instruction, state.totals.size - 1)
        known = known_at(state.live, address, stream)
        if known == 0:
            state.totals[np.uint64(instruction)].unknown += 1
        elif known < DEAD:
            note(state, instruction, np.int64(state.live.objects.rows[known].site), TOUCHED)
        else:
            note(state, instruction, known ^ DEAD, TOUCHED_DEAD)


@inlined
def created(state: Any, instruction: Any, address: Any, stream: Any) -> None:
    """Find out what a pointer points to."""
    instruction = min(instruction, state.totals.size - 1)
    objects, known = state.live.objects.rows, known_at(state.live, address, stream)
    if address == 0:
        state.totals[np.uint64(instruction)].null += 1
    elif 0 < known < DEAD and objects[known].start != address:
        note(state, instruction, np.int64(objects[known].site), INTERIOR)
    else:
        before = ends_at(state.live, address)
        if 0 < known < DEAD:
            what = START if before == 0 else BOUNDARY
            note(state, instruction, np.int64(objects[known].site), what)
            if before != 0:
                note(state, instruction, np.int64(objects[before].site), what)
        elif before != 0:
            note(state, instruction, np.int64(objects[before].site), PAST_END)
        elif known != 0:
            note(state, instruction, known ^ DEAD, DANGLING)
        else:
            note_elsewhere(state, instruction, address)


def touch(state: State, instruction: int, address: int, size: int, stream: int) -> None:
    """A load or a store, with the object that it touched."""
    access(state, instruction, address, size, stream, True)


class PointsTo(ObjectModule):
    """One row for each instruction that created a pointer."""

    tables = ("pointers", "totals")

    Options = PointsToOptions

    def state(self) -> State:
        """No object, no pointer."""
        if not self.options.accesses:
            self.program.require_pointers(", or ask for what is accessed (--accesses)")
        count = len(self.program.ops) + 1
        elsewhere = Elsewhere(
            shadow.empty("u4"), np.zeros(PAGES, np.uint8), hash_table([("accesses", "<i8")]), hash_table(POINTER)
        )
        return State(
            live_objects(self.program),
            hash_table(COUNT),
            np.zeros(count, np.uint64),
            np.zeros(count, COUNTS),
            np.array([self.options.most]),
            elsewhere,
            unloading(self.program),
        )

    @staticmethod
    def pointer_creation(state: State, instruction: int, address: int, stream: int) -> None:
        """Find out what it points to."""
        created(state, instruction, address, stream)

    @staticmethod
    def load(state: State, instruction: int, address: int, size: int, stream: int) -> None:
        """Is it through one of the pointers to no object?"""
        access(state, instruction, address, size, stream, False)

    @staticmethod
    def store(state: State, instruction: int, address: int, size: int, stream: int) -> None:
        """The same."""
        access(state, instruction, address, size, stream, False)

    def callbacks(self) -> dict[str, Any]:
        """With ``--accesses`` loads and stores are looked at."""
        touching = dict.fromkeys(ACCESS_EVENTS, touch) if self.options.accesses else {}
        return super().callbacks() | touching

    @staticmethod
    def heap_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any
    ) -> None:
        """A new object, or the tail by which a realloc let one grow."""
        allocate(state.live, instruction, context, address, size, stream, levels)

    @staticmethod
    def stack_alloc(
        state: State, instruction: int, address: int, size: int, context: int, stream: int, levels: Any
    ) -> None:
        """A local variable begins."""
        begin(state.live, STACK, instruction, context, address, size, stream, levels.control[FRAMES])

    @staticmethod
    def global_init(state: State, object: int, address: int, size: int, stream: int) -> None:
        """An image was loaded."""
        place(state.live, object, address, size, stream)

    @staticmethod
    def heap_free(state: State, address: int, size: int) -> None:
        """An object ends."""
        release(state.live, address, size)

    @staticmethod
    def stack_free(state: State, address: int, size: int) -> None:
        """A local variable ends."""
        end(state.live, address, size)

    @staticmethod
    def image_unload(state: State, image: int) -> None:
        """The globals of a library that was closed end."""
        unload(state.live, state.images, image)

    def resumed(self, state: State) -> State:
        """With the objects, and the pointers to none, of what was before; nothing is counted yet."""
        return begun(state)

    def remains(self, state: State) -> State:
        """The pointers that wait, and no byte."""
        return waiting(state)

    def fold(self, first: State, then: State) -> State:
        """Counts add; an access in the later one ends the waiting of a pointer of the earlier."""
        return joined(first, then)

    def collected(self, state: State) -> ObjectProfile:
        """What the pointers, and the accesses, of each instruction were to."""
        return found_objects(self.program, self.contexts, state.live, pointer_tables(self.program, state))

    def listed(self, profile: ObjectProfile) -> ObjectProfile:
        """Of an instruction with more than ``--most`` sites the counts alone."""
        return limited(profile, self.options.most) if self.options.most else profile

    def shown(self, profile: ObjectProfile) -> dict[str, Any]:
        """Instructions as the program has them; their objects by kind, instruction or global, context."""
        pointed, accessed = [objects_of(profile, classes) for classes in (range(TOUCHED), range(TOUCHED, len(CLASSES)))]
        others = {row[0]: dict(zip(TOTALS[1:], row[1:])) for row in profile["totals"].tolist()}
        sites = SiteNames(self.program, profile, ContextNames(self.program, profile.nodes))

        def row(instruction: int, of: dict[int, Counter[str]], **counts: int) -> dict[str, Any]:
            listed = None if NONE in of else [{**sites.show(site), **of[site]} for site in of]
            shown = None if instruction == NONE else self.program.instruction(instruction)
            return {"instruction": shown, **counts, "objects": listed}

        instructions = {*pointed, *(instruction for instruction, of in others.items() if of["null"] + of["elsewhere"])}
        none = dict.fromkeys(TOTALS[1:], 0)
        result = {
            "pointers": [
                row(instruction, pointed[instruction], **totals(pointed[instruction], others.get(instruction, none)))
                for instruction in sorted(instructions)
            ]
        }
        if self.options.accesses:
            instructions = {*accessed, *(instruction for instruction, of in others.items() if of["unknown"])}
            result["accesses"] = [
                row(instruction, accessed[instruction], unknown=others.get(instruction, none)["unknown"])
                for instruction in sorted(instructions)
            ]
        return result


TOTALS = LAYOUTS["totals"].dtype.names or ()


def pointer_tables(program: Program, state: State) -> dict[str, Any]:
    """The tables ``pointers`` and ``totals`` of a finished replay, as ``found_objects`` takes them."""
    rows = used_rows(state.counts)[1:]
    pointers = np.zeros(len(rows), LAYOUTS["pointers"].dtype)
    pointers["instruction"] = known_instructions(program, rows["key"] >> np.uint64(32))
    pointers["site"] = (rows["key"] & np.uint64(0xFFFF_FFFF)) >> np.uint64(CLASS_BITS)
    pointers["what"] = rows["key"] & np.uint64((1 << CLASS_BITS) - 1)
    pointers["count"] = rows["count"]
    others = np.zeros(len(state.totals), LAYOUTS["totals"].dtype)
    others["instruction"] = known_instructions(program, np.arange(len(others)))
    for name in ("null", "elsewhere", "unknown"):
        others[name] = state.totals[name]
    for instruction, unused in never_dereferenced(state).items():
        others["never_dereferenced"][instruction] = unused
    return {"pointers": pointers, "totals": others[others["null"] + others["elsewhere"] + others["unknown"] != 0]}


# -- in segments of the trace ----------------------------------------------------------------------


def begun(state: State) -> State:
    """The state of a segment where the pass ahead has this one: nothing is counted, and no pointer waits yet."""
    return state._replace(
        counts=hash_table(COUNT),
        recent=np.zeros_like(state.recent),
        totals=np.zeros_like(state.totals),
        elsewhere=state.elsewhere._replace(pointers=hash_table(POINTER)),
    )


def waiting(state: State) -> State:
    """What is needed of a segment that is over: of pointers to no object those that no access has followed yet."""
    elsewhere = state.elsewhere
    pointers, accesses = used_rows(elsewhere.pointers), used_rows(elsewhere.addresses)["accesses"]
    pointers["waiting"][pointers["accesses"] != accesses[pointers["key"] >> np.uint64(32)]] = 0
    nothing = shadow.empty("u4", pages=1, direct=1)
    return state._replace(live=table_alone(state.live), elsewhere=elsewhere._replace(marks=nothing))


def joined(first: State, then: State) -> State:
    """What is needed of two. Sites and addresses have the same numbers in both, as far as both know them."""
    known, all_known = (used_rows(state.elsewhere.addresses)["accesses"] for state in (first, then))
    pointers = used_rows(first.elsewhere.pointers)
    pointers["waiting"][all_known[pointers["key"] >> np.uint64(32)] != 0] = 0
    all_known[: len(known)] += known
    united = united_table([first.elsewhere.pointers, then.elsewhere.pointers], {"waiting": add})
    united.rows["accesses"] = all_known[united.rows["key"] >> np.uint64(32)]
    for name in COUNTS.names or ():
        then.totals[name] += first.totals[name]
    return then._replace(
        counts=united_table([first.counts, then.counts], {"count": add}),
        elsewhere=then.elsewhere._replace(pointers=united),
    )


def limited(profile: ObjectProfile, most: int) -> ObjectProfile:
    """Of an instruction whose pointers, or accesses, are to more than `most` sites: as if to no site that is known.

    Whoever has some of such runs joined sees more than `most` sites, too, so nothing is lost that would be listed.
    """
    rows = profile["pointers"].copy()
    keys, at = grouped(rows["instruction"], rows["what"] >= TOUCHED, rows["site"])
    _, lists = grouped(keys[0], keys[1])
    many = (np.bincount(lists) > most) | (np.bincount(lists, keys[2] == NONE) > 0)
    rows["site"][many[lists][at]] = NONE
    return canonical(ObjectProfile(profile.nodes, profile.sites, {**profile.tables, "pointers": rows}))


def objects_of(profile: ObjectProfile, classes: Collection[int]) -> defaultdict[int, dict[int, Counter[str]]]:
    """Instruction -> site -> how many pointers, or accesses, of each of the classes; site NONE: too many to list."""
    objects: defaultdict[int, dict[int, Counter[str]]] = defaultdict(dict)
    for instruction, site, what, count in profile["pointers"].tolist():
        if what in classes:
            objects[instruction].setdefault(site, Counter())[CLASSES[what]] = count
    return objects


def totals(objects: Mapping[int, Counter[str]], others: Mapping[str, int]) -> dict[str, int]:
    """How many pointers an instruction created, and of which class."""
    sums = {name: sum(of[name] for of in objects.values()) for name in CLASSES[:TOUCHED]}
    sums["boundary"] //= 2  # each stands with the object that begins and the one that ends there
    counts = {**sums, **{name: others[name] for name in ("null", "elsewhere")}}
    return {"count": sum(counts.values()), **counts, "never_dereferenced": others["never_dereferenced"]}


def never_dereferenced(state: State) -> Counter[int]:
    """Instruction -> how many of its pointers to no object were not followed by an access to their byte."""
    accesses = used_rows(state.elsewhere.addresses)["accesses"]
    unused: Counter[int] = Counter()
    for row in used_rows(state.elsewhere.pointers)[1:]:
        if row["accesses"] == accesses[int(row["key"]) >> 32]:
            unused[int(row["key"]) & 0xFFFF_FFFF] += int(row["waiting"])
    return unused


DISPLAY = Display(
    text="tracekit.render.objects:points_to_text",
    heading="Points-to sets",
    columns={
        "pointers": (
            "instruction:instruction count start interior past_end boundary dangling null elsewhere "
            "never_dereferenced objects"
        ),
    },
)
MODULE = PointsTo
