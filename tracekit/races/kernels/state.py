"""What the race detector keeps: threads, what they hold, objects that order them, the history of bytes, races."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.arena import Arena
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.containers.kernels.shadow import Shadow
from tracekit.jit.kernel import inlined
from tracekit.races.kernels.clocks import Clocks

# Parts of an access, a u8: what it did, the thread and its time, and the row of `sites`. 0 is none.
SITE_BITS = 22
TIME_BITS = 26
THREAD_BITS = 13
TIME_SHIFT = SITE_BITS
THREAD_SHIFT = TIME_SHIFT + TIME_BITS
KIND_SHIFT = THREAD_SHIFT + THREAD_BITS
SEVERAL = np.uint64(1 << 63)
"""Marks the row of `sets` that stands in place of an access."""
LAST_TIME = (1 << TIME_BITS) - 1
MOST_THREADS = 1 << THREAD_BITS
MOST_SITES = 1 << SITE_BITS

# Kinds of accesses.
READ = 0
ATOMIC_READ = 1
ATOMIC_WRITE = 2
WRITE = 3
FREE = 4
"""Only in sites: in accesses it is a WRITE."""

CELL = np.dtype([("write", "<u8"), ("others", "<u8")])
"""Of a byte: the last plain store, and what no plain store has followed: an access, or with SEVERAL a set of them."""

SITE = np.dtype([("instruction", "<u4"), ("context", "<i4"), ("thread", "<i4"), ("locks", "<u4"), ("kind", "<i4")])

RECENT = np.dtype([("context", "<i4"), ("situation", "<u4"), ("site", "<u4"), ("reserved", "<u4")])
"""The site of an instruction's last access of a kind, if context and situation are these."""

HELD = np.dtype([("object", "<i8"), ("shared", "<i4"), ("times", "<i4")])
MOST_HELD = 64
"""Locks that a thread holds at once; more order threads, but are not shown."""

# Elements of State.now.
STREAM = 0  # whose events come now, -1 for none
THREAD = 1  # its thread, 0 if that is not known
CLOCK_FIRST = 2  # where the elements of its clock begin
CLOCK_LENGTH = 3
OWN = 4  # thread and time of its accesses, in their places
SITUATION = 5  # row of `situations`
ALIVE = 6  # threads that were created and not joined
OLD_BARRIERS = 7  # events of recorders that did not say enough of barriers
UNKNOWN = 8  # accesses of streams that belong to no known thread
NOW = 9
"""How many there are."""


class State(NamedTuple):
    """All of it."""

    now: Any  # int64 (NOW)
    memory: Shadow  # CELL
    clocks: Clocks
    streams: HashTable  # stream: thread
    threads: Arena  # THREAD_ROW
    held: Arena  # HELD, MOST_HELD of each thread
    objects: HashTable  # address: a lock, semaphore, ...
    atomics: HashTable  # address
    barriers: HashTable  # address
    rounds: HashTable  # barrier << 3 | round modulo 8: its clock
    entered: HashTable  # barrier << 16 | thread: the round that it is in
    lock_sets: HashTable  # set << 32 | object << 1 | shared: one lock more
    situations: HashTable  # thread << 32 | set of locks
    places: HashTable  # context << 32 | instruction
    sites: HashTable  # place << 36 | situation << 3 | kind; SITE
    recent: Any  # RECENT [2 * instruction + stores]
    atomic: Any  # u1 by instruction: 1 if its accesses are atomic
    accesses: HashTable  # an access
    sets: HashTable  # access << 32 | set: one access more
    scratch: Any  # u8: accesses of a set
    races: HashTable  # site of the access before << 32 | site of the one behind; RACE


THREAD_ROW = np.dtype(
    [
        ("stream", "<i8"),
        ("clock", "<i8"),
        ("time", "<i8"),
        ("released", "<i8"),  # the clock at its last release fence, 0 before
        ("met", "<i8"),  # what relaxed loads met since, 0 before
        ("held", "<i8"),  # the first of its HELD
        ("holds", "<i4"),  # how many
        ("joined", "<i4"),
        ("locks", "<u4"),  # row of lock_sets
        ("situation", "<u4"),
        ("creator", "<i4"),  # thread
        ("context", "<i4"),  # where that created it
    ]
)
RACE = np.dtype(
    [
        ("count", "<i8"),
        ("address", "<u8"),
        ("last", "<u8"),  # address of the last one
        ("group", "<i8"),
        ("object", "<i8"),
        ("offset", "<i8"),
    ]
)


@inlined
def thread_of(access: Any) -> Any:
    """The thread of an access."""
    return np.int64((access >> np.uint64(THREAD_SHIFT)) & np.uint64(MOST_THREADS - 1))


@inlined
def time_in(access: Any) -> Any:
    """The time of that thread."""
    return np.int64((access >> np.uint64(TIME_SHIFT)) & np.uint64(LAST_TIME))


@inlined
def kind_in(access: Any) -> Any:
    """What it did."""
    return np.int64((access >> np.uint64(KIND_SHIFT)) & np.uint64(3))


@inlined
def site_in(access: Any) -> Any:
    """Its row of sites."""
    return np.int64(access & np.uint64(MOST_SITES - 1))
