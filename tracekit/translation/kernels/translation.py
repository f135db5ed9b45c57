"""Object-relative translation: from an address to group, object and offset (Wu et al., CGO 2004, section 2.1).

    here = block_at(translation, address)    # of an access: here.group, here.number, address - here.start

A *group* is what one program point makes: an allocating instruction, if asked for in its calling context, or, of a
wrapper, the call of it; a local variable, a global. An *object* has a number in its group, from 0, in the order of
creation. Memory that belongs to no object is of group 0, object 0, and its offset is the address. What is known of a
byte is what the last event said that touched it.

``realloc`` keeps the object, wherever it goes. Replay says that a block moved by four events in sequence: the new block
begins, a load of the old one, a store to the new one, the old one ends, all with the call as instruction. So what such
a call makes waits (control[MOVING]) for the next load, or the next end of an object, to tell whether it is a block of
its own.

The parameters of what takes in an event are its fields, i8: `instruction` and `site` rows of the program's ops,
`context` a number that tells groups apart (0 without contexts), `address` and `size` in bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.translation.kernels.identities import Objects, identity_at
from tracekit.translation.kernels.identities import place as place_object

# Kinds of groups.
UNKNOWN = 0
HEAP = 1
STACK = 2
GLOBAL = 3

# Translation.allocators, by instruction.
FRESH = 1  # a call of a function that returns an object of its own: it never lets another grow
MOVES = 2  # a call of realloc or its like

# Events by which objects change: before, or after, their own address is translated; and those of local variables.
CHANGING_BEFORE = frozenset({"load", "heap_alloc", "stack_alloc", "global_init"})
CHANGING_AFTER = frozenset({"heap_free", "stack_free", "image_unload"})
OF_STACK = frozenset({"stack_alloc", "stack_free"})

LARGEST = 1 << 47
BLOCK = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("number", "<i8"),  # of the object, in its group
        ("group", "<u4"),
        ("kind", "<u4"),  # while it lives, then 0
        ("next", "<u4"),  # of rows that wait to be used again
        ("unused", "<u4"),
    ]
)
"""Consecutive bytes that are one object."""
GROUP = [("objects", "<i8")]
"""How many objects there have been, beside the key: kind << KIND_SHIFT | instruction or global << SITE_SHIFT |
context."""
SITE_SHIFT = 30
KIND_SHIFT = 60
SITE_BITS = (1 << 30) - 1

# Elements of Translation.control.
FREE = 0  # the first row of `blocks` that waits to be used again
MOVING = 1  # the row of a block that may be an old object in a new place
MOVER = 2  # the instruction that made it
CONTROL = 3
"""How many there are."""


class Translation(NamedTuple):
    """The live objects of the process by address, and their groups."""

    owners: Objects  # byte: its row of `blocks`, 0: unknown memory
    blocks: Arena  # BLOCK; row 0 stands for unknown memory
    groups: HashTable  # GROUP
    allocators: NDArray[np.uint8]  # instruction: FRESH, MOVES or 0
    in_wrapper: NDArray[np.uint8]  # instruction: 1 if its function hands on what it allocates
    global_image: NDArray[np.uint32]  # global: its image
    global_address: NDArray[np.uint64]
    control: NDArray[np.int64]


@inlined
def block_at(translation: Any, address: Any) -> Any:
    """The block that holds the byte; of unknown memory the one of group 0 that begins at 0."""
    return translation.blocks.rows[np.uint64(identity_at(translation.owners, address))]


@inlined
def _live_at(translation: Any, address: Any) -> Any:
    """The row of the heap block that begins there, or 0."""
    row = np.int64(identity_at(translation.owners, address))
    old = translation.blocks.rows[row]
    return row if old.start == address and old.kind == HEAP else np.int64(0)


@inlined
def loaded(translation: Any, instruction: Any, address: Any) -> None:
    """A load, before it is translated: is it the first half of what a realloc copies?"""
    if translation.control[MOVING] != 0:
        _moved(translation, instruction, address)


@kernel
def _moved(translation: Translation, instruction: Any, address: Any) -> None:
    """If the call that made a block last copies or ends the one that begins at `address`, both are the same object."""
    new, old = translation.control[MOVING], np.int64(_live_at(translation, address))
    translation.control[MOVING] = 0
    if old != 0 and old != new and translation.control[MOVER] == instruction:
        blocks = translation.blocks.rows
        translation.groups.rows[blocks[new].group].objects -= 1  # it was the newest
        blocks[new].group = blocks[old].group
        blocks[new].number = blocks[old].number


@kernel
def allocated(translation: Translation, instruction: Any, site: Any, context: Any, address: Any, size: Any) -> None:
    """heap_alloc: a new object of the group (site, context), or the tail by which a realloc lets one grow."""
    translation.control[MOVING] = 0
    if address == 0 or size < 0 or size > LARGEST:
        return
    instruction = min(instruction, translation.allocators.size - 1)
    allocator = translation.allocators[np.uint64(instruction)]
    if size > 0:
        grows = _empty_at(translation, address)
        if grows == 0 and allocator != FRESH:
            grows = _ending_at(translation, address)
        if grows != 0:
            _grow(translation, grows, address, size, instruction)
            return
    site = min(site, translation.allocators.size - 1)
    row = _begin(translation, HEAP, site, context, address, size)
    if allocator == MOVES:
        translation.control[MOVING] = row
        translation.control[MOVER] = instruction


@inlined
def _grow(translation: Any, row: Any, address: Any, size: Any, instruction: Any) -> None:
    """A block has `size` bytes more. One that had none may be what a realloc moves another to."""
    block = translation.blocks.rows[row]
    block.end += size
    place_object(translation.owners, address, address + size, row)
    if block.start == address and translation.allocators[np.uint64(instruction)] == MOVES:
        translation.control[MOVING] = row
        translation.control[MOVER] = instruction


@inlined
def _ending_at(translation: Any, address: Any) -> Any:
    """The row of the heap block whose last byte is the one before `address`, or 0."""
    row = np.int64(identity_at(translation.owners, address - 1))
    block = translation.blocks.rows[row]
    if block.kind != HEAP or block.end != address:
        row = np.int64(0)
    return row


@inlined
def _empty_at(translation: Any, address: Any) -> Any:
    """The row of the heap block that is there and has no bytes, or 0."""
    row = np.int64(_live_at(translation, address))
    block = translation.blocks.rows[row]
    if block.kind != HEAP or block.start != address or block.end != address:
        row = np.int64(0)
    return row


@kernel
def _begin(translation: Translation, kind: Any, site: Any, context: Any, address: Any, size: Any) -> int:
    """An object begins; returns its row of `blocks`."""
    before = translation.blocks.rows[np.int64(identity_at(translation.owners, address))]
    if before.start == address and before.kind != 0:
        group = translation.groups.rows[before.group]
        if kind != HEAP and before.kind == kind and before.number == group.objects - 1:
            group.objects -= 1  # the storage that a function makes for a variable is no object of its own
        _end(translation, address, before.kind)
    row = translation.control[FREE]
    if row != 0:
        translation.control[FREE] = translation.blocks.rows[row].next
    else:
        row = np.int64(take(translation.blocks, 1))
    key = (np.int64(kind) << KIND_SHIFT) | (np.int64(site) << SITE_SHIFT) | context
    group_row = np.int64(row_of(translation.groups, key))
    new = translation.blocks.rows[row]
    new.start = address
    new.end = address + size
    new.number = translation.groups.rows[group_row].objects
    new.group = group_row
    new.kind = kind
    translation.groups.rows[group_row].objects += 1
    place_object(translation.owners, address, address + max(size, 1), row)  # one of no bytes is found at its address
    return int(row)


@inlined
def _end(translation: Any, address: Any, kind: Any) -> None:
    """The object of a kind that begins there ends."""
    row = np.int64(identity_at(translation.owners, address))
    old = translation.blocks.rows[row]
    if row != 0 and old.start == address and old.kind == kind:
        place_object(translation.owners, address, address + max(old.end - address, 1), -1)
        old.kind = 0
        old.next = translation.control[FREE]
        translation.control[FREE] = row


@kernel
def freed(translation: Translation, instruction: Any, address: Any, size: Any) -> None:
    """heap_free: an object ends, or its last `size` bytes do."""
    if translation.control[MOVING] != 0:
        _moved(translation, instruction, address)
    old = translation.blocks.rows[np.int64(identity_at(translation.owners, address))]
    if old.start == address:
        _end(translation, address, HEAP)
    elif old.kind == HEAP and size > 0 and address + size == old.end:
        old.end = address
        place_object(translation.owners, address, address + size, -1)


@kernel
def entered(translation: Translation, instruction: Any, context: Any, address: Any, size: Any) -> None:
    """stack_alloc: a local variable begins."""
    if 0 <= size <= LARGEST and address != 0:
        _begin(translation, STACK, min(instruction, translation.allocators.size - 1), context, address, size)


@kernel
def left(translation: Translation, address: Any) -> None:
    """stack_free: a local variable ends."""
    _end(translation, address, STACK)


@kernel
def placed(translation: Translation, number: Any, address: Any, size: Any) -> None:
    """global_init: a global variable begins."""
    if 0 <= size <= LARGEST and address != 0:
        _begin(translation, GLOBAL, number, 0, address, size)


@kernel
def unloaded(translation: Translation, image: Any) -> None:
    """image_unload: its globals end."""
    for row in range(translation.global_image.size):
        if translation.global_image[row] == image and translation.global_address[row] != 0:
            _end(translation, np.int64(translation.global_address[row]), GLOBAL)
