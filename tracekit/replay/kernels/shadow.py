"""Shadow memory: for each byte of each stream, its last store and the loads since, word by word while it can.

A *line* is 64 aligned bytes. It is divided into *granules* of 8, 4, 2 or 1 bytes; all bytes of a granule
share one *slot*. A line begins with the coarsest granules that the first access allows and is refined
when a later one splits a granule; it is empty again when all of it is freed. A page is 4096 bytes of one
stream; pages are found through a hash map and a direct-mapped cache, and stay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.hashmap import HashMap, Int, find, is_full, put

PAGE_BITS = 12
LINES = 64  # lines of a page
CACHED_PAGES = 256

PAGE = np.dtype([("number", "<i8"), ("stream", "<i4"), ("next", "<i4")])  # next: the same page in another stream, or -1
SLOT = np.dtype([
    ("store", "<i4"),  # access id of the last store plus 1; 0: none
    ("readers", "<i4"),  # first reader entry, 0: none; entry 0 is not used
    ("stamp", "<i8"),  # clock of the last store; in a free block, the next free block
])
READER = np.dtype([
    ("access", "<i4"),  # access id of the load
    ("next", "<i4"),
    ("earliest", "<i8"),  # clocks of its first and last execution in one present interval
    ("latest", "<i8"),
    ("length", "<i4"),  # in the first entry of a list: entries in the list
    ("limit", "<i4"),  # and the length at which the list is next compacted
])
FIRST_LIMIT = 8

# Elements of Shadow.control
PAGES, SLOTS, READERS, FREE_READERS, FIRST_FREE_READER, FIRST_FREE_BLOCK = range(6)
CONTROL = FIRST_FREE_BLOCK + 4  # one list of free blocks for each granularity


class Shadow(NamedTuple):
    """The shadow of all streams. ``lines`` holds, per page and line, (first slot / 8) * 4 + shift, or 0."""

    page_index: HashMap  # page number -> first row of pages
    pages: NDArray[Any]  # PAGE
    lines: NDArray[np.int32]
    slots: NDArray[Any]  # SLOT; the first eight are not used
    readers: NDArray[Any]  # READER
    control: NDArray[np.int64]


# What a function lacked room for: the caller grows it and calls again.
OK, NO_PAGES, NO_SLOTS, NO_READERS = range(4)


@inlined
def page_row(shadow: Any, cache: Any, stream: Any, number: Any) -> Any:
    """The row of page `number` of `stream`, made if it is new; -1 if there is no room for it."""
    way = (number & (CACHED_PAGES - 1)) * 2
    if cache[way] == number and cache[way + 1] >= 0:
        return cache[way + 1]
    row = find_page(shadow.page_index.cells, shadow.page_index.used, shadow.pages, shadow.control, stream, number)
    if row >= 0:
        cache[way] = number
        cache[way + 1] = row
    return row


@kernel
def find_page(cells: Any, used: Any, pages: Any, control: Any, stream: Int, number: Int) -> int:
    """Find or make a page; -1 if there is no room."""
    index = HashMap(cells, used)
    first = find(index, number)
    row = first
    while row >= 0:
        if pages[row].stream == stream:
            return int(row)
        row = pages[row].next
    if control[PAGES] == pages.size or (first < 0 and is_full(index)):
        return -1
    row = control[PAGES]
    control[PAGES] += 1
    pages[row].number = number
    pages[row].stream = stream
    if first < 0:
        pages[row].next = -1
        put(index, number, row)
    else:
        pages[row].next = pages[first].next
        pages[first].next = row
    return int(row)


@inlined
def shift_for(first: Any, last: Any) -> Any:
    """log2 of the coarsest granule that does not straddle the offsets `first` and `last` of a line."""
    either = first | last
    if either & 7 == 0:
        return 3
    if either & 3 == 0:
        return 2
    if either & 1 == 0:
        return 1
    return 0


@inlined
def take_block(slots: Any, control: Any, shift: Any) -> Any:
    """The first slot of an empty block for one line, or -1 if there is no room."""
    size = 64 >> shift
    block = control[FIRST_FREE_BLOCK + shift]
    if block != 0:
        control[FIRST_FREE_BLOCK + shift] = slots[block].stamp
        slots[block].stamp = 0
        return block
    block = control[SLOTS]
    if block + size > slots.size:
        return np.int64(-1)
    control[SLOTS] += size
    return block


@inlined
def take_reader(readers: Any, control: Any) -> Any:
    """A free reader entry, or -1 if there is no room."""
    entry = control[FIRST_FREE_READER]
    if entry != 0:
        control[FIRST_FREE_READER] = readers[entry].next
        control[FREE_READERS] -= 1
        return entry
    entry = control[READERS]
    if entry == readers.size:
        return np.int64(-1)
    control[READERS] += 1
    return entry


@inlined
def give_reader(readers: Any, control: Any, entry: Any) -> None:
    """Put a reader entry back."""
    readers[entry].next = control[FIRST_FREE_READER]
    control[FIRST_FREE_READER] = entry
    control[FREE_READERS] += 1


@inlined
def line_for(shadow: Any, position: Any, first: Any, last: Any) -> Any:
    """Prepare the line at ``lines[position]`` for an access to its bytes `first` .. `last` - 1.

    Returns its entry, as in ``lines``, or minus the status if there was no room.
    """
    wanted = shift_for(first, last)
    entry = np.int64(shadow.lines[position])
    if entry == 0:
        block = take_block(shadow.slots, shadow.control, wanted)
        if block < 0:
            return np.int64(-NO_SLOTS)
        entry = (block >> 3 << 2) | wanted
        shadow.lines[position] = entry
    elif entry & 3 > wanted:
        status = refine(shadow.lines, shadow.slots, shadow.readers, shadow.control, position, wanted)
        if status != OK:
            return np.int64(-status)
        entry = np.int64(shadow.lines[position])
    return entry


@kernel
def refine(lines: Any, slots: Any, readers: Any, control: Any, position: Int, shift: Int) -> int:
    """Divide a line into finer granules, each with a copy of the history that it shared; returns a status."""
    old_shift = lines[position] & 3
    old = np.int64(lines[position]) >> 2 << 3
    parts = 1 << (old_shift - shift)
    entries = 0
    for slot in range(old, old + (64 >> old_shift)):
        if slots[slot].readers != 0:
            entries += readers[slots[slot].readers].length
    if entries * (parts - 1) > readers.size - control[READERS] + control[FREE_READERS]:
        return NO_READERS
    new = take_block(slots, control, shift)
    if new < 0:
        return NO_SLOTS
    for slot in range(old, old + (64 >> old_shift)):
        for part in range(parts):
            copy = new + (slot - old) * parts + part
            slots[copy].store = slots[slot].store
            slots[copy].stamp = slots[slot].stamp
            slots[copy].readers = slots[slot].readers
            if part > 0:
                slots[copy].readers = _copy_readers(readers, control, slots[slot].readers)
        slots[slot].store = 0
        slots[slot].readers = 0
    _give_block(slots, control, old, old_shift)
    lines[position] = (new >> 3 << 2) | shift
    return OK


@kernel
def _copy_readers(readers: Any, control: Any, first: Int) -> int:
    copied = 0
    last = 0
    while first != 0:
        entry = take_reader(readers, control)
        readers[entry] = readers[first]
        readers[entry].next = 0
        if last == 0:
            copied = entry
        else:
            readers[last].next = entry
        last = entry
        first = readers[first].next
    return int(copied)


@inlined
def _give_block(slots: Any, control: Any, block: Any, shift: Any) -> None:
    slots[block].stamp = control[FIRST_FREE_BLOCK + shift]
    control[FIRST_FREE_BLOCK + shift] = block


@inlined
def _forget(slots: Any, readers: Any, control: Any, slot: Any) -> None:
    """Empty a slot."""
    entry = np.int64(slots[slot].readers)
    while entry != 0:
        following = np.int64(readers[entry].next)
        give_reader(readers, control, entry)
        entry = following
    slots[slot].store = 0
    slots[slot].readers = 0


@kernel
def clear_range(cells: Any, used: Any, pages: Any, lines: Any, slots: Any, readers: Any, control: Any,
                start: Int, end: Int) -> int:
    """Forget the history of the bytes start .. end - 1 in every stream; returns a status (then call again)."""
    index = HashMap(cells, used)
    first, last = start >> PAGE_BITS, (end - 1) >> PAGE_BITS
    if last - first < control[PAGES]:
        for number in range(first, last + 1):
            row = find(index, number)
            while row >= 0:
                status = _clear_page(lines, slots, readers, control, row, number, start, end)
                if status != OK:
                    return int(status)
                row = np.int64(pages[row].next)
    else:  # fewer pages exist than the range has
        for row in range(control[PAGES]):
            if first <= pages[row].number <= last:
                status = _clear_page(lines, slots, readers, control, row, pages[row].number, start, end)
                if status != OK:
                    return int(status)
    return OK


@kernel
def _clear_page(lines: Any, slots: Any, readers: Any, control: Any, row: Int, number: Int, start: Int, end: Int) -> int:
    base = number << PAGE_BITS
    low, high = max(start - base, 0), min(end - base, 1 << PAGE_BITS)
    for line in range(low >> 6, (high + 63) >> 6):
        position = row * LINES + line
        if lines[position] == 0:
            continue
        first, last = max(low - line * 64, 0), min(high - line * 64, 64)
        wanted = shift_for(first, last)
        if lines[position] & 3 > wanted:
            status = refine(lines, slots, readers, control, position, wanted)
            if status != OK:
                return int(status)
        shift = lines[position] & 3
        block = np.int64(lines[position]) >> 2 << 3
        for slot in range(block + (first >> shift), block + (last >> shift)):
            _forget(slots, readers, control, slot)
        if last - first == 64:
            _give_block(slots, control, block, shift)
            lines[position] = 0
    return OK
