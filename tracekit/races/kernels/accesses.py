"""Accesses of the present task: where it makes them, what comes before them, and what races with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import find_or_make, row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.chains import standing
from tracekit.races.kernels.clocks import set_must_time
from tracekit.races.kernels.epochs import stop_orders
from tracekit.races.kernels.order import make_own, turn_to
from tracekit.races.kernels.shares import is_of_thread, part_of
from tracekit.races.kernels.state import (
    ASIDE,
    ATOMIC_WRITE,
    BY_RACE,
    BY_ROOM,
    CHAIN,
    CLOCK_FIRST,
    CLOCK_LENGTH,
    CREATOR_CHAIN,
    CREATOR_TIME,
    KIND_SHIFT,
    LAST_TIME,
    MOST_ASIDE,
    MOST_SITES,
    ORDERED,
    OTHERS_FROM,
    OTHERS_TO,
    OWN,
    READ,
    RECENT_WAYS,
    REORDERS,
    SIMD,
    SITE_BITS,
    SITUATION,
    STREAM,
    TASK,
    TEAMS,
    TIME_BITS,
    WRITE,
    State,
    chain_of,
    site_in,
    time_in,
)


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
    if 2 * chain >= state.now[CLOCK_LENGTH]:
        return False
    return time <= np.int64(state.clocks.values.rows[np.uint64(state.now[CLOCK_FIRST] + 2 * chain)])


@inlined
def has_to_be_before(state: Any, access: Any) -> Any:
    """Whether an access that happened before does so in any order of locks, as far as those are looked at."""
    chain, time = chain_of(access), time_in(access)
    if state.now[REORDERS] == 0 or chain == state.now[CHAIN]:
        return True
    if chain == state.now[CREATOR_CHAIN] and time <= state.now[CREATOR_TIME]:
        return True
    if 2 * chain >= state.now[CLOCK_LENGTH]:
        return False
    return time <= np.int64(state.clocks.values.rows[np.uint64(state.now[CLOCK_FIRST] + 2 * chain + 1)])


@inlined
def put_aside(state: Any, before: Any) -> None:
    """Another order of locks has an access behind the present one, unless that is kept (lock_orders.settle): of each
    chain the last such access is put aside."""
    place = np.uint64(chain_of(before) & (MOST_ASIDE - 1))
    known = state.aside[place]
    if known == 0 or time_in(known) < time_in(before):
        state.aside[place] = before
    if known != 0 and chain_of(known) != chain_of(before):
        stop_orders(state, BY_ROOM)
    state.now[ASIDE] = 1


@kernel
def keep_behind(state: State, before: Any) -> None:
    """In other orders of locks, too, what the present task does comes behind an access: each sees the same values."""
    stream, task = state.now[STREAM], state.now[TASK]
    make_own(state, task)
    set_must_time(state.clocks, state.tasks.rows[task].clock, chain_of(before), time_in(before))
    turn_to(state, stream)


@inlined
def is_of_others(state: Any, access: Any) -> Any:
    """Whether the present task itself made an access, as another part of a shared loop."""
    time = time_in(access)
    return chain_of(access) == state.now[CHAIN] and time > state.now[OTHERS_FROM] and time < state.now[OTHERS_TO]


@inlined
def rank_now(state: Any, instruction: Any) -> Any:
    """Where an instruction of the present lane stands in the text of the SIMD loop, 0 if that is not known; one of a
    function that the loop calls stands at the call."""
    if state.now[SIMD] == 0:
        return np.int64(0)
    loop, last = state.simd_loops.rows[state.now[SIMD]], np.int64(state.lexical.size - 1)
    own = state.lexical[np.uint64(min(instruction, last))]
    if own.loop != loop.loop + 1 and loop.call >= 0:
        own = state.lexical[np.uint64(min(loop.call, last))]
    return np.int64(own.rank) if own.loop == loop.loop + 1 else np.int64(0)


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
        site.role, site.stream, site.locks, site.base = task.role, task.stream, task.locks, task.base
        site.rank = rank_now(state, instruction)
    return row


@inlined
def recent_site(state: Any, instruction: Any, context: Any, kind: Any, stores: Any) -> Any:
    """The row of `sites` (int64), kept for an instruction that accesses again and again; `stores`: 0 or 1."""
    place = 2 * min(instruction, np.int64(state.recent.size // (2 * RECENT_WAYS) - 1)) + stores
    way = (context ^ state.now[SITUATION]) & (RECENT_WAYS - 1)
    recent = state.recent[np.uint64(place * RECENT_WAYS + way)]
    is_other = recent.context != context or recent.situation != state.now[SITUATION] or recent.kind != kind
    if recent.site == 0 or is_other:
        recent.context, recent.situation, recent.kind = context, state.now[SITUATION], kind
        recent.site = site_of(state, instruction, context, kind)
    return np.int64(recent.site)


@inlined
def access_at(state: Any, site: Any, kind: Any) -> Any:
    """What the present task does now at a site."""
    return np.uint64(state.now[OWN] | (kind << KIND_SHIFT) | site)


@inlined
def access_now(state: Any, instruction: Any, context: Any, kind: Any) -> Any:
    """The access that the present task makes."""
    return access_at(state, recent_site(state, instruction, context, kind, kind >> 1), kind)


@inlined
def same_step(one: Any, other: Any) -> Any:
    """Whether two accesses are of one kind, chain and time."""
    return (one ^ other) >> np.uint64(SITE_BITS) == np.uint64(0)


@inlined
def stands_for(state: Any, known: Any, access: Any) -> Any:
    """Whether what races with a present access races with one that is known, of the same kind, chain and time.

    In a lane the known one must not stand before the other in the loop's text: more comes behind that.
    """
    if not same_step(known, access):
        return False
    return known == access or state.now[SIMD] == 0 or rank_of(state, known) >= rank_of(state, access)


@inlined
def rank_of(state: Any, access: Any) -> Any:
    """Where an access of a lane stands in the text of its loop, 0 if that is not known."""
    return np.int64(state.sites.rows[site_in(access)].rank)


@inlined
def is_ahead(state: Any, before: Any, access: Any) -> Any:
    """Whether an earlier lane made an access, and stands before what the present one does in the text of the loop.

    OpenMP keeps the order of these two within a vector ("lexical forward dependence"), but no other order of lanes.
    """
    if state.now[SIMD] == 0:
        return False
    loop, chain = state.simd_loops.rows[state.now[SIMD]], chain_of(before)
    of = state.chains.rows[chain]
    if of.lane >= loop.lane or time_in(before) < of.lane_from:
        return False
    if np.int64(state.tasks.rows[loop.lanes[of.lane]].chain) != chain:
        return False
    rank = rank_of(state, before)
    return rank != 0 and rank < rank_of(state, access) + (rank & ORDERED)


@inlined
def conflicts(one: Any, other: Any) -> Any:
    """Whether accesses of two kinds, of READ, ATOMIC_READ, ATOMIC_WRITE and WRITE, race if nothing orders them."""
    if one == WRITE or other == WRITE:
        return True
    return (one == READ and other == ATOMIC_WRITE) or (one == ATOMIC_WRITE and other == READ)


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
    if loop == 0:
        stop_orders(state, BY_RACE)  # in which order the two came is not sure
    key = (np.uint64(site_in(before)) << np.uint64(32)) | np.uint64(site_in(access))
    race = state.races.rows[row_of(state.races, key)]
    if race.count == 0:
        race.address, race.group, race.object, race.offset = address, group, number, offset
        race.loop, race.single = loop, single
    elif race.loop != loop or race.single != single:
        race.loop = 0
    race.count += 1
    race.last = address
