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
from tracekit.races.kernels.accesses import (
    access_at,
    access_now,
    conflicts,
    has_to_be_before,
    is_ahead,
    is_before,
    is_of_others,
    put_aside,
    report,
    site_of,
    stands_for,
)
from tracekit.races.kernels.epochs import stop_orders
from tracekit.races.kernels.lock_orders import settle
from tracekit.races.kernels.order import turn_to
from tracekit.races.kernels.resources import beside, compare_uses, is_descriptor, is_in_use, put_beside
from tracekit.races.kernels.shares import draw, learn_own_number
from tracekit.races.kernels.state import (
    ALIVE,
    ATOMIC,
    ATOMIC_READ,
    ATOMIC_WRITE,
    BEGIN,
    BY_ATOMIC,
    COUNTS,
    DIRECT,
    END,
    FREE,
    OF_LANE,
    OF_RUNTIME,
    READ,
    SEVERAL,
    STREAM,
    TASK,
    TEAMS,
    TELLS,
    UNKNOWN,
    UNORDERED,
    WRITE,
    State,
    kind_in,
    time_in,
)

LOOKED_AT = 256
"""Accesses of a set that are looked at when another one is added."""
WHOLE_FREE = 1 << 20
"""Of a larger block that is freed only what was touched is marked."""


@inlined
def replaces(later: Any, earlier: Any) -> Any:
    """Whether what conflicts with an `earlier` kind conflicts with a `later` one, too."""
    return later == earlier or (earlier == ATOMIC_READ and later != ATOMIC_READ)


@inlined
def compare_with(state: Any, before: Any, access: Any, where: Any) -> None:
    """Note whether an access races with one before it; else in other orders of locks it comes behind it, too."""
    one, other = kind_in(before), kind_in(access)
    if conflicts(one, other):
        if not (is_before(state, before) or is_ahead(state, before, access)):
            report(state, before, access, where)
        elif not has_to_be_before(state, before):
            put_aside(state, before)
    elif (one | other) & ATOMIC_WRITE and not has_to_be_before(state, before):
        if state.now[UNORDERED] != 0 and not is_before(state, before):
            stop_orders(state, BY_ATOMIC)
        else:
            put_aside(state, before)


@inlined
def gives_way(state: Any, kind: Any, before: Any) -> Any:
    """Whether an access need not be known behind one of a kind now: what conflicts with it comes behind both."""
    return replaces(kind, kind_in(before)) and is_before(state, before) and has_to_be_before(state, before)


@kernel
def compare(state: State, cell: Any, access: Any, where: Any) -> None:
    """Note what an access to the bytes of a cell races with."""
    row, kind = state.memory.rows[cell], kind_in(access)
    if row.write != 0:
        compare_with(state, row.write, access, where)
    if kind == WRITE and is_in_use(row.others):
        compare_uses(state, row.others, access, where)
    others = beside(state, row.others)
    while others & SEVERAL:
        node = state.sets.rows[others & ~SEVERAL]
        if kind < ATOMIC_WRITE and node.stores == 0:
            return  # nothing is to be said of two that only read
        other = state.accesses.rows[node.key >> np.uint64(32)].key
        compare_with(state, other, access, where)
        others = node.key & np.uint64(0xFFFF_FFFF)
        others = others | SEVERAL if others != 0 else others
    if others != 0:
        compare_with(state, others, access, where)


@kernel
def with_access(state: State, others: Any, access: Any) -> Any:
    """What stands beside a store when an access is added to `others`. Of a large set the newest are looked at.

    What lies behind the last one that gives way, `tail`, goes on as it is; `apart` are kept of those before it.
    """
    kept, kind, tail, own, apart = 0, kind_in(access), np.uint64(0), -1, 0
    if others & SEVERAL:
        tail = node = others & ~SEVERAL
        while node != 0 and kept < LOOKED_AT:
            key = state.sets.rows[node].key
            other, stays = state.accesses.rows[key >> np.uint64(32)].key, True
            node = key & np.uint64(0xFFFF_FFFF)
            if kind_in(other) == kind and is_of_others(state, other):
                # Of what other iterations did the last is enough: what orders it orders those before.
                if own < 0:
                    own = kept
                else:
                    stays = False
                    if time_in(other) > time_in(state.scratch[own]):
                        state.scratch[own] = other
            else:
                stays = not gives_way(state, kind, other)
            if stays:
                state.scratch[kept] = other
                kept += 1
            else:
                tail, apart = node, kept
    elif others != 0 and not gives_way(state, kind, others):
        state.scratch[0] = others
        apart = 1
    if apart == 0 and tail == 0:
        return access
    for place in range(apart - 1, -1, -1):
        tail = one_more(state, state.scratch[place], tail)
    return one_more(state, access, tail) | SEVERAL


