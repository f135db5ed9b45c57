"""Memory dependences of loads and stores: with the loops that carry them and in every context, as far as is detail.

For each row of shadow memory the history gives the earlier ends of its dependences (load_history.py), the open levels
say how far both ends lie in the same iterations (levels.py, CAMP's Algorithm 1), and what was found is entered into
tables (dependence_table.py). A dependence holds between two *executions* of instructions (executions.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow, changing, writing
from tracekit.contexts.kernels.allocation_site import allocation_site
from tracekit.contexts.kernels.levels import shared_levels
from tracekit.contexts.kernels.streams import CLOCK, LEAF_LEVEL
from tracekit.dependence.kernels import executions as runs
from tracekit.dependence.kernels.accesses import access_in
from tracekit.dependence.kernels.dependence_table import (
    AS_BEFORE,
    RAW,
    WAR,
    WAW,
    DependenceTable,
    count_again,
    expose,
    lies_as_before,
    note_bare_part,
    note_object,
    place,
    place_again,
    relate,
    remember_place,
    settle,
    tally,
)
from tracekit.dependence.kernels.executions import Runs
from tracekit.dependence.kernels.final_stores import FinalStores, by_access, has_history, is_needed
from tracekit.dependence.kernels.load_history import (
    ACCESS_BITS,
    GROWN_BITS,
    LoadHistory,
    add_reader,
    collect,
    drop_readers,
    expect_readers,
)
from tracekit.dependence.kernels.open_stores import come_to, note_open
from tracekit.dependence.kernels.sharding import MAY_BE_SHARED, NOTHING, Part, Shared, enter_part, note, note_load_part
from tracekit.jit.kernel import inlined, kernel
from tracekit.objects.kernels.live import HEAP
from tracekit.translation.kernels.identities import Objects, identity_at
from tracekit.translation.kernels.identities import place as place_object

# What a store has been compared with, but for entries of the list.
STORE = -1
LOAD = -2
PAIR = -3  # the later one
PAIRS = -4

NO_LEVEL = 1 << 30
"""In place of the level from which on a load is exposed."""

ENDING = 0
"""In place of the kind of an object that begins: what was there ends."""


class Detail(NamedTuple):
    """What is to be found out; a constant of a module costs nothing."""

    raw: int
    war: int
    waw: int
    loops: int  # which loops carry it, and the least and greatest distance
    histogram: int  # of distances
    profile: int  # the objects, and loads of what was not stored before in the present iteration; only with raw


class State(NamedTuple):
    """The history of each byte, what was found, and what is under way."""

    memory: Shadow  # HISTORY
    readers: LoadHistory
    relations: DependenceTable
    runs: Runs
    shared: Shared
    objects: Objects
    identities: HashTable  # kind << 32 | site; its rows are the identities of objects, from 1; 0 is unknown memory
    in_wrapper: Any  # u1 by instruction: 1 if its function hands on what it allocates, so the site is its call
    access: Any  # [instruction]: its access, if contexts are not told apart; 0: none yet
    known: Any  # KNOWN, by instruction and context
    ways: Any  # WAY, of the accesses of a loop that are entered many at a time (dependence_ways.py)
    final: FinalStores
    open: Any = None  # in a segment of the trace: OpenStores


@inlined
def _may_be_shared(shared: Any, opened: Any, kind: Any) -> Any:
    """Whether others may find this dependence of the present execution: another worker, or the joining of segments."""
    if opened is not None:  # which finds what stores depend on that was loaded before the segment
        return shared.control[MAY_BE_SHARED] != 0 and kind == WAR
    return shared.control[MAY_BE_SHARED] != 0


@inlined
def depends(
    state: Any, detail: Any, levels: Any, kind: Any, source: Any, access: Any, stamp: Any, now: Any, identity: Any
) -> Any:
    """A byte of an access, in the object `identity`, depends on an earlier one.

    Returns what ``shared_levels`` does, or AS_BEFORE.
    """
    row, is_new = relate(state.relations, kind, source, access, now)
    may_be_shared = _may_be_shared(state.shared, state.open, kind)
    if is_new:
        if may_be_shared:
            note(state.shared.dependences, state.shared.control, np.int64(row), now, identity)
        elif detail.profile:
            note_object(state.relations, row, identity, now)
    shared = np.int64(0)
    if detail.loops:
        dependence = state.relations.dependences.rows[row]
        if lies_as_before(dependence, levels, stamp):
            distance = np.int64(NOTHING)
            if is_new and dependence.level != 0 and detail.histogram:
                distance = np.int64(count_again(state.relations, levels, row, stamp))
            else:
                place_again(state.relations, levels, row, stamp, is_new)
            if is_new and dependence.level != 0 and may_be_shared:
                note(state.shared.levels, state.shared.control, np.int64(dependence.level), now, distance)
            shared = np.int64(AS_BEFORE)
        else:
            shared = np.int64(_place_anew(state, detail, levels, row, source, stamp, now, is_new))
    return shared


@inlined
def _place(state: Any, detail: Any, levels: Any, row: Any, source: Any, stamp: Any, now: Any) -> Any:
    """Enter in which of the open levels a dependence lies; returns what ``shared_levels`` does."""
    depth = np.int64(0)
    if levels.control[LEAF_LEVEL] >= 0:
        depth = np.int64(state.relations.accesses.rows[np.uint64(source)].depth)
    shared = np.int64(shared_levels(levels, stamp, depth))
    if place(state.relations, levels, row, stamp, shared, depth, now):
        distance = np.int64(NOTHING)
        if detail.histogram:
            distance = np.int64(tally(state.relations, levels, row, stamp, shared, depth))
        if state.shared.control[MAY_BE_SHARED]:
            carrier = np.int64(state.relations.lying[row].carrier)
            note(state.shared.levels, state.shared.control, carrier, now, distance)
    return shared


@kernel
def _place_anew(
    state: State, detail: Any, levels: Any, row: Any, source: Any, stamp: Any, now: Any, is_new: Any
) -> int:
    """The same for a dependence that may have lain as before until now."""
    before = np.uint64(state.relations.dependences.rows[row].level)
    if before != 0 and not is_new:
        state.relations.levels.rows[before].execution = now
    settle(state.relations, row)
    shared = np.int64(_place(state, detail, levels, row, source, stamp, now))
    remember_place(state.relations, levels, row, stamp, shared)
    return int(shared)


@inlined
def identity_of(state: Any, detail: Any, address: Any) -> Any:
    """The identity of the object that an access begins in, if objects are detail."""
    identity = np.int64(NOTHING)
    if detail.profile:
        identity = np.int64(identity_at(state.objects, address))
    return identity


class Access(NamedTuple):
    """A load or store, or the part of one that a worker is given: the fields and services of these names."""

    instruction: int
    address: int
    size: int
    stream: int
    time: int


# -- the history of an access ----------------------------------------------------------------------


@inlined
def load_access(state: Any, detail: Any, levels: Any, context: Any, given: Access, part: Part) -> None:
    """Enter a load: it may depend on stores. `context`: that of the access, None if contexts are not told apart."""
    enter(state, detail, levels, context, given, part, 0)


@inlined
def store_access(state: Any, detail: Any, levels: Any, context: Any, given: Access, part: Part) -> None:
    """Enter a store: it may depend on stores and loads."""
    enter(state, detail, levels, context, given, part, 1)


@inlined
def enter(state: Any, detail: Any, levels: Any, context: Any, given: Access, part: Part, storing: Any) -> None:
    """Enter a load, or a store if `storing` is 1."""
    instruction = min(given.instruction, state.access.size - 1)
    is_long = state.runs.updating[np.uint64(instruction)] != 0
    if not part.mine:
        if is_long or state.runs.control[runs.INSTRUCTION] != 0:
            _pass_by(state, levels, instruction, given.address, given.stream, given.time, storing, part)
        return
    access = access_in(state, levels, instruction, context)
    if detail.profile:
        state.relations.accesses.rows[access].count += given.address == part.start
    now = _begin(state, levels, instruction, given.address, given.stream, given.time, storing, part, is_long)
    identity = identity_of(state, detail, part.start)
    if storing:
        enter_store(state, detail, levels, access, given, now, identity)
    else:
        _load(state, detail, levels, access, given, part, now, identity, is_long)


@inlined
def enter_store(state: Any, detail: Any, levels: Any, access: Any, given: Access, now: Any, identity: Any) -> None:
    """Enter a store by `access` into the object `identity`, as a part of the execution `now`."""
    if detail.war:
        note_open(state, state.open, levels, access, given, now, identity)
    _store(state, detail, levels, access, given, now, identity)


@kernel
def _pass_by(
    state: Any, levels: Any, instruction: Any, address: Any, stream: Any, time: Any, storing: Any, part: Any
) -> None:
    """Note a part of an access that is another worker's."""
    is_long = state.runs.updating[np.uint64(instruction)] != 0
    _begin(state, levels, instruction, address, stream, time, storing, part, is_long)


