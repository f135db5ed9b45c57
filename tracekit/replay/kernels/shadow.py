"""Shadow memory: for each byte of each stream, its last store and the loads since, word by word while it can.

A page is 4096 bytes of one stream: one *slot* for each of its 512 aligned words. Pages are found through a hash
map and a direct-mapped cache, and stay. A word that an access splits is divided into *granules* of 4, 2 or 1
bytes, each with a slot in a block elsewhere; all bytes of a granule share one history. The word is whole again
when a store covers it or all of it is freed. Words are divided one by one, for in the records of a program a
byte-sized tag stands beside words that are never read but whole (in lua and sqlite3 every line of 64 bytes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.hashmap import HashMap, Int, find, is_full, put
from tracekit.replay.kernels.prefetch import prefetch

PAGE_BITS = 12
WORDS = 512  # of a page
CACHED_PAGES = 256
NOT_CACHED = 1 << 62  # in the cache: the number of no page

PAGE = np.dtype([
    ("number", "<i8"), ("stream", "<i4"),
    ("next", "<i4"),  # the same page in another stream, or -1
    ("slots", "<i8"),  # first of its slots
])
# Row numbers are unsigned, so that Numba does not look for negative indices where they are used as such.
SLOT = np.dtype([
    ("store", "<u4"),  # access id of the last store plus 1; 0: none; of a divided word: SPLIT + log2 of its granules
    ("readers", "<u4"),  # first reader entry, 0: none; entry 0 is not used
    ("stamp", "<i8"),  # clock of the last store; of a divided word, its block; in a free block, the next free block
])
SPLIT = 1 << 31
READER = np.dtype([
    ("access", "<u4"),  # access id of the load
    ("next", "<u4"),
    ("earliest", "<i8"),  # clocks of its first and last execution in one present interval
    ("latest", "<i8"),
    ("length", "<i4"),  # in the first entry of a list: entries in the list
    ("limit", "<i4"),  # and the length at which the list is next compacted
])
FIRST_LIMIT = 8

# Elements of Shadow.control
PAGES, SLOTS, READERS, FREE_READERS, FIRST_FREE_READER, FIRST_FREE_BLOCK = range(6)
CONTROL = FIRST_FREE_BLOCK + 3  # one list of free blocks for each size of granules


class Shadow(NamedTuple):
    """The shadow of all streams."""

    page_index: HashMap  # page number -> first row of pages
    pages: NDArray[Any]  # PAGE
    slots: NDArray[Any]  # SLOT, of words and of granules; the first eight are not used
    readers: NDArray[Any]  # READER
    control: NDArray[np.int64]


# What a function lacked room for: the caller grows it and calls again.
OK, NO_PAGES, NO_SLOTS, NO_READERS = range(4)


@inlined
def page_slots(shadow: Any, cache: Any, stream: Any, number: Any) -> Any:
    """The first slot of page `number` of `stream`, made if it is new; minus the status if there is no room for it."""
    way = (number & (CACHED_PAGES - 1)) * 2
    if cache[way] == number:
        return cache[way + 1]
    first = find_page(shadow.page_index.cells, shadow.page_index.used, shadow.pages, shadow.slots, shadow.control,
                      stream, number)
    if first >= 0:
        cache[way] = number
        cache[way + 1] = first
    return first


@kernel
def find_page(cells: Any, used: Any, pages: Any, slots: Any, control: Any, stream: Int, number: Int) -> int:
    """Find or make a page: its first slot, or minus the status if there is no room."""
    index = HashMap(cells, used)
    first = find(index, number)
    row = first
    while row >= 0:
        if pages[row].stream == stream:
            return int(pages[row].slots)
        row = pages[row].next
    if control[PAGES] == pages.size or (first < 0 and is_full(index)):
        return -NO_PAGES
    if control[SLOTS] + WORDS > slots.size:
        return -NO_SLOTS
    row = control[PAGES]
    control[PAGES] += 1
    pages[row].number = number
    pages[row].stream = stream
    pages[row].slots = control[SLOTS]
    control[SLOTS] += WORDS
    if first < 0:
        pages[row].next = -1
        put(index, number, row)
    else:
        pages[row].next = pages[first].next
        pages[first].next = row
    return int(pages[row].slots)


@inlined
def shift_for(first: Any, last: Any) -> Any:
    """log2 of the coarsest granule that does not straddle the offsets `first` and `last` of a word."""
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
    """The first slot of an empty block for the granules of one word, or -1 if there is no room."""
    size = 8 >> shift
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
        prefetch(readers, readers[entry].next)
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
def give_readers(readers: Any, control: Any, first: Any, last: Any, count: Any) -> None:
    """Put the `count` entries of a list from `first` to `last` back."""
    readers[last].next = control[FIRST_FREE_READER]
    control[FIRST_FREE_READER] = first
    control[FREE_READERS] += count


@inlined
def granules(shadow: Any, word: Any, first: Any, last: Any) -> Any:
    """Prepare the word in slot `word` for an access to its bytes `first` .. `last` - 1.

    Returns (first slot of its granules) * 4 + log2 of their size, or minus the status if there was no room.
    """
    store = np.int64(shadow.slots[word].store)
    whole = last - first == 8
    if store < SPLIT:
        if whole:
            return word * 4 + 3
    elif whole or (store & 3) <= shift_for(first, last):
        return shadow.slots[word].stamp * 4 + (store & 3)
    return np.int64(split(shadow.slots, shadow.readers, shadow.control, word, shift_for(first, last)))


@kernel
def split(slots: Any, readers: Any, control: Any, word: Int, shift: Int) -> int:
    """Divide a word into (finer) granules, each with a copy of the history that it shared; returns as `granules`."""
    old, old_shift = np.int64(word), np.int64(3)
    if slots[word].store >= SPLIT:
        old, old_shift = slots[word].stamp, np.int64(slots[word].store) & 3
    parts = 1 << (old_shift - shift)
    entries = 0
    for slot in range(old, old + (8 >> old_shift)):
        if slots[slot].readers != 0:
            entries += readers[slots[slot].readers].length
    if entries * (parts - 1) > readers.size - control[READERS] + control[FREE_READERS]:
        return -NO_READERS
    new = take_block(slots, control, shift)
    if new < 0:
        return -NO_SLOTS
    for slot in range(old, old + (8 >> old_shift)):
        for part in range(parts):
            copy = new + (slot - old) * parts + part
            slots[copy].store = slots[slot].store
            slots[copy].stamp = slots[slot].stamp
            slots[copy].readers = slots[slot].readers
            if part > 0:
                slots[copy].readers = _copy_readers(readers, control, slots[slot].readers)
        slots[slot].store = 0
        slots[slot].readers = 0
    if old != word:
        _give_block(slots, control, old, old_shift)
    slots[word].store = SPLIT + shift
    slots[word].stamp = new
    return int(new * 4 + shift)


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
def join(slots: Any, control: Any, word: Any) -> None:
    """Make a divided word whole whose granules were all stored by one access, and not read since."""
    block, shift = slots[word].stamp, np.int64(slots[word].store) & 3
    slots[word].store = slots[block].store
    slots[word].stamp = slots[block].stamp
    for slot in range(block, block + (8 >> shift)):
        slots[slot].store = 0
    _give_block(slots, control, block, shift)


@inlined
def _give_block(slots: Any, control: Any, block: Any, shift: Any) -> None:
    slots[block].stamp = control[FIRST_FREE_BLOCK + shift]
    control[FIRST_FREE_BLOCK + shift] = block


@inlined
def _forget(slots: Any, readers: Any, control: Any, slot: Any) -> None:
    """Empty the slot of a granule or of a whole word."""
    entry = np.int64(slots[slot].readers)
    while entry != 0:
        following = np.int64(readers[entry].next)
        give_reader(readers, control, entry)
        entry = following
    slots[slot].store = 0
    slots[slot].readers = 0


@kernel
def clear_range(cells: Any, used: Any, pages: Any, slots: Any, readers: Any, control: Any, start: Int, end: Int) -> int:
    """Forget the history of the bytes start .. end - 1 in every stream; returns a status (then call again)."""
    index = HashMap(cells, used)
    first, last = start >> PAGE_BITS, (end - 1) >> PAGE_BITS
    if last - first < control[PAGES]:
        for number in range(first, last + 1):
            row = find(index, number)
            while row >= 0:
                status = _clear_page(slots, readers, control, pages[row].slots, number, start, end)
                if status != OK:
                    return int(status)
                row = np.int64(pages[row].next)
    else:  # fewer pages exist than the range has
        for row in range(control[PAGES]):
            if first <= pages[row].number <= last:
                status = _clear_page(slots, readers, control, pages[row].slots, pages[row].number, start, end)
                if status != OK:
                    return int(status)
    return OK


@kernel
def _clear_page(slots: Any, readers: Any, control: Any, page: Int, number: Int, start: Int, end: Int) -> int:
    base = number << PAGE_BITS
    low, high = max(start - base, 0), min(end - base, 1 << PAGE_BITS)
    for place in range(low >> 3, (high + 7) >> 3):
        word = page + place
        if slots[word].store == 0 and slots[word].readers == 0:
            continue
        first, last = max(low - place * 8, 0), min(high - place * 8, 8)
        block, shift = np.int64(word), np.int64(3)
        if last - first < 8 and (slots[word].store < SPLIT or (slots[word].store & 3) > shift_for(first, last)):
            status = split(slots, readers, control, word, shift_for(first, last))
            if status < 0:
                return int(-status)
        if slots[word].store >= SPLIT:
            block, shift = slots[word].stamp, np.int64(slots[word].store) & 3
        for slot in range(block + (first >> shift), block + (last >> shift)):
            _forget(slots, readers, control, slot)
        if last - first == 8 and block != word:
            _give_block(slots, control, block, shift)
            slots[word].store = 0
    return OK