@inlined
def one_more(state: Any, access: Any, others: Any) -> Any:
    """The row of `sets` of an access and those of another row, 0 for none."""
    number = np.uint64(row_of(state.accesses, access))
    row, is_new = find_or_make(state.sets, (number << np.uint64(32)) | others)
    if is_new and row != 0:
        state.sets.rows[row].stores = kind_in(access) == ATOMIC_WRITE or state.sets.rows[others].stores != 0
    return np.uint64(row)


@inlined
def knows(state: Any, others: Any, access: Any) -> Any:
    """Whether one that stands for an access is among the newest of `others`."""
    if not others & SEVERAL:
        return stands_for(state, others, access)
    node, found, looked = others & ~SEVERAL, False, 0
    while node != 0 and not found and looked < LOOKED_AT:
        key = state.sets.rows[node].key
        found = stands_for(state, state.accesses.rows[key >> np.uint64(32)].key, access)
        node = key & np.uint64(0xFFFF_FFFF)
        looked += 1
    return found


# -- accesses ------------------------------------------------------------------------------------------


@kernel
def add_access(state: State, access: Any, address: Any, size: Any, where: Any) -> None:
    """A plain load, or an atomic access: it stands beside what is known."""
    for cell in changing(state.memory, address, size):
        others = beside(state, state.memory.rows[cell].others)
        if not knows(state, others, access):
            compare(state, cell, access, where)
            put_beside(state, cell, with_access(state, others, access))


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
def is_passed_over(state: Any, known_of: Any) -> Any:
    """Whether an access of an instruction of this kind is passed over; if not, what its kind orders comes first."""
    if known_of < OF_LANE:
        return False
    if known_of & OF_RUNTIME or known_of & (OF_LANE | ATOMIC) == OF_LANE:
        return True
    if known_of & TELLS:
        learn_own_number(state)
    if known_of & COUNTS:
        draw(state)
    return False


@inlined
def load(state: Any, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A load of the present task."""
    if is_passed_over(state, kind_of(state, instruction)):
        return
    kind = ATOMIC_READ if is_atomic(state, instruction) else READ
    access = access_now(state, instruction, context, kind)
    known = True
    for cell in reading(state.memory, address, size):
        known = known and stands_for(state, state.memory.rows[cell].others, access)
    if not known:
        add_access(state, access, address, size, where)
        settle(state, access, where)


@inlined
def store(state: Any, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A store of the present task."""
    if is_passed_over(state, kind_of(state, instruction)):
        return
    if is_atomic(state, instruction):
        access = access_now(state, instruction, context, ATOMIC_WRITE)
        add_access(state, access, address, size, where)
        settle(state, access, where)
        return
    access = access_now(state, instruction, context, WRITE)
    known = True
    for cell in reading(state.memory, address, size):
        row = state.memory.rows[cell]
        known = known and row.others == 0 and stands_for(state, row.write, access)
    if not known:
        put_store(state, access, address, size, where)
        settle(state, access, where)


@kernel
def change(state: State, instruction: Any, context: Any, kind: Any, address: Any, where: Any) -> None:
    """A synchronisation object or a descriptor begins or ends: as if it were stored. A descriptor that begins is new,
    and who opens one behind its end need not be seen."""
    if is_descriptor(address) and kind == BEGIN:
        clear(state.memory, address, 1)
    if kind_of(state, instruction) & DIRECT:
        access = access_at(state, site_of(state, instruction, context, kind), WRITE)
        put_store(state, access, address, 1, where)
        settle(state, access, where)
    if is_descriptor(address) and kind == END:
        clear(state.memory, address, 1)


@kernel
def free(state: State, instruction: Any, context: Any, address: Any, size: Any, where: Any) -> None:
    """A block is freed: as if all of it were stored."""
    if kind_of(state, instruction) & OF_RUNTIME:
        return
    access = access_at(state, site_of(state, instruction, context, FREE), WRITE)
    if size <= WHOLE_FREE:
        put_store(state, access, address, size, where)
        settle(state, access, where)
        return
    end = address + size
    while address < end:
        part = min(4096 - (address & 4095), end - address)
        if page_of(state.memory, np.uint64(address) >> np.uint64(PAGE_BITS)) != NOWHERE:
            put_store(state, access, address, part, where)
        address += part
    settle(state, access, where)


@inlined
def forget(state: Any, address: Any, size: Any) -> None:
    """Bytes are new. While one thread is alone that is not needed: all that is known happened before what comes. (What
    workers of OpenMP's runtime free between teams is not.)"""
    if state.now[ALIVE] > 1 or state.now[TEAMS] > 0:
        clear(state.memory, address, size)
