"""The objects that live at the present moment, found by any of their addresses; objects/live.py makes the table.

Callbacks of modules use these:

    row = begin(live, kind, site, context, address, size, stream, depth)  # an object begins; depth: of a local
                                                       # variable, how many calls are open
    row = end(live, address, size)                     # it ends: its row, good until the next begin
    row = extended(live, site, address, size)          # of an object that a realloc let grow in place
    found = at(live, address)                          # row of the object; DEAD | its site once it has ended
    found = known_at(live, address, stream)            # the same, 0 if a frame covers the local that has ended

A *site* is what a profile names objects by: kind, instruction or global, and context. What is known of a byte is what
the last event said that touched it, so memory that is used again belongs to the new object alone.

What a byte belongs to stands in a shadow word by word; of objects that are larger than a granule of ``1 << WIDE_BITS``
bytes all whole granules stand in a second shadow (granules.py), so memory that is reserved by the gigabyte costs
nothing here either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.granules import WIDE_BITS, set_wide, wide_at
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow, fill, reading
from tracekit.contexts.kernels.streams import FRAMES, LEAF_LEVEL, NO_CALL
from tracekit.jit.kernel import inlined, kernel

# Kinds of objects: tracekit.objects.kinds.ObjectKind.
HEAP = 1
STACK = 2
GLOBAL = 3

DEAD = 1 << 31
"""In a shadow: the object has ended, and the rest is its site; else it is the object's row."""
LARGEST = 1 << 47

OBJECT = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),  # its bytes; an object of no bytes is found at its address all the same
        ("born", "<i8"),  # for the module: a time
        ("stream", "<i4"),  # where it began
        ("site", "<u4"),
        (
            "next",
            "<u4",
        ),  # the live local variable of its stream that began after it; of rows that wait to be used again
        ("before", "<u4"),  # the one that began before it
        ("alive", "<u4"),  # its kind while it lives, then 0
        ("frame", "<u4"),  # of a local variable: that of its activation
    ]
)
FRAME = np.dtype(
    [
        ("low", "<i8"),
        ("high", "<i8"),  # from the lowest to the highest byte of all the local variables that it has had
        ("depth", "<i8"),  # how many calls were open
        ("live", "<i4"),  # its local variables that live
        ("free", "<u4"),  # the next row that waits to be used again
    ]
)
"""The part of the stack that an activation is known to own. It is kept while one of its local variables lives."""
# The key of a site: kind << KIND_SHIFT | instruction or global << SITE_SHIFT | context, or
# IN_RECURSION | row of `recursion_calls`.
SITE_SHIFT = 30
KIND_SHIFT = 60
SITE_BITS = (1 << 30) - 1
IN_RECURSION = 1 << 29
CALLERS = 4
"""So many calls inside a recursion tell apart where a heap block is made; of them those that an instruction made."""
RECURSION_CALL = [("around", "<u4"), ("call", "<i8")]
"""Row of the calls around this one, or the context that the recursion is; the instruction of the call."""

# Elements of Live.control; the first are those of granules.py.
FREE = 2  # the first row of `objects` that waits to be used again
FREE_FRAME = 3  # the first row of `frames` that waits to be used again
CONTROL = 4
"""How many there are."""


class Live(NamedTuple):
    """The live objects of the process."""

    sites: HashTable  # with the module's fields
    recursion_calls: HashTable  # RECURSION_CALL, by both: the innermost calls of a recursion
    objects: Arena  # OBJECT
    words: Shadow  # u4
    wide: Shadow  # u4: that of granules
    known: NDArray[np.uint64]  # instruction: its last context << 34 | kind << 32 | the site there
    fresh: NDArray[np.uint8]  # instruction: 1 if it is a call of a function that never lets an object grow
    function_of: NDArray[np.uint32]  # instruction: its function
    frames: Arena  # FRAME
    newest: NDArray[np.uint32]  # stream: its live local variable that began last
    highest: NDArray[np.int64]  # stream: the highest end that one of its local variables had
    control: NDArray[np.int64]


@inlined
def at(live: Any, address: Any) -> Any:
    """The row of the object that the byte belongs to, DEAD | site of the one that it belonged to last, or 0."""
    found = np.int64(0)
    for row in reading(live.words, address, 1):
        found = np.int64(live.words.rows[row])
    if found == 0:
        found = wide_at(live.wide, live.control, address)
    return found


@inlined
def known_at(live: Any, address: Any, stream: Any) -> Any:
    """What `at` finds; 0 if it is a local variable that has ended and whose memory is part of a later call's frame.

    Frames hold more than variables: arguments that are passed on the stack (``va_arg`` makes pointers to them), spills,
    the frames of libraries. Such a byte is above the newest live variable of the stack, and in the frame of no live
    activation of the function that the ended variable belonged to.
    """
    found = at(live, address)
    if found >= DEAD and _covered(live, found ^ DEAD, address, np.uint64(stream)):
        found = np.int64(0)
    return found


