"""What the race detector keeps: tasks, what they hold, objects that order them, the history of bytes, races.

A *task* is what can run beside others: a thread, an implicit task of an OpenMP team, or an explicit one. Tasks that
come one after the other may have one *chain* in common, by which vector clocks count (kernels/chains.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.arena import Arena
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow
from tracekit.jit.kernel import inlined
from tracekit.races.kernels.clocks import Clocks

# Parts of an access, a u8: what it did, the chain and its time, and the row of `sites`. 0 is none.
SITE_BITS = 21
TIME_BITS = 23
CHAIN_BITS = 17
TIME_SHIFT = SITE_BITS
CHAIN_SHIFT = TIME_SHIFT + TIME_BITS
KIND_SHIFT = CHAIN_SHIFT + CHAIN_BITS
SEVERAL = np.uint64(1 << 63)
"""Marks the row of `sets` that stands in place of an access."""
IN_USE = np.uint64(3 << 62)
"""Marks the row of `resources` of a synchronisation object that has been used: beside SEVERAL, which sets have."""
LAST_TIME = (1 << TIME_BITS) - 1
MOST_CHAINS = 1 << CHAIN_BITS
MOST_SITES = 1 << SITE_BITS

# Kinds of accesses.
READ = 0
ATOMIC_READ = 1
ATOMIC_WRITE = 2
WRITE = 3
# Only in sites: in accesses a use is an ATOMIC_READ, the others are WRITEs.
FREE = 4
USE = 5
BEGIN = 6
END = 7
"""Of a synchronisation object or a file descriptor: it is used, initialised or opened, destroyed or closed."""

CELL = np.dtype([("write", "<u8"), ("others", "<u8")])
"""Of a byte: the last plain store, and what no plain store has followed: an access, or with SEVERAL a set of them, or
with IN_USE the row of `resources` that has it."""

SITE = np.dtype(
    [
        ("instruction", "<u4"),
        ("context", "<i4"),
        ("role", "<i4"),
        ("stream", "<i4"),
        ("locks", "<u4"),
        ("kind", "<i4"),
        ("base", "<i4"),  # of its task
        ("rank", "<i4"),  # of a lane: its place in the text of the SIMD loop, as in LEXICAL
    ]
)

LEXICAL = np.dtype([("loop", "<i4"), ("rank", "<i4")])
"""Of an instruction: the SIMD loop of the same function that it lies in, plus 1, and its place in the text of the body:
what has a smaller one stands before it. What an inner loop holds has one place. 0 of other instructions."""
ORDERED = 1
"""Marks the place of a region of `ordered simd`, whose lanes come one after the other."""

RECENT = np.dtype([("context", "<i4"), ("situation", "<u4"), ("site", "<u4"), ("kind", "<u4")])
"""The site of an instruction's last access of those that store, or of the others, if context, situation and kind are
these."""
RECENT_WAYS = 4
"""So many of each, told apart by context and situation."""

HELD = np.dtype([("object", "<i8"), ("shared", "<i4"), ("times", "<i4")])
MOST_HELD = 64
"""Locks that a task holds at once; more order threads, but are not shown."""

# What a role is.
THREAD_ROLE = 1  # one thread
TEAM_ROLE = 2  # implicit tasks of the teams of one place
TASK_ROLE = 3  # explicit tasks of one place
LANE_ROLE = 4  # lanes of one SIMD loop

MOST_REORDERED = 256
"""Chains of a run in which other orders of locks are looked for."""
MOST_ASIDE = 64
MOST_LANES = 64
"""So many iterations of a SIMD loop run at once, if its source does not say how many: as many bytes as the widest
vectors hold."""
ATOMIC = 1
OF_LANE = 2
TELLS = 4
COUNTS = 8
OF_RUNTIME = 16
DIRECT = 32
TAKES = 64
WAITS = 128
OUTSIDE = 256
CALLS_BACK = 512
TRIES_LOCK = 1024
"""Of an instruction: its accesses are atomic; each lane of a SIMD loop has its own memory there; a thread that gets
there may know which of its team it is; it loads and stores in one atomic operation, as what draws a number does;
OpenMP's runtime orders what it does, out of sight; it calls a function of the C or C++ library that uses the program's
synchronisation objects and descriptors, not a library that may have some of its own; it takes a lock, and waits for
nothing else; it waits for a condition; it calls a library whose effects the trace does not show;
that does so by name, so that what it enters is called back; its result may say in which order threads came to a lock or
a loop."""

SHARED_LOOP = 255
"""In place of a number of lanes: OpenMP shares the loop's iterations out among threads."""
SPLIT_ITERATIONS = 1 << 14
"""So many iterations of a shared loop are told apart, ..."""
SPLIT_AT_ONCE = 1 << 10
"""And so many of what a thread has of it at once; those behind them are as one."""
SINGLE = -1
"""In place of a loop: a task is in a `single` region, or what races with that lies in no shared loop."""