@inlined
def _begin(
    state: Any,
    levels: Any,
    instruction: Any,
    address: Any,
    stream: Any,
    time: Any,
    storing: Any,
    part: Any,
    is_long: Any,
) -> Any:
    """The execution that an access belongs to, and its part there."""
    now = runs.begin(state, levels, instruction, stream, time, storing)
    enter_part(state.shared, part, storing, is_long, time, address)
    return now


@inlined
def _load(
    state: Any, detail: Any, levels: Any, access: Any, given: Any, part: Any, now: Any, identity: Any, waits: Any
) -> None:
    """A load depends on the stores of its bytes."""
    exposed, is_stored = np.int64(NO_LEVEL), False
    if detail.war == 0 or has_history(state, given.address, given.size):
        for row in changing(state.memory, given.address, given.size):
            level, has_store = _loaded(state, detail, levels, access, row, now, identity)
            exposed = min(exposed, level)
            is_stored |= has_store
            if detail.war and not waits and is_needed(state.memory.rows[row]):
                add_reader(state.readers, state.memory, row, access, levels.control[CLOCK], levels)
    if detail.profile:
        if not is_stored and part.whole and given.size > 0:
            exposed = np.int64(0)
        expose(state.relations, levels, access, exposed)
        if not part.whole:
            _note_part(state, levels, access, given.time, is_stored)
    if detail.war:
        if waits:
            runs.wait(state.runs, access, levels.control[CLOCK], given.address, given.size)
        collect(state.readers, state.memory, levels)