@inlined
def starting_at(live: Any, address: Any) -> Any:
    """The row of the live object that begins there, or 0."""
    row = at(live, address)
    if row >= DEAD or live.objects.rows[row].start != address:
        row = np.int64(0)
    return row


@inlined
def ends_at(live: Any, address: Any) -> Any:
    """The row of the live object whose last byte is the one before `address`, or 0."""
    row = at(live, address - 1)
    if row >= DEAD or live.objects.rows[row].end != address:
        row = np.int64(0)
    return row


@inlined
def allocation_context(live: Any, context: Any, levels: Any) -> Any:
    """The context to make a heap block in; inside a recursion with the innermost calls, for it is one context."""
    if levels.control[LEAF_LEVEL] >= 0:
        context = _recursion_context(live, context, levels)
    return context


@kernel
def _recursion_context(live: Live, context: Any, levels: Any) -> Any:
    last = np.int64(levels.control[FRAMES])
    first = last
    while first > 0 and last - first < CALLERS and levels.frames[first - 1].leaf == 0:
        first -= 1
    for frame in range(first, last):
        call = np.int64(levels.frames[frame].call)
        if call != NO_CALL:
            row = np.int64(row_of(live.recursion_calls, (np.uint64(context) << np.uint64(32)) | np.uint64(call)))
            live.recursion_calls.rows[row].around = context
            live.recursion_calls.rows[row].call = call
            context = IN_RECURSION | row
    return context


@inlined
def kind_of(key: Any) -> Any:
    """The kind of the objects of a site."""
    return np.int64(key >> np.uint64(KIND_SHIFT))


@inlined
def site_of(live: Any, kind: Any, site: Any, context: Any) -> Any:
    """The site of an instruction or a global (kind GLOBAL) in a context."""
    key = (np.int64(kind) << KIND_SHIFT) | (site << SITE_SHIFT) | context
    if kind == GLOBAL:
        return np.int64(row_of(live.sites, key))
    known = live.known[np.uint64(site)]
    wanted = np.uint64((context << 2) | kind)
    if known >> np.uint64(32) != wanted:
        known = (wanted << np.uint64(32)) | np.uint64(row_of(live.sites, key))
        live.known[np.uint64(site)] = known
    return np.int64(known & np.uint64(0xFFFFFFFF))


@inlined
def end(live: Any, address: Any, size: Any) -> Any:
    """The object at `address` ends, or the last `size` bytes of a heap object; its row, 0 unless it ends as a whole."""
    row = at(live, address)
    if row == 0 or row >= DEAD:
        return np.int64(0)
    old = live.objects.rows[row]
    if old.start == address:
        _assign(live, address, max(old.end - address, 1), DEAD | np.int64(old.site))
        _release(live, row)
        return row
    if size > 0 and address + size == old.end and kind_of(live.sites.rows[old.site].key) == HEAP:
        old.end = address
        _assign(live, address, size, DEAD | np.int64(old.site))
    return np.int64(0)


@inlined
def begin(live: Any, kind: Any, site: Any, context: Any, address: Any, size: Any, stream: Any, depth: Any) -> Any:
    """An object begins; returns its row, 0 if there is none (address 0: an allocation that failed)."""
    if address == 0 or size < 0 or size > LARGEST:
        return np.int64(0)
    if kind != GLOBAL:
        site = min(site, live.known.size - 1)
    end(live, address, 0)  # of an object whose end was not seen
    row = np.int64(live.control[FREE])
    if row != 0:
        live.control[FREE] = live.objects.rows[row].next
    else:
        row = np.int64(take(live.objects, 1))
    new = live.objects.rows[row]
    new.start = address
    new.end = address + size
    new.stream = stream
    new.site = site_of(live, kind, site, context)
    new.alive = kind
    if kind == STACK:
        _push(live, row, depth)
    _assign(live, address, max(size, 1), row)
    return row


@inlined
def extended(live: Any, site: Any, address: Any, size: Any) -> Any:
    """If an allocation at `address` continues a heap object (realloc in place), let that grow; its row, or 0.

    That is one that is there and has no bytes, as those of a program's own allocators begin, which may lie side by
    side; else one that ends there.
    """
    row = np.int64(0)
    if address > 0 and 0 < size <= LARGEST:
        row = starting_at(live, address)
        if row != 0 and live.objects.rows[row].end != address:
            row = np.int64(0)
        if row == 0 and live.fresh[np.uint64(min(site, live.known.size - 1))] == 0:
            row = ends_at(live, address)
        if row != 0 and kind_of(live.sites.rows[live.objects.rows[row].site].key) == HEAP:
            live.objects.rows[row].end += size
            _assign(live, address, size, row)
        else:
            row = np.int64(0)
    return row


@inlined
def _release(live: Any, row: Any) -> None:
    old = live.objects.rows[row]
    if old.alive == STACK:
        _pop(live, row)
    old.alive = 0
    old.next = live.control[FREE]
    live.control[FREE] = row


