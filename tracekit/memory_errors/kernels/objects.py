"""Takes in objects that begin and end, which change the states of bytes, and calls whose effects are not known.

The parameters are the fields of the events, with the dtypes that checks.py tells. Nothing here raises: a free that is
wrong is counted as an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.memory_errors.kernels.checks import (
    BORN,
    CALLS_BACK,
    DOUBLE_FREE,
    EMPTY,
    HOSTS,
    INVALID_FREE,
    LARGE,
    LARGEST,
    MAPS,
    MISMATCHED_FREE,
    MOST_SPARE,
    OPAQUE,
    OPEN,
    ORDER,
    PACKED,
    ROUNDED,
    SLACK,
    UNKNOWN_AT,
    UNSEEN_FREE,
    State,
    is_ordered,
    note,
    place_of,
)
from tracekit.memory_errors.kernels.states import (
    BESIDE,
    FREED,
    UNKNOWN,
    UNWRITTEN,
    WRITTEN,
    assign,
    forget_freed,
    replace,
    state_at,
)
from tracekit.memory_errors.kernels.variables import begun
from tracekit.objects.kernels.live import (
    DEAD,
    GLOBAL,
    HEAP,
    SITE_BITS,
    SITE_SHIFT,
    STACK,
    allocation_context,
    at,
    begin,
    end,
    extended,
    kind_of,
)


@kernel
def allocated(state: State, instruction: Any, context: Any, address: Any, size: Any, stream: Any, levels: Any) -> None:
    """Take in heap_alloc: a new block, or the tail by which a realloc let one grow."""
    live = state.live
    owner = extended(live, instruction, address, size)
    is_bare = owner != 0 and live.objects.rows[owner].start == address
    if is_bare:  # of an allocator of the program's own
        replace(state.states, address - 8, np.int64(2 * SLACK + 8), BESIDE, UNKNOWN)
    elif owner == 0:
        owner = begin(live, HEAP, instruction, allocation_context(live, context, levels), address, size, stream, 0)
        if owner == 0:
            return
        state.control[BORN] += 1
        live.objects.rows[owner].born = state.control[BORN]
    rules = state.rules[np.uint64(min(instruction, state.rules.size - 1))]
    if size > LARGEST:
        assign(state.states, address, np.int64(1), UNKNOWN)
        return
    # A library that has called the program for a block writes there, now or later, and nobody says so.
    is_empty = rules & EMPTY != 0 and state.hosted[np.uint64(stream)] == 0
    assign(state.states, address, size, np.int64(UNWRITTEN if is_empty else WRITTEN))
    start, stop = np.int64(live.objects.rows[owner].start), np.int64(live.objects.rows[owner].end)
    if is_bare or rules & PACKED:
        if state.control[ROUNDED] != 0:
            forget_freed(state.states, stop, np.int64(min(stop - start, np.int64(MOST_SPARE))) + 2 * SLACK)
    elif not rules & MAPS:
        _surround(state, start, stop)


@inlined
def _surround(state: Any, start: Any, stop: Any) -> None:
    """Note the allocator's bytes around a block. A program that asks how many there are may use those behind it."""
    bytes_ = max(np.int64(stop - start), np.int64(2 * SLACK - 8))
    chunk = (bytes_ + 8 + SLACK - 1) & -SLACK
    if state.control[ROUNDED] != 0:  # and the rest of a free chunk that was too small to be one
        forget_freed(state.states, stop, start - 8 + chunk + SLACK - stop)
        return
    forget_freed(state.states, stop, start + chunk - stop)  # what was here before is of no block any more
    forget_freed(state.states, start - 8, np.int64(8))
    replace(state.states, stop, start + chunk - stop, UNKNOWN, BESIDE)
    replace(state.states, start - 8, np.int64(8), UNKNOWN, BESIDE)


@kernel
def freed(state: State, instruction: Any, context: Any, address: Any, size: Any) -> None:
    """Take in heap_free: a block ends, or the tail that a realloc cut off; or nothing that could end."""
    live = state.live
    row = min(instruction, state.rules.size - 1)
    owner = at(live, address)
    if not 0 < owner < DEAD:
        _not_freed(state, row, context, address, owner)
        return
    old = live.objects.rows[owner]
    start, stop, site = np.int64(old.start), np.int64(old.end), np.int64(old.site)
    is_tail = start != address and size > 0 and address + size == stop
    if kind_of(live.sites.rows[site].key) != HEAP or not (start == address or is_tail):
        if state.rules[np.uint64(row)] & PACKED:  # its blocks lie in other objects
            state.errors.undecided[UNSEEN_FREE] += 1
        elif not state.rules[np.uint64(row)] & MAPS:
            _wrong_free(state, INVALID_FREE, row, context, site, 0, address - start, stop - start)
        return
    allocator = (np.int64(live.sites.rows[site].key) >> SITE_SHIFT) & SITE_BITS
    own, wanted = state.family[row], state.family[allocator]
    if not is_tail and own != 0 and wanted != 0 and own != wanted:
        _wrong_free(state, MISMATCHED_FREE, row, context, site, 0, 0, stop - start)
    value = np.int64(UNKNOWN)
    kept = is_tail and state.control[ROUNDED] != 0  # a tail that is cut off may still be the program's
    if (
        not kept
        and not (state.rules[np.uint64(row)] | state.rules[np.uint64(allocator)]) & MAPS
        and stop - start < LARGE
    ):
        place = place_of(state.errors, row, context)
        value = FREED + np.int64(row_of(state.deaths, (site << 32) | place))
    end(live, address, size)
    if stop - address <= LARGEST:
        assign(state.states, address, stop - address, value)