@inlined
def _loaded(state: Any, detail: Any, levels: Any, access: Any, row: Any, now: Any, identity: Any) -> Any:
    """A row of what is loaded: the level from which on it is exposed, unless that is known; whether it was stored."""
    known = state.memory.rows[row]
    exposed, source = np.int64(NO_LEVEL), np.int64(known.store) & ACCESS_BITS
    if detail.raw and source != 0:
        shared = depends(state, detail, levels, RAW, source, access, known.stamp, now, identity)
        if shared != AS_BEFORE:
            exposed = np.int64(shared >> 1)
    return exposed, source != 0


@kernel
def _note_part(state: Any, levels: Any, access: Any, time: Any, is_stored: Any) -> None:
    """Other parts of the load are other workers': all of them say whether it is exposed."""
    if is_stored:
        printed = np.int64(state.relations.accesses.rows[access].printed)
        note_load_part(state.shared.load_parts, printed, time, np.int64(NOTHING))
    else:
        note_bare_part(state.relations, levels, access, state.shared.load_parts, time)


@inlined
def _store(state: Any, detail: Any, levels: Any, access: Any, given: Any, now: Any, identity: Any) -> None:
    """A store depends on the stores of its bytes, and on the loads since."""
    address, size, stored = given.address, given.size, by_access(state.final, access, given.time)
    if state.runs.waiting.control[0] > 1:
        runs.cut(state.runs.waiting, address, address + size)
    is_divided = False
    start = address
    for row in changing(state.memory, address, size):
        if detail.war:
            expect_readers(state.readers, state.memory, row)
            start = np.int64(come_to(state, state.open, row, start))
        if detail.waw or detail.war:
            _stored(state, detail, levels, access, row, now, identity)
        _become(state, levels, row, stored)
        is_divided |= row >= np.uint64(2 * state.memory.granules.size)
    if is_divided:  # words that are covered become whole
        for row in writing(state.memory, address, size):
            _become(state, levels, row, stored)


@inlined
def _become(state: Any, levels: Any, row: Any, stored: Any) -> None:
    drop_readers(state.memory, row)
    state.memory.rows[row].store = stored
    state.memory.rows[row].stamp = levels.control[CLOCK]


@inlined
def _stored(state: Any, detail: Any, levels: Any, access: Any, row: Any, now: Any, identity: Any) -> None:
    """First the last store, then the loads since, the latest first."""
    known, loads = state.memory.rows[row], state.readers.rows
    kind, source, stamp = WAW, (np.int64(known.store) & ACCESS_BITS) * detail.waw, known.stamp
    entry = np.int64(STORE)
    while True:
        if source != 0:
            depends(state, detail, levels, kind, source, access, stamp, now, identity)
        if entry == STORE:
            if known.reader == 0:
                break
            kind, source, stamp = WAR, np.int64(known.reader), known.loaded
            entry = np.int64(LOAD)
        elif entry == LOAD:
            if known.pair == 0:
                break
            source, stamp = np.int64(known.pair), known.latest
            entry = np.int64(PAIR) if known.latest != known.earliest else np.int64(PAIRS)
        elif entry == PAIR:
            stamp = known.earliest
            entry = np.int64(PAIRS)
        else:
            entry = np.int64(known.before) if entry == PAIRS else np.int64(loads[np.uint64(entry)].before)
            if entry == 0:
                break
            source, stamp = np.int64(loads[np.uint64(entry)].access), loads[np.uint64(entry)].when >> GROWN_BITS


@inlined
def forget(state: Any, levels: Any, address: Any, size: Any, stream: Any) -> None:
    """Memory that begins or ends has no history."""
    if state.runs.control[runs.INSTRUCTION] != 0 or state.runs.control[runs.STREAM] != stream:
        runs.finish(state, levels, stream)
    clear(state.memory, address, size)


@inlined
def change_object(state: Any, kind: Any, site: Any, address: Any, size: Any) -> None:
    """An object of this kind (HEAP, ...: objects/kernels/live.py) and site begins, or what was there ends (ENDING)."""
    if size > 0:
        identity = np.int64(-1)
        if kind != ENDING:
            identity = np.int64(row_of(state.identities, (kind << 32) | site))
        place_object(state.objects, address, address + size, identity)


@inlined
def allocate(state: Any, levels: Any, instruction: Any, address: Any, size: Any) -> None:
    """A heap block begins; of a wrapper of malloc each call is a site."""
    change_object(state, HEAP, allocation_site(state.in_wrapper, instruction, levels), address, size)


@inlined
def interrupt(state: Any, levels: Any, stream: Any) -> None:
    """Another event ends an execution."""
    if state.runs.control[runs.INSTRUCTION] != 0:
        runs.finish(state, levels, stream)
