"""The history of bytes: each access is compared with those before that nothing has made superfluous.

Of a byte the last plain store is kept, and beside it the accesses since then that a later one may still race with:
plain loads and atomic accesses. One is left out for a later one that comes behind it and conflicts with all that it
does. Sets of accesses are made once and shared by all bytes, so that dividing a word costs nothing (FastTrack, and its
read vectors as sets).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.hash_table import find_or_make, row_of
from tracekit.containers.kernels.shadow import NOWHERE, PAGE_BITS, changing, page_of, reading, writing
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.chains import standing
from tracekit.races.kernels.order import turn_to
from tracekit.races.kernels.shares import be_told, draw, is_of_thread, part_of
from tracekit.races.kernels.state import (
    ALIVE,
    ATOMIC,
    ATOMIC_READ,
    ATOMIC_WRITE,
    CHAIN,
    CLOCK_FIRST,
    CLOCK_LENGTH,
    COUNTS,
    CREATOR_CHAIN,
    CREATOR_TIME,
    FREE,
    KIND_SHIFT,
    LAST_TIME,
    MOST_SITES,
    OF_LANE,
    OF_RUNTIME,
    OTHERS_FROM,
    OTHERS_TO,
    OWN,
    READ,
    SEVERAL,
    SITE_BITS,
    SITUATION,
    STREAM,
    TASK,
    TEAMS,
    TELLS,
    TIME_BITS,
    UNKNOWN,
    WRITE,
    State,
    chain_of,
    kind_in,
    site_in,
    time_in,
)

LOOKED_AT = 256
"""Accesses of a set that are looked at when another one is added."""
WHOLE_FREE = 1 << 20
"""Of a larger block that is freed only what was touched is marked."""


@inlined
def is_before(state: Any, access: Any) -> Any:
    """Whether an access happened before what the present task does now."""
    chain, time = chain_of(access), time_in(access)
    if time <= state.chains.rows[chain].retired:
        at = standing(state, (chain << TIME_BITS) | time)
        chain, time = at >> TIME_BITS, at & LAST_TIME
    if chain == state.now[CHAIN]:
        return time <= state.now[OTHERS_FROM] or time >= state.now[OTHERS_TO]
    if chain == state.now[CREATOR_CHAIN] and time <= state.now[CREATOR_TIME]:
        return True
    if chain >= state.now[CLOCK_LENGTH]:
        return False
    return time <= np.int64(state.clocks.values.rows[np.uint64(state.now[CLOCK_FIRST] + chain)])


@inlined
def is_of_others(state: Any, access: Any) -> Any:
    """Whether the present task itself made an access, as another part of a shared loop."""
    time = time_in(access)
    return chain_of(access) == state.now[CHAIN] and time > state.now[OTHERS_FROM] and time < state.now[OTHERS_TO]


@inlined
def conflicts(one: Any, other: Any) -> Any:
    """Whether accesses of two kinds, of READ, ATOMIC_READ, ATOMIC_WRITE and WRITE, race if nothing orders them."""
    if one == WRITE or other == WRITE:
        return True
    return (one == READ and other == ATOMIC_WRITE) or (one == ATOMIC_WRITE and other == READ)


@inlined
def replaces(later: Any, earlier: Any) -> Any:
    """Whether what conflicts with an `earlier` kind conflicts with a `later` one, too."""
    return later == earlier or (earlier == ATOMIC_READ and later != ATOMIC_READ)


@kernel
def site_of(state: State, instruction: Any, context: Any, kind: Any) -> Any:
    """The row of `sites` of an access now; 0, of which nothing is known, if there are too many."""
    situation = state.now[SITUATION]
    place = np.int64(row_of(state.places, (context << 32) | instruction))
    row, is_new = find_or_make(state.sites, np.uint64((place << 36) | (situation << 3) | kind))
    if row >= MOST_SITES:
        return np.int64(0)
    if is_new and row != 0:
        site = state.sites.rows[row]
        site.instruction, site.context, site.kind = instruction, context, kind
        task = state.tasks.rows[state.now[TASK]]
        site.role, site.stream, site.locks = task.role, task.stream, task.locks
    return row


@inlined
def access_now(state: Any, instruction: Any, context: Any, kind: Any) -> Any:
    """The access that the present task makes."""
    stores = kind >> 1
    place = np.uint64(2 * min(instruction, np.int64(state.recent.size // 2 - 1)) + stores)
    recent = state.recent[place]
    if recent.site == 0 or recent.context != context or recent.situation != state.now[SITUATION]:
        recent.context, recent.situation = context, state.now[SITUATION]
        recent.site = site_of(state, instruction, context, kind)
    return np.uint64(state.now[OWN] | (kind << KIND_SHIFT) | np.int64(recent.site))


@inlined
def same_step(one: Any, other: Any) -> Any:
    """Whether two accesses are of one kind, chain and time."""
    return (one ^ other) >> np.uint64(SITE_BITS) == np.uint64(0)


# -- races ---------------------------------------------------------------------------------------------


@kernel
def is_own(state: State, stream: Any, address: Any) -> Any:
    """Whether bytes are a stream's own: a thread-local variable, say, that tasks on one thread use in turn."""
    line = address >> 6
    return state.own_lines.rows[row_of(state.own_lines, line)].stream == stream + 1