@inlined
def _not_freed(state: Any, row: Any, context: Any, address: Any, owner: Any) -> None:
    """Count a free of an address where no object lives, if it is known to be wrong."""
    value = state_at(state.states, address)
    if state.rules[np.uint64(row)] & MAPS or address == 0:
        return
    if value >= FREED:
        site = np.int64(state.deaths.rows[value - FREED].key >> np.uint64(32))
        _wrong_free(state, DOUBLE_FREE, row, context, site, value - FREED, -1, -1)
    else:
        state.errors.undecided[UNSEEN_FREE] += 1


@inlined
def _wrong_free(state: Any, kind: Any, row: Any, context: Any, site: Any, death: Any, offset: Any, bytes_: Any) -> None:
    if is_ordered(state):
        note(state.errors, kind, place_of(state.errors, row, context), site, death, 0, offset, bytes_)
    else:
        state.errors.undecided[ORDER] += 1


@inlined
def variable(state: Any, instruction: Any, context: Any, address: Any, size: Any, stream: Any, depth: Any) -> None:
    """Take in stack_alloc."""
    begun(state.named, state.named.of_local[np.uint64(min(instruction, state.rules.size - 1))], address, size)
    owner = begin(state.live, STACK, instruction, context, address, size, stream, depth)
    if owner != 0:
        state.control[BORN] += 1
        state.live.objects.rows[owner].born = state.control[BORN]
        if size <= LARGEST:
            rules = state.rules[np.uint64(min(instruction, state.rules.size - 1))]
            assign(state.states, address, size, np.int64(UNWRITTEN if rules & EMPTY else WRITTEN))


@kernel
def global_variable(state: State, number: Any, address: Any, size: Any, stream: Any) -> None:
    """Take in global_init."""
    if begin(state.live, GLOBAL, number, 0, address, size, stream, 0) != 0 and size <= LARGEST:
        assign(state.states, address, size, np.int64(WRITTEN))


@inlined
def variable_ended(state: Any, address: Any, size: Any) -> None:
    """Take in stack_free, or the end of a global of an image that is unloaded."""
    end(state.live, address, 0)
    if 0 < size <= LARGEST:
        assign(state.states, address, size, np.int64(UNKNOWN))


@kernel
def unloaded(state: State, image: Any) -> None:
    """Take in image_unload: its globals end."""
    for row in range(state.images.image.size):
        if state.images.image[row] == image and state.images.address[row] != 0:
            variable_ended(state, np.int64(state.images.address[row]), np.int64(state.images.size[row]))


# -- calls whose effects are not known --------------------------------------------------------------


@inlined
def called(state: Any, instruction: Any) -> None:
    """Take in external_call: what it may have written is taken as written."""
    if state.rules[np.uint64(min(instruction, state.rules.size - 1))] & OPAQUE:
        state.control[UNKNOWN_AT] = state.control[BORN]


@inlined
def entered(state: Any, function: Any, call: Any, stream: Any) -> None:
    """Take in function_entry: of a function that a library calls, or that makes calls which no event tells of."""
    state.control[OPEN] += 1
    doubt = state.doubt[np.uint64(stream)]
    if call < state.rules.size and state.rules[np.uint64(call)] & HOSTS:
        state.control[UNKNOWN_AT] = state.control[BORN]
        doubt += doubt == 0
    elif doubt != 0 or (function < state.blind.size and state.blind[np.uint64(function)]):
        doubt += 1
    state.doubt[np.uint64(stream)] = doubt
    hosted = state.hosted[np.uint64(stream)]
    if hosted != 0 or (call < state.rules.size and state.rules[np.uint64(call)] & CALLS_BACK):
        state.hosted[np.uint64(stream)] = hosted + 1


@inlined
def left(state: Any, stream: Any) -> None:
    """Take in function_exit."""
    state.control[OPEN] -= 1
    state.hosted[np.uint64(stream)] -= state.hosted[np.uint64(stream)] != 0
    doubt = state.doubt[np.uint64(stream)]
    if doubt != 0:
        state.doubt[np.uint64(stream)] = doubt - 1
        state.control[UNKNOWN_AT] = state.control[BORN]