@inlined
def _assign(live: Any, address: Any, size: Any, value: Any) -> None:
    """Say what the bytes belong to."""
    if ((address + (1 << WIDE_BITS) - 1) >> WIDE_BITS) < ((address + size) >> WIDE_BITS):
        _assign_wide(live, address, size, value)
    elif size > 0:
        fill(live.words, address, size, value)


@kernel
def _assign_wide(live: Live, address: Any, size: Any, value: Any) -> None:
    """Say what `size` bytes from `address` on belong to; whole granules are among them."""
    first, behind = (address + (1 << WIDE_BITS) - 1) >> WIDE_BITS, (address + size) >> WIDE_BITS
    start, stop = first << WIDE_BITS, behind << WIDE_BITS
    if start > address:
        fill(live.words, address, start - address, value)
    clear(live.words, start, stop - start)
    set_wide(live.wide, live.control, first, behind, value)
    if address + size > stop:
        fill(live.words, stop, address + size - stop, value)


# -- calls, for what happens less often than stack objects: code that is inlined everywhere is slow to compile -------


@kernel
def _push(live: Live, row: Any, depth: Any) -> None:
    """A local variable is its stream's newest."""
    new = live.objects.rows[row]
    stream = np.uint64(new.stream)
    new.before = live.newest[stream]
    new.next = 0
    live.objects.rows[new.before].next = row
    live.newest[stream] = row
    live.highest[stream] = max(live.highest[stream], new.end)
    before = np.int64(live.objects.rows[new.before].frame)
    if before != 0 and live.frames.rows[before].depth == depth:
        new.frame = before
        frame = live.frames.rows[before]
        frame.low = min(frame.low, new.start)
        frame.high = max(frame.high, new.end)
        frame.live += 1
    else:
        new.frame = _frame(live, new.start, new.end, depth)


@inlined
def _frame(live: Any, low: Any, high: Any, depth: Any) -> Any:
    """A new frame, of one variable."""
    row = np.int64(live.control[FREE_FRAME])
    if row != 0:
        live.control[FREE_FRAME] = live.frames.rows[row].free
    else:
        row = np.int64(take(live.frames, 1))
    new = live.frames.rows[row]
    new.low = low
    new.high = high
    new.depth = depth
    new.live = 1
    return row


@kernel
def _pop(live: Live, row: Any) -> None:
    """A local variable ends."""
    old = live.objects.rows[row]
    live.objects.rows[old.before].next = old.next
    if old.next != 0:
        live.objects.rows[old.next].before = old.before
    else:
        live.newest[np.uint64(old.stream)] = old.before
    frame = live.frames.rows[old.frame]
    frame.live -= 1
    if frame.live == 0:
        frame.free = live.control[FREE_FRAME]
        live.control[FREE_FRAME] = old.frame


@inlined
def _function_of(live: Any, site: Any) -> Any:
    """The function that the local variables of a site belong to."""
    return live.function_of[np.uint64((np.int64(live.sites.rows[site].key) >> SITE_SHIFT) & SITE_BITS)]


@kernel
def _covered(live: Live, site: Any, address: Any, stream: Any) -> bool:
    """Does memory of a local variable that has ended belong to a frame that was entered later?"""
    row = np.int64(live.newest[stream])
    if kind_of(live.sites.rows[site].key) != STACK or row == 0:
        return False
    if not live.objects.rows[row].start < address < live.highest[stream]:
        return False
    function = _function_of(live, site)
    while row != 0:
        local = live.objects.rows[row]
        frame = live.frames.rows[local.frame]
        if frame.low > address:  # so are all that were entered before
            return True
        if address < frame.high and _function_of(live, np.int64(local.site)) == function:
            return False
        row = np.int64(local.before)
    return True


class Unloading(NamedTuple):
    """The globals of the program, to end those of an image that is unloaded."""

    image: NDArray[np.uint32]
    address: NDArray[np.uint64]
    size: NDArray[np.uint64]


@kernel
def allocate(live: Live, site: Any, context: Any, address: Any, size: Any, stream: Any, levels: Any) -> None:
    """Take in heap_alloc: a new object, or the tail by which a realloc let one grow. levels: those of the stream."""
    if extended(live, site, address, size) == 0:
        begin(live, HEAP, site, allocation_context(live, context, levels), address, size, stream, 0)


@kernel
def place(live: Live, number: Any, address: Any, size: Any, stream: Any) -> None:
    """Take in global_init; `number`: row of the program's globals."""
    begin(live, GLOBAL, number, 0, address, size, stream, 0)


@kernel
def release(live: Live, address: Any, size: Any) -> None:
    """Take in heap_free: of a whole object, or of the tail that a realloc cut off, `size` bytes."""
    end(live, address, size)


@kernel
def unload(live: Live, images: Unloading, image: Any) -> None:
    """Take in image_unload: the globals of the image with this number end."""
    for row in range(images.image.size):
        if images.image[row] == image and images.address[row] != 0:
            end(live, np.int64(images.address[row]), np.int64(images.size[row]))
