"""Which object holds an address: heap blocks, stack objects and globals that live at the present moment.

Objects below 64 KiB are entered word by word into tables of the pages that they touch, those above into
one sorted list. A word that several objects share has a table of its eight bytes. What is stored is
the object's *identity*: the row of (kind, site) that a profile names it by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, Arena, take
from tracekit.containers.kernels.hash_table import CELLS, HashTable, cell_of, row_of
from tracekit.jit.kernel import inlined, kernel

Int = Any
"""An integer in a kernel."""

BIG = 1 << 16
WORDS = 512  # of a page
SHARED = 1 << 30  # in a word: the rest is a row of `bytes`, else it is an identity plus 1
NEAR = 64
EXTENT = np.dtype([("start", "<i8"), ("end", "<i8"), ("identity", "<i8")])
BYTES = np.dtype([("identity", "<i4", (8,))])
PAGE = np.dtype(
    [
        ("number", "<i8"),
        ("row", "<i4"),  # of `pages`, 0: none
        ("big", "<i4"),  # identity plus 1 of the big object that covers the page; NO_BIG; or SOME_BIGS: look for it
    ]
)
SOME_BIGS = 0
NO_BIG = -1
WHOLE = -1
MIXED = -2
FORGOTTEN = 1 << 60
"""The number of no page."""

# Elements of Objects.control.
FREE_BYTES = 0  # the first free row of `bytes`, 0: none
LAST_BIG = 1  # the big object that was found last
CONTROL = 2
"""How many there are."""


class Objects(NamedTuple):
    """The live objects of the process."""

    pages: HashTable  # by page number
    words: NDArray[np.int32]  # WORDS for each row of `pages`
    bytes: Arena  # BYTES: identity plus 1 of each byte of a shared word; in a free row, the next free row first
    bigs: Arena  # EXTENT, ascending, disjoint, from row 1 on
    near: NDArray[Any]  # PAGE: those that were asked for lately, by the lower bits of their numbers
    control: NDArray[np.int64]


@inlined
def identity_at(objects: Any, address: Any) -> Any:
    """The identity of the object that holds `address`, or 0, which stands for unknown memory."""
    number = address >> 12
    page = objects.near[np.uint64(number & (NEAR - 1))]
    if page.number != number:
        _come_near(objects, page, number)
    if page.row != 0:
        word = np.int64(objects.words[np.uint64(page.row * WORDS + ((address >> 3) & (WORDS - 1)))])
        if word & SHARED:
            word = np.int64(objects.bytes.rows[np.uint64(word ^ SHARED)].identity[address & 7])
        if word > 0:
            return word - 1
    if page.big == NO_BIG:
        return np.int64(0)
    if page.big != SOME_BIGS:
        return np.int64(page.big - 1)
    return np.int64(_big_at(objects.bigs, objects.control, address))


@inlined
def words_of_page(objects: Any, address: Any) -> Any:
    """What a page says of all its bytes; ``identity_at`` has just looked at it.

    WHOLE: they are in one object, or in none. MIXED: nothing. Else the first of its 512 elements of ``objects.words``;
    one that is above 0, and not SHARED, is the identity of the object of all bytes of that word, plus 1.
    """
    page = objects.near[np.uint64((address >> 12) & (NEAR - 1))]
    if page.row != 0:
        return np.int64(page.row * WORDS)
    return np.int64(WHOLE if page.big != SOME_BIGS else MIXED)


@kernel
def _come_near(objects: Objects, page: Any, number: Int) -> None:
    """Describe the page `number` in `page`."""
    start, end = number << 12, (number + 1) << 12
    bigs, count = objects.bigs.rows, objects.bigs.control[USED]
    after = np.int64(_big_after(bigs, count, start))
    page.number = number
    page.row = _page(objects.pages, number)
    page.big = NO_BIG
    if after > 1 and bigs[after - 1].end >= end:
        page.big = bigs[after - 1].identity + 1
    elif (after > 1 and bigs[after - 1].end > start) or (after < count and bigs[after].start < end):
        page.big = SOME_BIGS


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


@inlined
def place(objects: Any, start: Any, end: Any, identity: Any) -> None:
    """Say that the bytes start .. end - 1 belong to `identity`, or to nothing if it is -1."""
    number = start >> 12
    page = objects.near[np.uint64(number & (NEAR - 1))]
    if page.number == number == (end - 1) >> 12 and page.row != 0 and page.big == NO_BIG:
        _fill(objects.words, objects.bytes, objects.control, np.int64(page.row), number, start, end, identity + 1)
    else:
        _place(objects, start, end, identity)


@kernel
def _place(objects: Objects, start: Int, end: Int, identity: Int) -> None:
    """Say that the bytes start .. end - 1, in any pages, belong to `identity` (int64), or to nothing if it is -1."""
    pages, bigs = objects.pages, objects.bigs
    small = end - start < BIG and identity >= 0
    content = identity + 1 if small else np.int64(0)
    first, last = start >> 12, (end - 1) >> 12
    if last - first < pages.control[USED] or small:
        for number in range(first, last + 1):
            row: Any = np.int64(row_of(pages, np.uint64(number))) if small else _page(pages, number)
            if row != 0:
                _fill(objects.words, objects.bytes, objects.control, row, number, start, end, content)
                _come_near(objects, objects.near[np.uint64(number & (NEAR - 1))], number)
    else:  # fewer pages exist than the range has
        for row in range(1, pages.control[USED]):
            page = np.int64(pages.rows[row].key)
            if first <= page <= last:
                _fill(objects.words, objects.bytes, objects.control, row, page, start, end, 0)
    count = bigs.control[USED]
    if count > 1 and start < bigs.rows[count - 1].end and bigs.rows[1].start < end:
        _remove_bigs(bigs.rows, bigs.control, start, end)
        _forget_near(objects.near)
    if identity >= 0 and not small:
        _insert_big(bigs.rows, bigs.control, start, end, identity)
        _forget_near(objects.near)


@kernel
def _forget_near(near: Any) -> None:
    for way in range(NEAR):
        near[way].number = FORGOTTEN


@kernel
def _fill(words: Any, tables: Any, control: Any, row: Int, number: Int, start: Int, end: Int, content: Int) -> None:
    """Set the words and bytes of one page that lie in start .. end - 1."""
    low, high = max(start - (number << 12), 0), min(end - (number << 12), 4096)
    first = np.uint64(row * WORDS)
    word, stop = (low + 7) >> 3, high >> 3
    if stop < word:  # inside one word
        _fill_part(words, tables, control, first + np.uint64(stop), low & 7, high & 7, content)
        return
    if low & 7 != 0:
        _fill_part(words, tables, control, first + np.uint64(word - 1), low & 7, 8, content)
    if high & 7 != 0:
        _fill_part(words, tables, control, first + np.uint64(stop), 0, high & 7, content)
    shared = np.int32(0)
    for place in range(first + np.uint64(word), first + np.uint64(stop)):  # no branches: LLVM makes vectors of both
        shared |= words[place]
    if shared & SHARED:
        _give_all(words, tables.rows, control, first + np.uint64(word), first + np.uint64(stop))
    for place in range(first + np.uint64(word), first + np.uint64(stop)):
        words[place] = content


@kernel
def _give_all(words: Any, tables: Any, control: Any, first: Int, behind: Int) -> None:
    """The tables of the shared words among words first .. behind - 1 are free."""
    for place in range(first, behind):
        old = np.int64(words[place])
        if old & SHARED:
            _give_bytes(tables, control, old ^ SHARED)


@inlined
def _fill_part(words: Any, tables: Any, control: Any, place: Any, first: Any, last: Any, content: Any) -> None:
    """Set the bytes first .. last - 1 of a word, but not all of them."""
    old = np.int64(words[place])
    if old != content:
        words[place] = _share(tables, control, old, first, last, content)


@kernel
def _share(tables: Arena, control: Any, old: Int, first: Int, last: Int, content: Int) -> int:
    """What stands in a word that held `old`, after its bytes first .. last - 1 are `content`."""
    table = old ^ SHARED if old & SHARED else np.int64(_take_bytes(tables, control))
    bytes = tables.rows[np.uint64(table)].identity
    differing = np.int64(0)
    for byte in range(8):  # no branches: LLVM makes a vector of it
        has = bytes[byte] if old & SHARED else old
        has = content if first <= byte < last else has
        differing |= has ^ content
        bytes[byte] = has
    if differing != 0:
        return int(table | SHARED)
    _give_bytes(tables.rows, control, table)
    return int(content)


@inlined
def _take_bytes(tables: Any, control: Any) -> Any:
    row = control[FREE_BYTES]
    if row != 0:
        control[FREE_BYTES] = np.int64(tables.rows[row].identity[0])
        return row
    return np.int64(take(tables, 1))


@inlined
def _give_bytes(tables: Any, control: Any, row: Any) -> None:
    tables[row].identity[0] = control[FREE_BYTES]
    control[FREE_BYTES] = row


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
