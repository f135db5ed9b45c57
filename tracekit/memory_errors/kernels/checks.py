"""The state of memory_errors, what an access does to the states of bytes, and when it is an error.

An error is counted in ``errors`` by kind, by its place (instruction and context) and by the object; what could be an
error, and is not known to be one, in ``undecided`` by the reason. As Memcheck does (states.py), only a load by whose
value something is decided is an error where bytes are unwritten: copies of them pass.

Everywhere an instruction, a context and a stream are rows and numbers of events (u4, u4, int64); `row` is that of an
instruction in the tables by instruction, the last one for NONE. Addresses and sizes, in bytes, are int64; offsets count
bytes from an object's start. Nothing here raises.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import only_row
from tracekit.jit.kernel import inlined, kernel
from tracekit.memory_errors.kernels.contents import Contents
from tracekit.memory_errors.kernels.states import (
    BESIDE,
    FREED,
    UNWRITTEN,
    WRITTEN,
    States,
    copy,
    replace,
    run,
    worst_of,
    write,
)
from tracekit.memory_errors.kernels.variables import Named, is_elsewhere
from tracekit.memory_errors.kernels.variables import passed as passed_variable
from tracekit.objects.kernels.live import (
    DEAD,
    HEAP,
    Live,
    Unloading,
    at,
    kind_of,
)

# Kinds of errors: memory_errors.profile.KINDS.
UNWRITTEN_READ = 0
READ_AFTER_FREE = 1
WRITE_AFTER_FREE = 2
READ_OUT_OF_BOUNDS = 3
WRITE_OUT_OF_BOUNDS = 4
DOUBLE_FREE = 5
INVALID_FREE = 6
MISMATCHED_FREE = 7

# Why something is not decided: memory_errors.profile.REASONS.
EFFECTS = 0
ORDER = 1
PARTLY = 2
UNSEEN_FREE = 3
REASONS = 4
"""How many there are."""

# What an instruction is: bits of `rules` (memory_errors/rules.py says which).
DECIDES = 1  # a load by whose value something is decided
STRICT = 2  # a library function that looks at all bytes
FIRST = 4  # a library function of which only the first byte is known to be looked at
COPIES = 8  # what is loaded is stored next
BULK = 16  # many bytes at once: may pass the end of a variable
NAMED = 32  # the access is to a variable, so to no heap block
EMPTY = 64  # memory begins without a value
MAPS = 128  # memory of the system
OPAQUE = 256  # a call that may write anywhere, if it enters no function of the program
SORTS = 1024  # what is loaded is moved about, and stored in the end
HOSTS = 512  # a call of a function that is none of the program's, and may write anywhere
PACKED = 2048  # an allocator of the program's own: what lies beside its blocks is not known
CALLS_BACK = 4096  # a call of a library that writes what it is given, and memory that is made inside the call

# Elements of `control`.
BORN = 0  # how many objects have begun
UNKNOWN_AT = 1  # of which so many before the last call that may have written anywhere
THREADS = 2  # that run beside the first
DISORDER = 3  # 1: a signal handler has run
ATOMICS = 4  # 1: threads may tell one another something that no event says
ENDED = 5  # 1: the program has ended by itself
ROUNDED = 6  # 1: the program asks how many bytes its blocks really have, and may use them
OPEN = 7  # how many calls are open
OPEN_AT_END = 8  # were, when the program ended
CONTROL = 9
"""How many there are."""

SLACK = 16
"""glibc's blocks have sizes that are multiples of this, the least is twice it; 8 bytes of each are the size itself."""
MOST_SPARE = 1 << 22
"""An allocator of the program's own may give twice what it is asked for, and a little; at most so much more."""
LARGE = 1 << 17
"""Blocks of so many bytes may be given back to the system, which may use their addresses for something else."""
MOST = 1 << 30
"""An access of more bytes is not looked at: it is a damaged trace's."""
LARGEST = 1 << 36
"""Of larger objects nothing is known."""


class Errors(NamedTuple):
    """The errors that were found."""

    places: HashTable  # by instruction << 32 | context
    objects: HashTable  # by site << 32 | death (0: none)
    found: HashTable  # FOUND, by kind << 58 | place << 29 | object
    undecided: NDArray[np.int64]  # (REASONS): how often


FOUND = [("count", "<i8"), ("size", "<i8"), ("offset", "<i8"), ("bytes", "<i8")]
"""How often; of the first: bytes of the access, from the object's start on, and bytes of the object (-1: not known)."""


