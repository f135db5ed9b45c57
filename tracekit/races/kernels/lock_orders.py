"""Races that a run hides by the order in which locks happened to be taken.

Two accesses that only the giving up and taking of locks orders, and that hold none in common, race if the program could
have run so: each task up to some point, each load behind the same stores, each critical section of a lock alone. Such a
run is looked for: it has all that has to come before the two, and what every other access had before it comes before it
again. Those sections of a lock that end in it keep their order, and the one that it ends in is its last (Shi, Mathur
and Pavlogiannis, *Optimistic Prediction of Synchronization-Reversal Data Races*, ICSE 2024). Whatever threads then do
is what they did in the recorded run, up to the two accesses, which nothing orders.

Clocks say what has to come before: the order of each task, threads' and teams' beginnings and ends, barriers,
semaphores, atomic operations and all else that is no lock; and the order of all accesses to a byte of which one stores.
A lock that is taken otherwise than by waiting for it alone (by readers, for a condition, by whom another one has it
given up) keeps the order of the run, and so does one under which a library is called whose effects are not in the
trace. Who tries a lock and gets it might have waited for it; behind one that is refused nothing is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.races.kernels.accesses import conflicts, is_before, keep_behind
from tracekit.races.kernels.epochs import needed_by
from tracekit.races.kernels.state import (
    ASIDE,
    CHAIN,
    FREE,
    MINGLED,
    MOST_ASIDE,
    MOST_REORDERED,
    OLD_BARRIERS,
    REORDERS,
    TRIES,
    UNKNOWN,
    State,
    chain_of,
    kind_in,
    site_in,
    time_in,
)

WINDOW = 1 << 12
"""So many epochs before an access may come in another order."""
MOST_TRIES = 1 << 10
TRIES_OF_PAIR = 4


@inlined
def settle(state: Any, access: Any, where: Any) -> None:
    """What was put aside for an access: other orders of locks keep it, if they do not have a race."""
    if state.now[ASIDE] != 0:
        settle_all(state, access, where)


@kernel
def settle_all(state: State, access: Any, where: Any) -> None:
    """What was put aside for an access (u8, with parts as state.py says): each is tried in another order."""
    state.now[ASIDE] = 0
    for place in range(MOST_ASIDE):
        before = state.aside[place]
        if before != 0:
            state.aside[place] = 0
            turn_round(state, before, access, where)


@kernel
def turn_round(state: State, before: Any, access: Any, where: Any) -> None:
    """An access stands behind one that it conflicts with by an order of locks alone: note if another one has a race."""
    if may_race(state, before, access) and has_order(state, before):
        address, group, number, offset = where
        key = (np.uint64(site_in(before)) << np.uint64(32)) | np.uint64(site_in(access))
        race = state.reordered.rows[row_of(state.reordered, key)]
        if race.count == 0:
            race.address, race.group, race.object, race.offset = address, group, number, offset
            race.lock = turned_lock(state, before)
        race.count += 1
        race.last = address
    keep_behind(state, before)


@kernel
def may_race(state: State, before: Any, access: Any) -> bool:
    """Whether an order is worth a try: accesses of two threads that hold no lock in common, and not too many tries."""
    now = state.now
    if now[UNKNOWN] + now[MINGLED] + now[OLD_BARRIERS] != 0 or now[TRIES] >= MOST_TRIES:
        return False
    if site_in(before) == 0 or site_in(access) == 0:
        return False
    one, other = state.sites.rows[site_in(before)], state.sites.rows[site_in(access)]
    if not conflicts(kind_in(before), kind_in(access)) or not is_before(state, before):
        return False
    if one.kind > FREE or other.kind > FREE or one.stream == other.stream:
        return False
    mine = np.int64(one.locks)
    while mine != 0:
        key = np.int64(state.lock_sets.rows[mine].key)
        theirs = np.int64(other.locks)
        while theirs != 0:
            held = np.int64(state.lock_sets.rows[theirs].key)
            if (key ^ held) & 0xFFFF_FFFE == 0:
                return False
            theirs = held >> 32
        mine = key >> 32
    pair = (np.uint64(site_in(before)) << np.uint64(32)) | np.uint64(site_in(access))
    tried = state.tried.rows[row_of(state.tried, pair)]
    tried.count += 1
    if tried.count > TRIES_OF_PAIR:
        return False
    now[TRIES] += 1
    return True


@inlined
def reaches(state: Any, epoch: Any, into: Any) -> Any:
    """Whether an epoch is in what is tried (`into`: reached), or has run (`into`: ran)."""
    return epoch != 0 and epoch <= into[state.epochs.rows[epoch].chain]


@kernel
def epoch_at(state: State, chain: Any, time: Any, begin: Any) -> Any:
    """The epoch of a chain that has a time, at least `begin`."""
    epoch = begin
    following = np.int64(state.epochs.rows[epoch].next) if epoch != 0 else np.int64(0)
    if epoch == 0:
        epoch = np.int64(state.chains.rows[chain].epoch)
        while epoch != 0 and state.epochs.rows[epoch].time > time:
            epoch = np.int64(state.epochs.rows[epoch].previous)
        return epoch
    while following != 0 and state.epochs.rows[following].time <= time:
        epoch = following
        following = np.int64(state.epochs.rows[epoch].next)
    return epoch


@kernel
def epoch_of(state: State, before: Any) -> Any:
    """The epoch of an access: of those that begin at one time the one with its locks."""
    last = epoch_at(state, chain_of(before), time_in(before), np.int64(0))
    locks, time = state.sites.rows[site_in(before)].locks, state.epochs.rows[last].time
    epoch = last
    while epoch != 0 and state.epochs.rows[epoch].time == time:
        if state.epochs.rows[epoch].locks == locks:
            return epoch
        epoch = np.int64(state.epochs.rows[epoch].previous)
    return last


@kernel
def has_order(state: State, before: Any) -> bool:
    """Whether an order of locks has an access and the present one at once."""
    chains = np.int64(state.chains.control[USED])
    if chains > MOST_REORDERED or state.now[REORDERS] == 0:
        return False
    of = chain_of(before)
    held = epoch_of(state, before)
    newest = np.int64(state.epochs.control[USED])
    if held == 0 or newest - held > WINDOW:
        return False
    begin_run(state, chains, min(held, newest - WINDOW))
    return close_run(state, chains, of, held) and runs(state, chains)


@kernel
def begin_run(state: State, chains: Any, begin: Any) -> None:
    """What began before the epoch `begin` has run as it did."""
    for chain in range(1, chains):
        epoch = np.int64(state.chains.rows[chain].epoch)
        while epoch != 0 and epoch >= begin:
            epoch = np.int64(state.epochs.rows[epoch].previous)
        state.ran[chain] = epoch
        state.reached[chain] = epoch


@kernel
def close_run(state: State, chains: Any, of: Any, held: Any) -> bool:
    """All epochs that have to come before the end of `held`, of the chain `of`, and before the present access; false if
    one of them has to come behind `held`."""
    own, reached, has_grown = state.now[CHAIN], state.reached, True
    reached[of] = held
    reached[own] = np.int64(state.chains.rows[own].epoch)
    while has_grown:
        has_grown = False
        for chain in range(1, chains):
            epoch = reached[chain]
            if epoch == 0:
                continue
            for other in range(1, chains):
                time = needed_by(state, epoch, np.int64(other))
                if time == 0 or other == chain:
                    continue
                if other == of:
                    if time >= state.epochs.rows[held].time:
                        return False
                    continue
                last = epoch_at(state, np.int64(other), time, reached[other])
                if last > reached[other]:
                    reached[other] = last
                    has_grown = True
    return True


@kernel
def runs(state: State, chains: Any) -> bool:
    """Whether all that was reached can run: each epoch behind those that have to come before, each section alone."""
    has_run = True
    while has_run:
        has_run, is_over = False, True
        for chain in range(1, chains):
            while state.ran[chain] != state.reached[chain]:
                epoch = following(state, chain)
                if not can_run(state, chains, epoch):
                    is_over = False
                    break
                state.ran[chain] = epoch
                has_run = True
        if is_over:
            return True
    return False


@inlined
def following(state: Any, chain: Any) -> Any:
    """The epoch of a chain that comes next."""
    epoch = state.ran[chain]
    if epoch != 0:
        return np.int64(state.epochs.rows[epoch].next)
    epoch = np.int64(state.chains.rows[chain].epoch)
    while state.epochs.rows[epoch].previous != 0:
        epoch = np.int64(state.epochs.rows[epoch].previous)
    return epoch


@kernel
def can_run(state: State, chains: Any, epoch: Any) -> bool:
    """Whether an epoch can run behind what has."""
    row = state.epochs.rows[epoch]
    for other in range(1, chains):
        time = needed_by(state, epoch, np.int64(other))
        if time == 0 or other == row.chain or state.ran[other] == state.reached[other]:
            continue
        if state.epochs.rows[following(state, np.int64(other))].time <= time:
            return False
    if row.lock <= 0:
        return bool(row.lock == 0 or state.objects.rows[-row.lock].kept == 0)
    return bool(state.objects.rows[row.lock].kept == 0) and is_free(state, epoch)


@kernel
def is_free(state: State, epoch: Any) -> bool:
    """Whether the lock that an epoch takes is given up, and those before it have had it."""
    row = state.epochs.rows[epoch]
    stays = not reaches(state, np.int64(row.mate), state.reached)
    section = np.int64(row.prior)
    if stays:  # it is the last one: all others have to be over
        section = np.int64(state.objects.rows[row.lock].epoch)
    for _ in range(WINDOW):
        if section == 0:
            return True
        of = state.epochs.rows[section]
        if section != epoch and reaches(state, section, state.reached):
            if reaches(state, np.int64(of.mate), state.reached):
                if not reaches(state, np.int64(of.mate), state.ran):
                    return False
                if section < epoch:
                    return True  # that one waited for all before it
            elif stays or reaches(state, section, state.ran):
                return False
        section = np.int64(of.prior)
    return False


@kernel
def turned_lock(state: State, before: Any) -> Any:
    """A lock that the task of an access gave up behind it before another one took it; 0 if there is none."""
    epoch = epoch_at(state, chain_of(before), time_in(before), np.int64(0))
    while epoch != 0:
        row = state.epochs.rows[epoch]
        if row.lock < 0 and state.epochs.rows[state.objects.rows[-row.lock].epoch].chain != row.chain:
            return np.int64(-row.lock)
        epoch = np.int64(row.next)
    return np.int64(0)