@kernel
def report(state: State, before: Any, access: Any, where: Any) -> None:
    """Note a race of an access with one before it; `where`: address, group, object, offset."""
    address, group, number, offset = where
    one, other = state.sites.rows[site_in(before)], state.sites.rows[site_in(access)]
    if state.now[TEAMS] > 0 and one.stream == other.stream and is_own(state, one.stream, address):
        return
    loop, single = part_of(state, before)
    if loop != 0 and is_of_thread(state, one.stream, address, offset):
        return
    key = (np.uint64(site_in(before)) << np.uint64(32)) | np.uint64(site_in(access))
    race = state.races.rows[row_of(state.races, key)]
    if race.count == 0:
        race.address, race.group, race.object, race.offset = address, group, number, offset
        race.loop, race.single = loop, single
    elif race.loop != loop or race.single != single:
        race.loop = 0
    race.count += 1
    race.last = address


@kernel
def compare(state: State, cell: Any, access: Any, where: Any) -> None:
    """Note what an access to the bytes of a cell races with."""
    row, kind = state.memory.rows[cell], kind_in(access)
    if row.write != 0 and not is_before(state, row.write):
        report(state, row.write, access, where)
    others = row.others
    while others & SEVERAL:
        node = state.sets.rows[others & ~SEVERAL]
        other = state.accesses.rows[node.key >> np.uint64(32)].key
        if conflicts(kind_in(other), kind) and not is_before(state, other):
            report(state, other, access, where)
        others = node.key & np.uint64(0xFFFF_FFFF)
        others = others | SEVERAL if others != 0 else others
    if others != 0 and conflicts(kind_in(others), kind) and not is_before(state, others):
        report(state, others, access, where)


@kernel
def with_access(state: State, others: Any, access: Any) -> Any:
    """What stands beside a store when an access is added to `others`. Of a large set the newest are looked at."""
    kept, kind, node, own = 0, kind_in(access), np.uint64(0), -1
    if others & SEVERAL:
        node = others & ~SEVERAL
        while node != 0 and kept < LOOKED_AT:
            key = state.sets.rows[node].key
            other = state.accesses.rows[key >> np.uint64(32)].key
            if kind_in(other) == kind and is_of_others(state, other):
                # Of what other iterations did the last is enough: what orders it orders those before.
                if own < 0:
                    own = kept
                    state.scratch[own] = other
                    kept += 1
                elif time_in(other) > time_in(state.scratch[own]):
                    state.scratch[own] = other
            elif not (replaces(kind, kind_in(other)) and is_before(state, other)):
                state.scratch[kept] = other
                kept += 1
            node = key & np.uint64(0xFFFF_FFFF)
    elif others != 0 and not (replaces(kind, kind_in(others)) and is_before(state, others)):
        state.scratch[0] = others
        kept = 1
    if kept == 0 and node == 0:
        return access
    for place in range(kept - 1, -2, -1):
        one = state.scratch[place] if place >= 0 else access
        number = np.uint64(row_of(state.accesses, one))
        node = np.uint64(row_of(state.sets, (number << np.uint64(32)) | node))
    return node | SEVERAL