class State(NamedTuple):
    """The state of the module."""

    live: Live
    states: States
    deaths: HashTable  # by site << 32 | place where it was freed
    errors: Errors
    rules: NDArray[np.uint16]  # by instruction
    family: NDArray[np.uint8]  # by instruction: 0, or what allocates and frees alike
    blind: NDArray[np.uint8]  # by function: 1 if it makes calls of unknown effect that no event tells of
    copied: NDArray[np.int64]  # (streams, 3): instruction, address and size of the last load that is a copy's
    doubt: NDArray[np.int64]  # by stream: open calls since the first whose effects are unknown
    hosted: NDArray[np.int64]  # by stream: open calls since the first that CALLS_BACK has made
    images: Unloading
    contents: Contents  # where stores have values
    named: Named
    control: NDArray[np.int64]  # (CONTROL)


@inlined
def is_ordered(state: Any) -> Any:
    """Whether accesses come in the order in which they were made, as far as they have to do with one another."""
    control = state.control
    return control[DISORDER] == 0 and (control[THREADS] == 0 or control[ATOMICS] == 0)


@kernel
def place_of(errors: Errors, instruction: Any, context: Any) -> Any:
    """The row in ``errors.places`` (int64) of an instruction in a context."""
    return np.int64(row_of(errors.places, (instruction << 32) | context))


@kernel
def note(errors: Errors, kind: Any, place: Any, site: Any, death: Any, size: Any, offset: Any, bytes_: Any) -> None:
    """Count an error of `kind`, at a row of places, with an object of a row of sites; `death`: its row of deaths or 0.

    Of the first error of a kind, place and object the rest is kept: `size` of the access, `offset` where it begins, and
    `bytes_` of the object; -1: not known.
    """
    of = np.int64(row_of(errors.objects, (np.int64(site) << 32) | np.int64(death)))
    row = errors.found.rows[row_of(errors.found, (np.int64(kind) << 58) | (np.int64(place) << 29) | of)]
    if row.count == 0:
        row.size, row.offset, row.bytes = size, offset, bytes_
    row.count += 1


# -- accesses --------------------------------------------------------------------------------------


@inlined
def access(state: Any, instruction: Any, address: Any, size: Any, context: Any, stream: Any, store: Any) -> None:
    """Take in a load, or with `store` a store: count it if it is an error, and change the states of its bytes."""
    if size > MOST:
        return
    row = min(instruction, state.rules.size - 1)
    rules = state.rules[np.uint64(row)]
    only, parts = only_row(state.states.words, address, size)
    found = worst_of(state.states, only, address, size)
    if rules & (BULK | COPIES) or is_elsewhere(state.named, state.named.of_access[np.uint64(row)], address, size):
        look(state, row, rules, address, size, context, stream, store, found)
    elif found == UNWRITTEN and store:
        write(state.states, only, parts, address, size)
    elif found > UNWRITTEN or (found == UNWRITTEN and rules & DECIDES):
        look(state, row, rules, address, size, context, stream, store, found)


@kernel
def look(
    state: State, row: Any, rules: Any, address: Any, size: Any, context: Any, stream: Any, store: Any, found: Any
) -> None:
    """Take in an access that may be an error, or that has rules; `found`: the greatest state of its `size` bytes."""
    if size <= 0:
        return
    looked = np.int64(1 if rules & FIRST else size)
    passed = rules & BULK and _passes_end(state, row, address, looked, context, store)
    passed = passed or _leaves_variable(state, row, address, looked, context, store)
    if found >= BESIDE and not passed and not rules & NAMED:
        _outside(state, row, address, looked, context, store)
    if rules & COPIES:
        _copied(state, row, address, size, stream, store)
    elif store or rules & SORTS:
        replace(state.states, address, size, UNWRITTEN, WRITTEN)
    elif rules & (DECIDES | STRICT | FIRST):
        _unwritten(state, row, rules, address, looked, context, stream)


@inlined
def _copied(state: Any, row: Any, address: Any, size: Any, stream: Any, store: Any) -> None:
    """Of an instruction that copies: remember its load; its store has the states that the load had."""
    last = state.copied[np.uint64(stream)]
    if not store:
        last[0], last[1], last[2] = row + 1, address, size
        return
    if last[0] == row + 1 and last[2] == size and _may_be_unwritten(state, last[1]):
        copy(state.states, last[1], address, size)
    else:
        replace(state.states, address, size, UNWRITTEN, WRITTEN)
    last[0] = 0


@inlined
def _may_be_unwritten(state: Any, address: Any) -> Any:
    """Whether the states of an object's bytes say what was written: no call of unknown effect since it began."""
    owner = at(state.live, address)
    return 0 < owner < DEAD and state.live.objects.rows[owner].born > state.control[UNKNOWN_AT]