# Elements of State.now.
STREAM = 0  # whose events come now, -1 for none
TASK = 1  # its task, 0 if that is not known
CLOCK_FIRST = 2  # where the elements of its clock begin
CLOCK_LENGTH = 3
OWN = 4  # chain and time of its accesses, in their places
SITUATION = 5  # row of `situations`
ALIVE = 6  # threads that were created and not joined, and teams
OLD_BARRIERS = 7  # events of recorders that did not say enough of barriers
UNKNOWN = 8  # accesses of streams that belong to no known thread
CHAIN = 9  # the task's
CREATOR_CHAIN = 10  # up to which time of which chain it knows, beside its clock
CREATOR_TIME = 11
TEAMS = 12  # so far
TASKS = 13  # explicit ones so far
MINGLED = 14  # tasks that had to take the chain of one that they do not know
FIRST_ENDED = 15  # of the ring `ended`
ENDED = 16  # how many there are
FREE_HELD = 17  # the first of HELD that nobody uses
FREE_GENERATION = 18
FREE_LINK = 19
OTHERS_FROM = 20  # what it did at times between these two was another iteration's, or a chunk's, of a shared loop
OTHERS_TO = 21
REORDERS = 22  # 1 while races of other orders of locks are looked for
TRIES = 23  # how often so far
ASIDE = 24  # 1 if there is anything in `aside`
STOPPED = 25  # why other orders are not looked for any more, of the following; 0 as long as they are
UNORDERED = 26  # 1 if the trace does not have the order of atomic instructions
BY_NUMBER = 27  # 1 if who closes a descriptor comes before who opens one with its number
REUSED = 28  # descriptors with the number of one that another task had closed
SIMD = 29  # row of `simd_loops` if the task is a lane, else 0
NOW = 30
"""How many there are."""


BY_RACE = 1
BY_TRY = 2
BY_ATOMIC = 3
BY_FORK = 4
BY_TASK = 5
BY_LANES = 6
BY_ROOM = 7
"""Why other orders of locks are looked for up to some point only: in which order the ends of a race came is not sure,
nor what a thread saw that tried a lock in vain, nor in which order atomic instructions came; a process was forked; a
task, a SIMD loop of OpenMP began; there are more threads or points of order than are kept."""


class State(NamedTuple):
    """All of it."""

    now: Any  # int64 (NOW)
    memory: Shadow  # CELL
    clocks: Clocks
    streams: HashTable  # stream: the task that it is in, the innermost implicit one, its SIMD loop, what it is taking
    simd_loops: Arena  # SIMD_LOOP
    lanes_of: Any  # u1 by loop: how many iterations run at once, or SHARED_LOOP; 0 of other loops
    lexical: Any  # LEXICAL by instruction, and one more for libraries
    unsplit: Any  # u4 by loop: how many iterations may still be told apart
    born: HashTable  # address of a heap block: 1 + the stream that allocated it inside a team
    tasks: Arena  # TASK_ROW
    chains: Arena  # CHAIN_ROW
    ended: Any  # i8, a ring: chains whose tasks are over, the oldest first
    retired: HashTable  # chain << TIME_BITS | time of a task that has retired: what it stands at, `into`
    roles: HashTable  # of threads by stream, of others by context and instruction; ROLE
    held: Arena  # HELD, MOST_HELD of each task that holds any
    objects: HashTable  # address: a lock, semaphore, ...; LOCK
    atomics: HashTable  # address: `size` bytes that atomic operations have in common, and what they release
    barriers: HashTable  # address
    rounds: HashTable  # barrier << 3 | round modulo 8: its clock
    entered: HashTable  # barrier << 32 | task: the round that it is in
    numbers: HashTable  # number of a task in events: its row
    teams: HashTable  # number of a team; TEAM
    groups: Arena  # GROUP
    depends: HashTable  # parent and address: DEPEND
    generations: Arena  # GENERATION
    links: Arena  # LINK
    steps: HashTable  # team and step of a doacross loop: its clock
    own_lines: HashTable  # 64 bytes that are one stream's own: stream + 1
    lock_sets: HashTable  # set << 32 | object << 1 | shared: one lock more
    situations: HashTable  # role << 44 | stream << 30 | set of locks
    places: HashTable  # context << 32 | instruction
    sites: HashTable  # place << 36 | situation << 3 | kind; SITE
    recent: Any  # RECENT [(2 * instruction + stores) * RECENT_WAYS + way]
    kinds: Any  # u2 by instruction: ATOMIC, OF_LANE, TELLS, COUNTS, OF_RUNTIME, DIRECT, ...
    accesses: HashTable  # an access
    sets: HashTable  # access << 32 | set: one access more; `stores`: 1 if an ATOMIC_WRITE is among all of them
    scratch: Any  # u8: accesses of a set
    resources: HashTable  # address of a synchronisation object, or a descriptor's: RESOURCE
    closed: HashTable  # a descriptor's address: who closed the last one, an access
    users: HashTable  # row of resources << CHAIN_BITS | chain: USER
    races: HashTable  # site of the access before << 32 | site of the one behind; RACE
    epochs: Arena  # EPOCH, in the order in which they began
    needed: Arena  # u4: what has to come before epochs, by chain
    reached: Any  # i8 by chain: the last epoch of an order of locks that is tried
    ran: Any  # i8 by chain: and the last one that ran so far
    aside: Any  # u8 (MOST_ASIDE): accesses that another order of locks has behind the present one
    tried: HashTable  # as `races`: how often an order was tried
    reordered: HashTable  # as `races`: races that another order of locks has; RACE


