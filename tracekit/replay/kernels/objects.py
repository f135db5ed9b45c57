"""Which object holds an address: heap blocks, stack objects and globals that live at the present moment.

Objects below 64 KiB are entered word by word into tables of the pages that they touch, those above into
one sorted list. A word that several objects share has a table of its eight bytes. What is stored is
the object's *identity*: the row of (kind, site) that a profile names it by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.hashmap import HashMap, Int, find, is_full, put

BIG = 1 << 16
WORDS = 512  # of a page
SHARED = 1 << 30  # in a word: the rest is a row of `bytes`, else it is an identity plus 1
CACHED = 64
EXTENT = np.dtype([("start", "<i8"), ("end", "<i8"), ("identity", "<i8")])

# Elements of Objects.control
PAGES, BYTES, BIGS, FREE_BYTES, LAST_BIG = range(5)
CONTROL = 5

OK, NO_PAGES, NO_BYTES, NO_BIGS = range(4)


class Objects(NamedTuple):
    """The live objects of the process."""

    page_index: HashMap  # page number -> row of words
    words: NDArray[np.int32]  # WORDS per page
    bytes: NDArray[np.int32]  # eight per shared word: identity plus 1; in a free row, the next free row first
    bigs: NDArray[Any]  # EXTENT, ascending, disjoint
    cache: NDArray[np.int64]  # direct-mapped: page number, row of words plus 1, or 0 if there is none
    control: NDArray[np.int64]


@inlined
def identity_at(objects: Any, address: Any) -> Any:
    """The identity of the object that holds `address`, or 0, which stands for unknown memory."""
    number = address >> 12
    way = (number & (CACHED - 1)) * 2
    if objects.cache[way] == number:
        row = objects.cache[way + 1] - 1
    else:
        row = find(objects.page_index, number)
        objects.cache[way] = number
        objects.cache[way + 1] = row + 1
    if row >= 0:
        word = np.int64(objects.words[row * WORDS + ((address >> 3) & (WORDS - 1))])
        if word & SHARED:
            word = np.int64(objects.bytes[(word ^ SHARED) * 8 + (address & 7)])
        if word > 0:
            return word - 1
    last = objects.control[LAST_BIG]
    if last < objects.control[BIGS] and objects.bigs[last].start <= address < objects.bigs[last].end:
        return objects.bigs[last].identity
    place = _big_after(objects.bigs, objects.control[BIGS], address)
    if place > 0 and address < objects.bigs[place - 1].end:
        objects.control[LAST_BIG] = place - 1
        return objects.bigs[place - 1].identity
    return np.int64(0)


@inlined
def _big_after(bigs: Any, count: Any, address: Any) -> Any:
    """The first of the big objects that starts after `address`."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if bigs[middle].start <= address:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def place(objects: Objects, start: Int, end: Int, identity: Int) -> int:
    """Say that the bytes start .. end - 1 belong to `identity`, or to nothing if it is -1; returns a status.

    After a status other than OK, grow and call again.
    """
    status = _remove_bigs(objects, start, end)
    if status != OK:
        return int(status)
    small = end - start < BIG and identity >= 0
    first, last = start >> 12, (end - 1) >> 12
    if last - first < objects.control[PAGES] or small:
        for number in range(first, last + 1):
            row = find(objects.page_index, number)
            if row < 0 and small:
                if is_full(objects.page_index) or (objects.control[PAGES] + 1) * WORDS > objects.words.size:
                    return NO_PAGES
                row = objects.control[PAGES]
                objects.control[PAGES] += 1
                put(objects.page_index, number, row)
                way = (number & (CACHED - 1)) * 2
                objects.cache[way] = number
                objects.cache[way + 1] = row + 1
            if row >= 0 and not _fill(objects, row, number, start, end, identity + 1 if small else 0):
                return NO_BYTES
    else:  # fewer pages exist than the range has
        for cell in range(0, objects.page_index.cells.size, 2):
            number, row = objects.page_index.cells[cell], objects.page_index.cells[cell + 1] - 1
            if row >= 0 and first <= number <= last and not _fill(objects, row, number, start, end, 0):
                return NO_BYTES
    if identity >= 0 and not small:
        return int(_insert_big(objects, start, end, identity))
    return OK


