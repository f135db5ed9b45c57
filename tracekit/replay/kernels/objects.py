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
from tracekit.replay.arena import EXHAUSTED, USED, Arena
from tracekit.replay.kernels.arena import take
from tracekit.replay.kernels.keyed import CELLS, Keyed, cell_of, row_of

Int = Any
"""An integer in a kernel."""

BIG = 1 << 16
WORDS = 512  # of a page
SHARED = 1 << 30  # in a word: the rest is a row of `bytes`, else it is an identity plus 1
CACHED = 64
EXTENT = np.dtype([("start", "<i8"), ("end", "<i8"), ("identity", "<i8")])
BYTES = np.dtype([("identity", "<i4", (8,))])

FREE_BYTES, LAST_BIG, CONTROL = range(3)
"""Elements of Objects.control: first free row of `bytes` (0: none), and the big object that was found last."""


class Objects(NamedTuple):
    """The live objects of the process."""

    pages: Keyed  # by page number
    words: NDArray[np.int32]  # WORDS for each row of `pages`
    bytes: Arena  # BYTES: identity plus 1 of each byte of a shared word; in a free row, the next free row first
    bigs: Arena  # EXTENT, ascending, disjoint, from row 1 on
    cache: NDArray[np.int64]  # direct-mapped: page number, row of `pages` or 0
    control: NDArray[np.int64]


@inlined
def identity_at(objects: Any, address: Any) -> Any:
    """The identity of the object that holds `address`, or 0, which stands for unknown memory."""
    number = address >> 12
    way = np.uint64((number & (CACHED - 1)) * 2)
    row = objects.cache[way | np.uint64(1)]
    if objects.cache[way] != number:
        row = _page(objects.pages, number)
        objects.cache[way] = number
        objects.cache[way | np.uint64(1)] = row
    if row != 0:
        word = np.int64(objects.words[np.uint64(row * WORDS + ((address >> 3) & (WORDS - 1)))])
        if word & SHARED:
            word = np.int64(objects.bytes.rows[np.uint64(word ^ SHARED)].identity[address & 7])
        if word > 0:
            return word - 1
    if objects.bigs.control[USED] > 1:
        return np.int64(_big_at(objects.bigs, objects.control, address))
    return np.int64(0)


@inlined
def _page(pages: Any, number: Any) -> Any:
    return np.int64(pages.cells[cell_of(pages.rows, pages.cells, pages.control[CELLS], np.uint64(number))])


@kernel
def _big_at(bigs: Arena, control: Any, address: Int) -> int:
    last = control[LAST_BIG]
    if last >= bigs.control[USED] or not bigs.rows[last].start <= address < bigs.rows[last].end:
        last = np.int64(_big_after(bigs.rows, bigs.control[USED], address)) - 1
        if last < 1 or address >= bigs.rows[last].end:
            return 0
        control[LAST_BIG] = last
    return int(bigs.rows[last].identity)


@inlined
def _big_after(bigs: Any, used: Any, address: Any) -> Any:
    """The first of the big objects that starts after `address`."""
    low, high = np.int64(1), np.int64(used)
    while low < high:
        middle = (low + high) >> 1
        if bigs[middle].start <= address:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def place(objects: Objects, start: Int, end: Int, identity: Int) -> None:
    """Say that the bytes start .. end - 1 belong to `identity`, or to nothing if it is -1."""
    pages = objects.pages
    if objects.bigs.control[USED] > 1:
        _remove_bigs(objects.bigs.rows, objects.bigs.control, start, end)
    small = end - start < BIG and identity >= 0
    first, last = start >> 12, (end - 1) >> 12
    if last - first < pages.control[USED] or small:
        for number in range(first, last + 1):
            row: Any = np.int64(row_of(pages, np.uint64(number))) if small else _page(pages, number)
            if row != 0:
                way = (number & (CACHED - 1)) * 2
                objects.cache[way] = number
                objects.cache[way + 1] = row
                _fill(objects, row, number, start, end, identity + 1 if small else 0)
    else:  # fewer pages exist than the range has
        for row in range(1, pages.control[USED]):
            found = np.int64(pages.rows[row].key)
            if first <= found <= last:
                _fill(objects, row, found, start, end, 0)
    if identity >= 0 and not small:
        _insert_big(objects.bigs.rows, objects.bigs.control, start, end, identity)


@kernel
def _fill(objects: Objects, row: Int, number: Int, start: Int, end: Int, content: Int) -> None:
    """Set the words and bytes of one page that lie in start .. end - 1."""
    tables: Any = objects.bytes.rows
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
                shared = _take_bytes(objects)
                for byte in range(8):
                    tables[shared].identity[byte] = old
                objects.words[position] = shared | SHARED
            table = np.int64(objects.words[position]) ^ SHARED
            for byte in range(first, last):
                tables[table].identity[byte] = content
            _unshare(objects, position, table)


@kernel
def _unshare(objects: Objects, position: Int, table: Int) -> None:
    """Give up the table of bytes of a word if they all agree."""
    tables: Any = objects.bytes.rows
    content = tables[table].identity[0]
    for byte in range(1, 8):
        if tables[table].identity[byte] != content:
            return
    _give_bytes(objects, table)
    objects.words[position] = content


@inlined
def _take_bytes(objects: Any) -> Any:
    row = objects.control[FREE_BYTES]
    if row != 0:
        objects.control[FREE_BYTES] = np.int64(objects.bytes.rows[row].identity[0])
        return row
    return np.int64(take(objects.bytes, 1))


@inlined
def _give_bytes(objects: Any, row: Any) -> None:
    objects.bytes.rows[row].identity[0] = objects.control[FREE_BYTES]
    objects.control[FREE_BYTES] = row


@kernel
def _remove_bigs(bigs: Any, control: Any, start: Int, end: Int) -> None:
    """Cut start .. end - 1 out of the big objects."""
    place = np.int64(_big_after(bigs, control[USED], start))
    if place > 1 and bigs[place - 1].end > start:
        place -= 1
    if place < control[USED] and bigs[place].start < start and bigs[place].end > start:
        if bigs[place].end > end:  # a hole: the part behind becomes an object of its own
            if not _shift_bigs(bigs, control, place + 1, 1):
                return
            bigs[place + 1].start = end
            bigs[place + 1].end = bigs[place].end
            bigs[place + 1].identity = bigs[place].identity
        bigs[place].end = start
        place += 1
    covered = place
    while covered < control[USED] and bigs[covered].end <= end:
        covered += 1
    if covered > place:
        _shift_bigs(bigs, control, covered, place - covered)
    if place < control[USED] and bigs[place].start < end:
        bigs[place].start = end


@kernel
def _insert_big(bigs: Any, control: Any, start: Int, end: Int, identity: Int) -> None:
    place = _big_after(bigs, control[USED], start)
    if _shift_bigs(bigs, control, place, 1):
        bigs[place].start = start
        bigs[place].end = end
        bigs[place].identity = identity


@kernel
def _shift_bigs(bigs: Any, control: Any, first: Int, by: Int) -> bool:
    """Move the big objects from `first` on by `by` places; False if there is no room."""
    count = control[USED]
    if count + by > bigs.size:
        control[EXHAUSTED] = 1
        return False
    if by > 0:
        for row in range(count - 1, first - 1, -1):
            bigs[row + by] = bigs[row]
    else:
        for row in range(first, count):
            bigs[row + by] = bigs[row]
    control[USED] = count + by
    return True
