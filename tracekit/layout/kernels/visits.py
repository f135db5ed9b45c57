"""Which parts of each structure are used while it is in use.

An *element* is one structure in memory: an object, or one of an array of them. A *visit* of it begins when it is
accessed and is not among the elements that were used last (a set-associative table of them, LRU: what a cache of one
line for each would hold), and ends when it leaves that table. A visit has a mask of the cells that it touched. Where
no structure is known the lines of memory are elements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import GOLDEN, HashTable, row_of
from tracekit.jit.kernel import inlined, kernel

CELLS = 64
"""Of a structure at most, for a mask has so many bits."""
WAYS = 8
LONGEST = 16
"""Bytes above which an access says nothing of fields: copies, memset, what the library reads and writes."""
LINE_BITS = 6
MOST_GAP = 1 << 12
"""Accesses between two executions of a load that still count as one loop."""

# What a group's objects consist of.
LINES = 0
UNIFORM = 1
BY_ACCESS = 2  # of what each access says

ELEMENT = np.dtype(
    [
        ("mode", "<i8"),
        ("stride", "<i8"),  # from one element to the next
        ("start", "<i8"),  # of the first, in the object
        ("low", "<i8"),  # from here on, in the object, there are elements; before `high`
        ("high", "<i8"),
        ("size", "<i8"),  # bytes that are looked at
        ("shift", "<i8"),  # log2 of the bytes in a cell
    ]
)
STRUCTURE = [
    ("visits", "<i8"),
    ("in_order", "<i8"),  # visits of the element next to the one visited before, in the object or in order of creation
    ("near", "<i8"),  # ... which lies no further away than a line
    ("object", "<i8"),  # visited last
    ("index", "<i8"),
    ("address", "<i8"),
    ("loads", "<i8", (CELLS,)),  # by the first cell that they touch
    ("stores", "<i8", (CELLS,)),
]
"""By group << 32 | structure of BY_ACCESS, or 0."""
IN_BULK = [("changes", "<i8", (CELLS + 1,))]
"""By the same: accesses of more than LONGEST bytes that touch a cell, less those that touch the cell before.