@inlined
def _passes_end(state: Any, row: Any, address: Any, size: Any, context: Any, store: Any) -> Any:
    """Whether many bytes from inside an object pass its end, which is an error."""
    owner = at(state.live, address)
    if not 0 < owner < DEAD or address + size <= state.live.objects.rows[owner].end:
        return False
    if address >= state.live.objects.rows[owner].end:  # an object of no bytes
        return False
    if state.control[ROUNDED] != 0 and _block(state, address) != 0:
        return False
    _out_of_bounds(state, row, owner, address, size, context, store)
    return True


@inlined
def _leaves_variable(state: Any, row: Any, address: Any, size: Any, context: Any, store: Any) -> Any:
    """Whether an access to a variable that is named is to other bytes, which is an error."""
    group = np.int64(state.named.of_access[np.uint64(row)])
    if not is_elsewhere(state.named, group, address, size):
        return False
    owner = passed_variable(state.live, state.named, group, address, size)
    if owner == 0:
        return False
    _out_of_bounds(state, row, owner, address, size, context, store)
    return True


@inlined
def _out_of_bounds(state: Any, row: Any, owner: Any, address: Any, size: Any, context: Any, store: Any) -> None:
    if not is_ordered(state):
        state.errors.undecided[ORDER] += 1
        return
    object_ = state.live.objects.rows[owner]
    kind = WRITE_OUT_OF_BOUNDS if store else READ_OUT_OF_BOUNDS
    place = place_of(state.errors, row, context)
    start, bytes_ = np.int64(object_.start), np.int64(object_.end) - np.int64(object_.start)
    note(state.errors, kind, place, np.int64(object_.site), 0, size, address - start, bytes_)


@kernel
def _outside(state: State, row: Any, address: Any, size: Any, context: Any, store: Any) -> None:
    """One of the bytes is freed, or beside a block: the first of them says which error it is."""
    done = np.int64(0)
    value, same = run(state.states, address, size)
    while value < BESIDE and done + same < size:
        done += same
        value, same = run(state.states, address + done, size - done)
    if value < BESIDE:
        return
    if value >= FREED:
        if not is_ordered(state):
            state.errors.undecided[ORDER] += 1
            return
        kind = WRITE_AFTER_FREE if store else READ_AFTER_FREE
        site = np.int64(state.deaths.rows[value - FREED].key >> np.uint64(32))
        note(state.errors, kind, place_of(state.errors, row, context), site, value - FREED, size, -1, -1)
        return
    owner = beside(state, address + done)
    if owner != 0:
        _out_of_bounds(state, row, owner, address, size, context, store)


@kernel
def beside(state: State, address: Any) -> Any:
    """The live heap block (int64) that the allocator's byte is behind, or else in front of; 0 if it has ended."""
    for distance in range(2 * SLACK + 9):
        owner = _block(state, address - distance)
        if owner != 0:
            return owner
    for distance in range(1, 9):
        owner = _block(state, address + distance)
        if owner != 0:
            return owner
    return np.int64(0)


@inlined
def _block(state: Any, address: Any) -> Any:
    """The live heap block that has this byte, or that has none and is there."""
    owner = at(state.live, address)
    if not 0 < owner < DEAD or kind_of(state.live.sites.rows[state.live.objects.rows[owner].site].key) != HEAP:
        owner = np.int64(0)
    return owner


@inlined
def _unwritten(state: Any, row: Any, rules: Any, address: Any, size: Any, context: Any, stream: Any) -> None:
    """Count a load by which something is decided if some of its bytes are unwritten."""
    first, unwritten, done = np.int64(-1), np.int64(0), np.int64(0)
    while done < size:
        value, same = run(state.states, address + done, size - done)
        if value == UNWRITTEN:
            unwritten += same
            if first < 0:
                first = done
        done += same
    if first < 0:
        return
    if rules & DECIDES and unwritten < size:
        state.errors.undecided[PARTLY] += 1
    elif not is_ordered(state):
        state.errors.undecided[ORDER] += 1
    elif (state.doubt[np.uint64(stream)] | state.hosted[np.uint64(stream)]) != 0 or not _may_be_unwritten(
        state, address + first
    ):
        state.errors.undecided[EFFECTS] += 1
    else:
        object_ = state.live.objects.rows[at(state.live, address + first)]
        start, bytes_ = np.int64(object_.start), np.int64(object_.end) - np.int64(object_.start)
        place = place_of(state.errors, row, context)
        note(state.errors, UNWRITTEN_READ, place, np.int64(object_.site), 0, size, address + first - start, bytes_)