TASK_ROW = np.dtype(
    [
        ("stream", "<i8"),  # that it runs on, or ran
        ("clock", "<i8"),  # without its own chain
        ("chain", "<i8"),  # 0 before it starts
        ("first_time", "<i8"),  # of that chain
        ("creator_chain", "<i8"),  # beside the clock: what the creator did before; 0 if the clock has it
        ("creator_time", "<i8"),
        ("released", "<i8"),  # the clock at its last release fence, 0 before
        ("met", "<i8"),  # what relaxed loads met since, 0 before
        ("held", "<i8"),  # the first of its HELD, 0 for none
        ("holds", "<i4"),  # how many
        ("joined", "<i4"),
        ("locks", "<u4"),  # row of lock_sets
        ("situation", "<u4"),
        ("role", "<i4"),
        ("base", "<i4"),  # the context in which its thread came to it: what the task does lies below that
        ("acquired", "<i4"),  # 1 if it knows more than its creator did
        ("over", "<i4"),
        ("undeferred", "<i4"),  # it is part of its creator
        ("shown", "<i4"),  # 1: others than those who wait for it may know of it
        ("open", "<i4"),  # children that are not over, or that others may know of
        ("finished", "<i8"),  # the first of its children that are over and may retire
        ("next_finished", "<i8"),
        ("creator", "<i8"),  # task
        ("children", "<i8"),  # clock: what those that are over did
        ("fulfilled", "<i8"),  # clock of the event that it waits for
        ("group", "<i8"),  # row of groups: the innermost taskgroup
        ("team", "<i8"),  # row of teams
        ("next", "<i8"),  # the next implicit task of the team
        ("below", "<i8"),  # what the stream was in before this implicit task
        ("implicit_below", "<i8"),
        ("rounds", "<i8"),  # barriers that it has left
        ("waits", "<i4"),  # it is in a barrier
        ("links", "<i8"),  # the first of links: what it depends on
        ("addresses", "<i8"),  # the first of depends: what its children depend on
        ("all", "<i8"),  # generation of the last child that depends on all memory
        ("inside", "<i8"),  # the shared loop that it is in, plus 1, or SINGLE; else 0
        ("drew", "<i8"),  # 1 if it may have a number, or a place, that no other thread of its team has
        ("shared_loop", "<i8"),  # the last one, plus 1, ...
        ("loop_chain", "<i8"),  # the chain on which it ran that, ...
        ("loop_from", "<i8"),  # and the time behind which it came to it
        ("loop_to", "<i8"),  # when the present iteration began, or what came behind the loop
        ("single_chain", "<i8"),  # the chain on which it runs a `single` region
        ("single_to", "<i8"),  # and when that began
        ("stack_from", "<i8"),  # addresses of its local variables
        ("stack_to", "<i8"),
        ("simd", "<i8"),  # of a lane: row of simd_loops, else 0
    ]
)
CHAIN_ROW = np.dtype(
    [("time", "<i8"), ("known", "<i8"), ("retired", "<i8"), ("epoch", "<i8"), ("lane", "<i8"), ("lane_from", "<i8")]
)
"""`known`: up to where who goes on with it has to know it; `retired`: the last time of a task that has retired;
`epoch`: its last one; `lane`: which one of its SIMD loop the last lane on it was, and `lane_from` when that began."""
EPOCH = np.dtype(
    [
        ("chain", "<i4"),
        ("time", "<i4"),  # when it begins; it ends when the chain's next one does
        ("task", "<i4"),
        ("locks", "<u4"),  # row of lock_sets
        ("previous", "<i4"),  # on the chain
        ("next", "<i4"),
        ("length", "<i4"),
        ("first", "<i8"),  # of `needed`: what has to come before its end; 0 as long as that is the task's clock
        ("lock", "<i4"),  # the row of the lock that it begins by taking; of the one that it gives up, negative
        ("mate", "<i4"),  # the epoch that gives that up, or that took it; 0 for none
        ("prior", "<i4"),  # the epoch that took the lock before
    ]
)
"""What a task does between two points of order."""
ROLE = np.dtype(
    [
        ("kind", "<i4"),
        ("context", "<i4"),  # where it was made
        ("instruction", "<u4"),
        ("stream", "<i8"),
        ("creator", "<i4"),  # of a thread, the stream that made it, plus 1
        ("of", "<i4"),  # of others, the role of the task that made the first of it, a smaller number
        ("base", "<i4"),  # and that task's
    ]
)
TEAM = np.dtype(
    [
        ("creator", "<i8"),  # task
        ("clock", "<i8"),  # what the creator knew
        ("creator_chain", "<i8"),
        ("creator_time", "<i8"),
        ("even", "<i8"),  # clocks of barriers with even and odd numbers
        ("odd", "<i8"),
        ("reduction", "<i8"),  # clock
        ("singles", "<i8"),  # clock: who has come to `single` regions
        ("first", "<i8"),  # implicit task
        ("role", "<i4"),
        ("over", "<i4"),
        ("alone", "<i4"),  # it was asked to have one thread
    ]
)
SIMD_LOOP = np.dtype(
    [
        ("task", "<i8"),  # that runs it, 0: none is open
        ("loop", "<i8"),
        ("inside", "<i8"),  # SIMD loops that are open inside of it
        ("length", "<i4"),  # lanes
        ("lane", "<i4"),  # of the present iteration
        ("role", "<i8"),
        ("clock", "<i8"),  # what the task knew when it came to the first lane
        ("chain", "<i8"),  # and how far it was
        ("time", "<i8"),
        ("call", "<i8"),  # the instruction by which the present lane last left the loop's function, -1 before
        ("lanes", "<i8", (MOST_LANES,)),  # tasks
    ]
)
"""Of a stream: a SIMD loop that it is in, and the tasks that lanes are."""
GROUP = np.dtype([("clock", "<i8"), ("outer", "<i8")])
DEPEND = np.dtype([("generation", "<i8"), ("kind", "<i8"), ("next", "<i8")])
GENERATION = np.dtype([("clock", "<i8"), ("lock", "<i8"), ("prior", "<i8"), ("users", "<i8")])
"""Siblings that depend on an address alike: what those that are over did; the generation before."""
LINK = np.dtype([("prior", "<i8"), ("own", "<i8"), ("kind", "<i8"), ("next", "<i8")])
"""A task comes after a generation, and belongs to one."""
RESOURCE = np.dtype([("uses", "<i8"), ("others", "<u8")])
"""Clock of its last uses on each chain since it began; what stands beside them at its byte, as in CELL."""
USER = np.dtype([("site", "<i8"), ("task", "<i8")])
"""Of the last use of a resource on a chain: where; the task, as long as it has not given it up."""
LOCK = np.dtype(
    [
        ("clock", "<i8"),
        ("readers", "<i8"),  # clock
        ("group", "<i8"),
        ("offset", "<i8"),
        ("kept", "<i4"),  # 1: it is always taken in the order of the run
        ("epoch", "<i4"),  # the last one that took it
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
        ("lock", "<i8"),  # row of the lock that another order has, 0 for none
        ("loop", "<i8"),  # the shared loop, plus 1, or SINGLE, if one thread ran both ends; 0 if two tasks did
        ("single", "<i8"),  # and 1 if the second end lies in a `single` region behind it
    ]
)


@inlined
def chain_of(access: Any) -> Any:
    """The chain of an access."""
    return np.int64((access >> np.uint64(CHAIN_SHIFT)) & np.uint64(MOST_CHAINS - 1))


@inlined
def time_in(access: Any) -> Any:
    """The time of that chain."""
    return np.int64((access >> np.uint64(TIME_SHIFT)) & np.uint64(LAST_TIME))


@inlined
def kind_in(access: Any) -> Any:
    """What it did."""
    return np.int64((access >> np.uint64(KIND_SHIFT)) & np.uint64(3))


@inlined
def site_in(access: Any) -> Any:
    """Its row of sites."""
    return np.int64(access & np.uint64(MOST_SITES - 1))


@inlined
def known_task(state: Any, number: Any) -> Any:
    """The row of a task by its number in events; 0: none is known."""
    if number == 0:
        return np.int64(0)
    return np.int64(state.numbers.rows[row_of(state.numbers, number)].row)