@inlined
def knows(state: Any, others: Any, access: Any) -> Any:
    """Whether an access of the same kind, chain and time is among the newest of `others`."""
    if not others & SEVERAL:
        return same_step(others, access)
    node, found, looked = others & ~SEVERAL, False, 0
    while node != 0 and not found and looked < LOOKED_AT:
        key = state.sets.rows[node].key
        found = same_step(state.accesses.rows[key >> np.uint64(32)].key, access)
        node = key & np.uint64(0xFFFF_FFFF)
        looked += 1
    return found


# -- accesses ------------------------------------------------------------------------------------------


@kernel
def add_access(state: State, access: Any, address: Any, size: Any, where: Any) -> None:
    """A plain load, or an atomic access: it stands beside what is known."""
    for cell in changing(state.memory, address, size):
        others = state.memory.rows[cell].others
        if not knows(state, others, access):
            compare(state, cell, access, where)
            state.memory.rows[cell].others = with_access(state, others, access)


@kernel
def put_store(state: State, access: Any, address: Any, size: Any, where: Any) -> None:
    """A plain store: it takes the place of all that was known."""
    for cell in reading(state.memory, address, size):
        compare(state, cell, access, where)
    for cell in writing(state.memory, address, size):
        row = state.memory.rows[cell]
        row.write, row.others = access, 0


@inlined
def is_alone(state: Any, stream: Any) -> Any:
    """Whether no access can race: there is one task, or the task is not known. Else it is the present one."""
    if state.now[ALIVE] <= 1:
        return True
    if state.now[STREAM] != stream:
        turn_to(state, stream)
    if state.now[TASK] == 0:
        state.now[UNKNOWN] += state.streams.rows[row_of(state.streams, stream)].task == 0
        return True
    return False


@inlined
def is_atomic(state: Any, instruction: Any) -> Any:
    """Whether the accesses of an instruction are atomic; those of libraries are not."""
    return kind_of(state, instruction) & ATOMIC != 0


@inlined
def kind_of(state: Any, instruction: Any) -> Any:
    """What is known of an instruction."""
    return state.kinds[np.uint64(min(instruction, np.int64(state.kinds.size - 1)))]


@inlined
def load(state: Any, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A load of the present task."""
    known_of = kind_of(state, instruction)
    if known_of >= OF_LANE:
        if known_of & OF_RUNTIME or known_of & (OF_LANE | ATOMIC) == OF_LANE:
            return
        if known_of & TELLS:
            be_told(state)
        if known_of & COUNTS:
            draw(state)
    kind = ATOMIC_READ if is_atomic(state, instruction) else READ
    access = access_now(state, instruction, context, kind)
    known = True
    for cell in reading(state.memory, address, size):
        known = known and same_step(state.memory.rows[cell].others, access)
    if not known:
        add_access(state, access, address, size, where)


@inlined
def store(state: Any, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A store of the present task."""
    known_of = kind_of(state, instruction)
    if known_of >= OF_LANE:
        if known_of & OF_RUNTIME or known_of & (OF_LANE | ATOMIC) == OF_LANE:
            return
        if known_of & TELLS:
            be_told(state)
        if known_of & COUNTS:
            draw(state)
    if is_atomic(state, instruction):
        add_access(state, access_now(state, instruction, context, ATOMIC_WRITE), address, size, where)
        return
    access = access_now(state, instruction, context, WRITE)
    known = True
    for cell in reading(state.memory, address, size):
        row = state.memory.rows[cell]
        known = known and row.others == 0 and same_step(row.write, access)
    if not known:
        put_store(state, access, address, size, where)


@kernel
def free(state: State, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A block is freed: as if all of it were stored."""
    if kind_of(state, instruction) & OF_RUNTIME:
        return
    site = np.uint64(site_of(state, instruction, context, FREE))
    access = np.uint64(state.now[OWN] | (WRITE << KIND_SHIFT)) | site
    if size <= WHOLE_FREE:
        put_store(state, access, address, size, where)
        return
    end = address + size
    while address < end:
        part = min(4096 - (address & 4095), end - address)
        if page_of(state.memory, np.uint64(address) >> np.uint64(PAGE_BITS)) != NOWHERE:
            put_store(state, access, address, part, where)
        address += part


@inlined
def forget(state: Any, address: Any, size: Any) -> None:
    """Bytes are new. While one thread is alone that is not needed: all that is known happened before what comes. (What
    workers of OpenMP's runtime free between teams is not.)"""
    if state.now[ALIVE] > 1 or state.now[TEAMS] > 0:
        clear(state.memory, address, size)