@kernel
def _fill(objects: Objects, row: Int, number: Int, start: Int, end: Int, content: Int) -> bool:
    """Set the words and bytes of one page that lie in start .. end - 1; False if there is no room."""
    low, high = max(start - (number << 12), 0), min(end - (number << 12), 4096)
    for word in range(low >> 3, (high + 7) >> 3):
        position = row * WORDS + word
        old = np.int64(objects.words[position])
        first, last = max(low - word * 8, 0), min(high - word * 8, 8)
        if last - first == 8:
            if old & SHARED:
                _give_bytes(objects, old ^ SHARED)
            objects.words[position] = content
        elif old != content:
            if not old & SHARED:
                table = _take_bytes(objects)
                if table < 0:
                    return False
                for byte in range(8):
                    objects.bytes[table * 8 + byte] = old
                objects.words[position] = table | SHARED
            table = np.int64(objects.words[position]) ^ SHARED
            for byte in range(first, last):
                objects.bytes[table * 8 + byte] = content
            _unshare(objects, position, table)
    return True


@kernel
def _unshare(objects: Objects, position: Int, table: Int) -> None:
    """Give up the table of bytes of a word if they all agree."""
    content = objects.bytes[table * 8]
    for byte in range(1, 8):
        if objects.bytes[table * 8 + byte] != content:
            return
    _give_bytes(objects, table)
    objects.words[position] = content


@inlined
def _take_bytes(objects: Any) -> Any:
    row = objects.control[FREE_BYTES] - 1
    if row >= 0:
        objects.control[FREE_BYTES] = objects.bytes[row * 8]
        return row
    row = objects.control[BYTES]
    if row * 8 == objects.bytes.size:
        return np.int64(-1)
    objects.control[BYTES] += 1
    return row


@inlined
def _give_bytes(objects: Any, row: Any) -> None:
    objects.bytes[row * 8] = objects.control[FREE_BYTES]
    objects.control[FREE_BYTES] = row + 1


@kernel
def _remove_bigs(objects: Objects, start: Int, end: Int) -> int:
    """Cut start .. end - 1 out of the big objects."""
    bigs, control = objects.bigs, objects.control
    if control[BIGS] + 1 > bigs.size:
        return NO_BIGS
    place = np.int64(_big_after(bigs, control[BIGS], start))
    if place > 0 and bigs[place - 1].end > start:
        place -= 1
    if place < control[BIGS] and bigs[place].start < start and bigs[place].end > start:
        if bigs[place].end > end:  # a hole: the part behind becomes an object of its own
            _shift_bigs(bigs, control, place + 1, 1)
            bigs[place + 1].start = end
            bigs[place + 1].end = bigs[place].end
            bigs[place + 1].identity = bigs[place].identity
        bigs[place].end = start
        place += 1
    covered = place
    while covered < control[BIGS] and bigs[covered].end <= end:
        covered += 1
    if covered > place:
        _shift_bigs(bigs, control, covered, place - covered)
    if place < control[BIGS] and bigs[place].start < end:
        bigs[place].start = end
    return OK


@kernel
def _insert_big(objects: Objects, start: Int, end: Int, identity: Int) -> int:
    bigs, control = objects.bigs, objects.control
    if control[BIGS] + 1 > bigs.size:
        return NO_BIGS
    place = _big_after(bigs, control[BIGS], start)
    _shift_bigs(bigs, control, place, 1)
    bigs[place].start = start
    bigs[place].end = end
    bigs[place].identity = identity
    return OK


@kernel
def _shift_bigs(bigs: Any, control: Any, first: Int, by: Int) -> None:
    """Move the big objects from `first` on by `by` places."""
    count = control[BIGS]
    if by > 0:
        for row in range(count - 1, first - 1, -1):
            bigs[row + by] = bigs[row]
    else:
        for row in range(first, count):
            bigs[row + by] = bigs[row]
    control[BIGS] = count + by