Of BY_ACCESS 0 as the structure is for accesses of any size that say nothing of theirs: their number is the first one.
"""
USED = np.dtype(
    [
        ("structure", "<i8"),  # row of STRUCTURE; 0: none is known
        ("group", "<i8"),
        ("object", "<i8"),
        ("index", "<i8"),
        ("stamp", "<i8"),  # 0: an empty place
        ("mask", "<u8"),
    ]
)
OP = np.dtype(
    [
        ("loads", "<i8"),
        ("begun", "<i8"),  # visits that it began
        ("group", "<i8"),
        ("object", "<i8"),
        ("offset", "<i8"),
        ("time", "<i8"),
        ("stride", "<i8"),  # the last one, and how often it came in sequence
        ("run", "<i8"),
        ("gaps", "<i8"),  # accesses between executions, where they are few, and how often they were
        ("gap_count", "<i8"),
    ]
)
STRIDE_BITS = 38

# Elements of Visits.control.
NOW = 0  # stamp of the last access
LAST = 1  # row of `window` of the last access
BULK = 2  # accesses that say nothing of fields
BEFORE = 3  # the structure whose visit began last
BEFORE_OBJECT = 4
INSIDE = 5  # accesses to structures
CONTROL = 6
"""How many there are."""


class Visits(NamedTuple):
    """The state of layout."""

    elements: NDArray[Any]  # ELEMENT, by group
    of_op: NDArray[np.int64]  # instruction: the structure that it says it accesses, or 0
    offset_of_op: NDArray[np.int64]
    sizes: NDArray[np.int64]  # of structures
    structures: HashTable  # STRUCTURE
    in_bulk: HashTable  # IN_BULK
    masks: HashTable  # by mask
    patterns: HashTable  # ("visits", i8), by row of `structures` << 32 | row of `masks`
    follow: HashTable  # ("visits", i8), ("paired", i8), by row << 32 | row of `structures`
    window: NDArray[Any]  # USED: sets of WAYS
    ops: NDArray[Any]  # OP, by instruction
    strides: HashTable  # ("count", i8), by instruction << STRIDE_BITS | stride
    control: NDArray[np.int64]


@inlined
def touched(
    state: Any, instruction: Any, is_store: Any, address: Any, size: Any, group: Any, object: Any, offset: Any
) -> None:
    """A load or a store."""
    op = np.uint64(min(instruction, state.ops.size - 1))
    state.control[NOW] += 1
    structure, index, mask, rel = np.int64(0), offset >> LINE_BITS, np.uint64(1), offset & ((1 << LINE_BITS) - 1)
    element = state.elements[np.uint64(min(group, state.elements.size - 1))]
    if element.mode != LINES:
        stride, start, extent, shift, key = element.stride, element.start, element.size, element.shift, group << 32
        low, high = element.low, element.high
        is_known = True
        if element.mode == BY_ACCESS:
            kind = state.of_op[op]
            is_known = kind != 0
            key |= kind
            extent = state.sizes[np.uint64(kind)]
            stride = max(extent, 1)
            start = (offset - state.offset_of_op[op]) % stride
            low = start
            shift = np.int64(_shift_of(extent))
        if size > LONGEST:
            state.control[BULK] += 1
            _cover(state, key, stride, extent, shift, max(offset, low) - start, min(offset + size, high) - start)
            is_known = False
        elif not is_known:
            changes = state.in_bulk.rows[row_of(state.in_bulk, key)].changes
            changes[0] += 1
            changes[1] -= 1
        if is_known and low <= offset < high:
            index = (offset - start) // stride
            rel = offset - start - index * stride
            if rel < extent:
                structure = np.int64(row_of(state.structures, key))
                first, last = rel >> shift, min(rel + size, extent) - 1 >> shift
                mask = _bits(first, max(first, last))
                row = state.structures.rows[structure]
                state.control[INSIDE] += 1
                if is_store:
                    row.stores[np.uint64(first)] += 1
                else:
                    row.loads[np.uint64(first)] += 1
            else:
                index, rel = offset >> LINE_BITS, offset & ((1 << LINE_BITS) - 1)
    used = state.window[np.uint64(state.control[LAST])]
    if used.index == index and used.object == object and used.group == group and used.structure == structure:
        used.mask |= mask
        used.stamp = state.control[NOW]
    else:
        state.ops[op].begun += _found(state, structure, group, object, index, mask, address - rel)
    if not is_store:
        _noted(state, op, group, object, offset)


@kernel
def _cover(state: Visits, key: Any, stride: Any, extent: Any, shift: Any, begin: Any, end: Any) -> None:
    """A copy, or the like, of bytes that are counted from the first element's start; it may touch several elements."""
    rel, length = begin % stride, end - begin
    behind = rel + length - stride
    if length <= 0 or (rel >= extent and behind <= 0):
        return
    changes = state.in_bulk.rows[row_of(state.in_bulk, key)].changes
    first = rel >> shift if rel < extent else CELLS
    last = (min(rel + length, extent) - 1) >> shift
    beside = (min(behind, extent) - 1) >> shift if behind > 0 else -1
    if length >= stride or beside >= first:
        first, last, beside = 0, max(extent - 1, 0) >> shift, -1
    if first < CELLS:
        changes[first] += 1
        changes[last + 1] -= 1
    if beside >= 0:
        changes[0] += 1
        changes[beside + 1] -= 1


@inlined
def _shift_of(size: Any) -> Any:
    """See elements.shift_of."""
    shift = np.int64(0)
    while size > CELLS << shift:
        shift += 1
    return shift


@inlined
def _bits(first: Any, last: Any) -> Any:
    """The bits first .. last."""
    return (~np.uint64(0) << np.uint64(first)) & (~np.uint64(0) >> np.uint64(CELLS - 1 - last))


@kernel
def _found(state: Visits, structure: Any, group: Any, object: Any, index: Any, mask: Any, address: Any) -> int:
    """Enter an access in the window; 1 if it begins a visit."""
    sets = np.uint64(state.window.size // WAYS - 1)
    mixed = (np.uint64(index) ^ (np.uint64(object) << np.uint64(20)) ^ (np.uint64(group) << np.uint64(44))) * GOLDEN
    mixed = (mixed ^ np.uint64(structure)) * GOLDEN
    first = np.int64((mixed >> np.uint64(40)) & sets) * WAYS
    oldest: Any = first
    for row in range(first, first + WAYS):
        used = state.window[np.uint64(row)]
        if (
            used.stamp != 0
            and used.index == index
            and used.object == object
            and used.group == group
            and used.structure == structure
        ):
            used.mask |= mask
            used.stamp = state.control[NOW]
            state.control[LAST] = row
            return 0
        if used.stamp < state.window[np.uint64(oldest)].stamp:
            oldest = row
    used = state.window[np.uint64(oldest)]
    ended(state, used)
    used.structure = structure
    used.group = group
    used.object = object
    used.index = index
    used.mask = mask
    used.stamp = state.control[NOW]
    state.control[LAST] = oldest
    if structure != 0:
        _began(state, structure, object, index, address)
    return 1


@inlined
def ended(state: Any, used: Any) -> None:
    """A visit is over."""
    if used.stamp != 0 and used.structure != 0:
        mask = np.int64(row_of(state.masks, used.mask))
        state.patterns.rows[row_of(state.patterns, (used.structure << 32) | mask)].visits += 1


@inlined
def _began(state: Any, structure: Any, object: Any, index: Any, address: Any) -> None:
    """A visit begins: what was visited before?"""
    row = state.structures.rows[structure]
    if row.visits > 0:
        step = abs(index - row.index) if object == row.object else abs(object - row.object)
        if step == 1 and (object == row.object or index == row.index):
            row.in_order += 1
            row.near += np.int64(abs(address - row.address) <= NEAR)
    row.visits += 1
    row.object = object
    row.index = index
    row.address = address
    before = state.control[BEFORE]
    if before != 0 and before != structure:
        pair = state.follow.rows[row_of(state.follow, (before << 32) | structure)]
        pair.visits += 1
        pair.paired += np.int64(state.control[BEFORE_OBJECT] == object)
    state.control[BEFORE] = structure
    state.control[BEFORE_OBJECT] = object


NEAR = 128
"""Bytes between the starts of two elements that lie beside one another."""


@inlined
def _noted(state: Any, op: Any, group: Any, object: Any, offset: Any) -> None:
    """How far a load is from the last one of its instruction, in bytes and in accesses."""
    last = state.ops[op]
    now = state.control[NOW]
    if last.loads > 0:
        gap = now - last.time
        if gap <= MOST_GAP:
            last.gaps += gap
            last.gap_count += 1
        if group != 0 and last.group == group and last.object == object:
            stride = offset - last.offset
            if stride != last.stride:
                flushed(state, op)
                last.stride = stride
                last.run = 0
            last.run += 1
    last.loads += 1
    last.group = group
    last.object = object
    last.offset = offset
    last.time = now


@kernel
def flushed(state: Visits, op: Any) -> None:
    """Count the strides that came in sequence."""
    last = state.ops[np.uint64(op)]
    if last.run > 0:
        key = (np.int64(op) << STRIDE_BITS) | (np.int64(last.stride) & ((1 << STRIDE_BITS) - 1))
        state.strides.rows[row_of(state.strides, key)].count += last.run


@kernel
def finish(state: Visits) -> None:
    """All visits end."""
    for row in range(state.window.size):
        ended(state, state.window[row])
        state.window[row].stamp = 0
    for op in range(state.ops.size):
        flushed(state, op)
        state.ops[op].run = 0
