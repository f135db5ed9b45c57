"""Shadow memory of any metadata (PROMPT, 5.2), byte by byte exact, word by word while it can; shadow.py makes one.

Callbacks of modules use four functions, the last of clearing.py. The first three are for loops; rows are numbers for
``memory.rows``:

    for row in reading(memory, address, size):    # what is known of the bytes; writes nothing, makes nothing
    for row in changing(memory, address, size):   # the same, to be changed: no row reaches beyond the bytes
    for row in writing(memory, address, size):    # what the bytes shall have from now on: set every field; a row still
                                                  # has what was known, or zeros where a divided word becomes whole
    clear(memory, address, size)                  # all is zero again, in every stream

`reading_range` and `writing_range` give the same rows many at a time, for the adjoining accesses of a run.

Addresses and sizes are int64 (an address above 2**63 is negative) and count bytes; rows, words and pages are int64
numbers. Without room for another page, writes go to the rows of SCRATCH, and `arena.check` raises TracekitError.

The layout. A page is 4 KiB of one stream, its 512 words have consecutive numbers. ``granules[word]`` says in how many
parts the word is divided: 1 << 0 to 1 << 3. Rows lie in four planes: those of whole words, of halves, of quarters, and
of bytes; where a row lies needs no pointer: with G words in all, it is ((G + word) << granules) + part. Only the parts
of the planes that are used take memory. A word is divided when an access changes or writes a part of it, and whole
again when a write covers it. Words are divided one by one, for in the records of a program a byte-sized tag stands
beside words that are never read but whole.

Pages are found in a table by their number; page 0 stands for all that were never written, and is all zeros. Pages that
the table does not reach (of the 17th stream, or where the system gave little address space) are found by hashing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, limited
from tracekit.containers.kernels.hash_table import GOLDEN
from tracekit.containers.kernels.initial_pages import begin_page
from tracekit.containers.kernels.rows import rows_of
from tracekit.containers.kernels.zeros import make_zero
from tracekit.jit.kernel import inlined, kernel

PAGE_BITS = 12
LAST_PAGE = np.uint64((1 << (64 - PAGE_BITS)) - 1)
WORDS = 512  # of a page
DIRECT = 1 << 36
"""Pages of a stream that its table reaches: all of a user's 48-bit addresses."""

PAGE = np.dtype([("number", "<i8"), ("stream", "<i8")])
STREAM_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
"""An odd number whose multiples differ in all bits that a cell's place is taken from (xxHash's second prime)."""
# Pages that are none.
NOWHERE = 0  # what was never written
SCRATCH = 1  # where writes go once there is no more room

# Elements of Shadow.control; the first are those of an arena.
PAGES = USED
FIRST = 2  # where the present stream's table begins
REACH = 3  # how many pages the present stream's table reaches
STREAM = 4  # the present stream
STREAMS = 5  # how many streams there are
FAR = 6  # pages found by hashing
FAR_CELLS = 7  # cells for them, a power of two
EACH = 8  # how many pages the table of a stream has
CONTROL = 9
"""How many there are."""


@limited
class Shadow(NamedTuple):
    """Shadow memory; ``rows`` is the metadata, the rest is found out by the functions of this module.

    With P pages at most and G = 512 P words: `rows` (16 G,) of the metadata's dtype, `granules` (G,), `pages` (P,),
    `far` (8 P,), `control` (CONTROL,). All of it is reserved address space, which takes memory when it is written.
    """

    rows: NDArray[Any]
    granules: NDArray[np.uint8]  # [word]: log2 of the parts that it is divided into
    table: NDArray[np.uint32]  # [stream * its pages + page number]: page
    pages: NDArray[Any]  # PAGE
    far: NDArray[np.uint32]  # open addressing; the cells are those from number FAR_CELLS on, so they can double
    streams: NDArray[np.int64]  # that have been entered
    control: NDArray[np.int64]
    initial: Any = None  # in a segment of the trace: what pages held before (initial_pages.py)


# -- pages -----------------------------------------------------------------------------------------


@inlined
def page_of(memory: Any, number: Any) -> Any:
    """The page of the present stream with this number (u8), or NOWHERE."""
    if number < np.uint64(memory.control[REACH]):
        return np.int64(memory.table[number + np.uint64(memory.control[FIRST])])
    return find_far(memory.pages, memory.far, memory.control, number, memory.control[STREAM])


@inlined
def cell_of(pages: Any, far: Any, cells: Any, number: Any, stream: Any) -> Any:
    """The cell that holds a page, or the free one where it belongs."""
    mask = cells - 1
    mixed = (number ^ (np.uint64(stream) * STREAM_FACTOR)) * GOLDEN  # streams share pages: each has to lie elsewhere
    place = np.int64(mixed >> np.uint64(32)) & mask
    while far[cells + place] != 0:
        page = pages[far[cells + place]]
        if page.number == np.int64(number) and page.stream == stream:
            break
        place = (place + 1) & mask
    return np.uint64(cells + place)


@kernel
def find_far(pages: Any, far: Any, control: Any, number: Any, stream: Any) -> Any:
    """The page of `stream` with this number (u8), found by hashing, or NOWHERE.

    pages, far, control: those of the Shadow, as in the kernels below, which take no more of it than they need.
    """
    return np.int64(far[cell_of(pages, far, control[FAR_CELLS], number, stream)])


@kernel
def make_page(table: Any, pages: Any, far: Any, control: Any, number: Any) -> int:
    """Make a page of the present stream; without room: SCRATCH, and the arena's sign that it is exhausted."""
    page = control[PAGES]
    if page >= pages.size:
        control[EXHAUSTED] = 1
        return SCRATCH
    control[PAGES] = page + 1
    pages[page].number = np.int64(number)
    pages[page].stream = control[STREAM]
    if number < np.uint64(control[REACH]):
        table[number + np.uint64(control[FIRST])] = page
        return int(page)
    far[cell_of(pages, far, control[FAR_CELLS], number, control[STREAM])] = page
    control[FAR] += 1
    if control[FAR] * 2 > control[FAR_CELLS]:
        old = control[FAR_CELLS]
        control[FAR_CELLS] = old * 2
        for cell in range(old, old * 2):
            if far[cell] != 0:
                moved = pages[far[cell]]
                far[cell_of(pages, far, old * 2, np.uint64(moved.number), moved.stream)] = far[cell]
    return int(page)


@inlined
def turn_to(memory: Any, stream: Any) -> None:
    """From now on the functions of this module speak of `stream`: for a shadow that has a history for each."""
    if memory.control[STREAM] != stream:
        enter(memory, stream)


@kernel
def enter(memory: Shadow, stream: Any) -> None:
    """Make `stream`, u4, the present one, with a table if it is new; EXHAUSTED is set if there is no room for it."""
    control = memory.control
    entered = False
    for place in range(control[STREAMS]):
        if memory.streams[place] == stream:
            entered = True
    if not entered and control[STREAMS] == memory.streams.size:
        control[EXHAUSTED] = 1
    elif not entered:
        memory.streams[control[STREAMS]] = stream
        control[STREAMS] += 1
    turn_table(memory.table, control, stream)


@inlined
def turn_table(table: Any, control: Any, stream: Any) -> None:
    """`turn_to`, with the fields of a shadow memory: for a `stream` that has been entered."""
    control[STREAM] = stream
    control[FIRST] = min(stream * control[EACH], table.size)
    control[REACH] = min(control[EACH], table.size - control[FIRST])


@kernel
def make_pages(table: Any, pages: Any, far: Any, control: Any, numbers: Any, streams: Any) -> None:
    """Make pages of these numbers and streams (n,) each, which have been entered, one after another.

    The present stream is that of the last one then.
    """
    for k in range(len(numbers)):
        turn_table(table, control, streams[k])
        make_page(table, pages, far, control, np.uint64(numbers[k]))


# -- rows ------------------------------------------------------------------------------------------


@inlined
def word_of(page: Any, address: Any) -> Any:
    """The number of the word of a page that an address lies in."""
    return (page << 9) + ((address >> 3) & (WORDS - 1))


@inlined
def _span(memory: Any, word: Any, granules: Any, first: Any, taken: Any) -> Any:
    """First and last row of `taken` bytes of a word from its byte `first` on, and `taken`."""
    row = (memory.granules.size + word) << granules
    parts = 3 - granules
    return row + (first >> parts), row + ((first + taken - 1) >> parts), taken


@inlined
def read_word(memory: Any, address: Any, left: Any) -> Any:
    """First and last row of the first word of the `left` bytes at `address`, and how many of them lie in it."""
    first = address & 7
    word = word_of(page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS)), address)
    return _span(memory, word, np.int64(memory.granules[np.uint64(word)]), first, min(left, 8 - first))


@inlined
def only_row(memory: Any, address: Any, size: Any) -> Any:
    """The row of bytes that have one alone, as most accesses of a program have, and log2 of the parts of its word.

    The row is -1 if they may have several.
    """
    first = address & 7
    word = word_of(page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS)), address)
    granules = np.int64(memory.granules[np.uint64(word)])
    low, high, _ = _span(memory, word, granules, first, size)
    return (low if low == high and size > 0 and first + size <= 8 else np.int64(-1)), granules


@inlined
def first_of_two(memory: Any, address: Any, size: Any) -> Any:
    """The first of the two rows of bytes that lie in two whole words of a page, which are neighbours; -1 if not."""
    word = word_of(page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS)), address)
    last = (address & 7) + size - 1
    if (
        last >> 3 != 1
        or (address >> 3) & (WORDS - 1) == WORDS - 1
        or memory.granules[np.uint64(word)] | memory.granules[np.uint64(word + 1)] != 0
    ):
        return np.int64(-1)
    return memory.granules.size + word


@inlined
def word_to_write(memory: Any, address: Any) -> Any:
    """The number of an address's word in the present stream, whose page is made if need be; SCRATCH's without room."""
    number = np.uint64(address) >> np.uint64(PAGE_BITS)
    page = page_of(memory, number)
    if page == NOWHERE:
        page = np.int64(make_page(memory.table, memory.pages, memory.far, memory.control, number))
        _begin_page(memory, memory.initial, page, number)
    return word_of(page, address)


@inlined
def _begin_page(memory: Any, initial: Any, page: Any, number: Any) -> None:
    if initial is not None and page != SCRATCH:  # Numba compiles it for segments alone
        begin_page(memory.rows, memory.granules, initial, page, number, memory.control[STREAM])


@inlined
def parts_needed(first: Any, behind: Any) -> Any:
    """log2 of the parts that a word has at least if one begins at its byte `first` and one ends before `behind`."""
    either = first | behind
    if either & 7 == 0:
        return 0
    if either & 3 == 0:
        return 1
    if either & 1 == 0:
        return 2
    return 3


@inlined
def change_word(memory: Any, address: Any, left: Any) -> Any:
    """As `read_word`, after the word is divided so that no row reaches beyond the bytes; its page is made."""
    first = address & 7
    taken = min(left, 8 - first)
    word = word_to_write(memory, address)
    needed = parts_needed(first, first + taken)
    if memory.granules[np.uint64(word)] < needed:
        divide(memory.rows, memory.granules, word, needed)
    return _span(memory, word, np.int64(memory.granules[np.uint64(word)]), first, taken)


@inlined
def write_word(memory: Any, address: Any, left: Any) -> Any:
    """As `change_word`, but a word that is covered becomes whole; its row is then all zeros."""
    if address & 7 != 0 or left < 8:
        return change_word(memory, address, left)
    word = word_to_write(memory, address)
    row = memory.granules.size + word
    if memory.granules[np.uint64(word)] != 0:
        memory.granules[np.uint64(word)] = 0
        memory.rows[np.uint64(row)] = memory.rows[np.uint64(0)]  # what it was before it was divided says nothing
    return row, row, min(left, 8)


@kernel
def divide(rows: Any, granules: Any, word: Any, needed: Any) -> None:
    """Divide a word into 1 << needed parts; each begins with the history of the part that it was in.

    rows, granules: those of the Shadow; the word has fewer parts so far.
    """
    had = np.int64(granules[word])
    old = (granules.size + word) << had
    new = (granules.size + word) << needed
    for part in range(1 << needed):
        rows[new + part] = rows[old + (part >> (needed - had))]
    granules[word] = needed


@inlined
def parts_of(memory: Any, row: Any) -> Any:
    """log2 of the parts of the word that a row of the shadow belongs to."""
    whole = np.uint64(2 * memory.granules.size)
    place = np.uint64(row)
    return np.int64(place >= whole) + np.int64(place >= whole * np.uint64(2)) + np.int64(place >= whole * np.uint64(4))


@inlined
def touch_word(memory: Any, address: Any, left: Any) -> Any:
    """As `read_word`, but their page is made."""
    first = address & 7
    word = word_to_write(memory, address)
    return _span(memory, word, np.int64(memory.granules[np.uint64(word)]), first, min(left, 8 - first))


reading = rows_of(read_word)
"""(memory, address, size): the rows of `size` bytes from `address`, to be read, for a `for` loop; none is made."""
touching = rows_of(touch_word)
"""(memory, address, size): the rows of these bytes, as `reading` gives them, of pages that are made."""
changing = rows_of(change_word)
"""(memory, address, size): the rows of these bytes, to be changed: none reaches beyond them."""
writing = rows_of(write_word)
"""(memory, address, size): the rows that these bytes have from now on; the loop sets every field of each."""


# -- ranges of rows --------------------------------------------------------------------------------


@inlined
def alike(column: Any, first: Any, most: Any) -> Any:
    """How many of `most` elements of a column of integers, from `first` on, are equal to the first of them."""
    value, found = column[np.uint64(first)], 1
    while found + 8 <= most:
        place = np.uint64(first + found)
        other = (column[place] ^ value) | (column[place + np.uint64(1)] ^ value)
        other |= (column[place + np.uint64(2)] ^ value) | (column[place + np.uint64(3)] ^ value)
        other |= (column[place + np.uint64(4)] ^ value) | (column[place + np.uint64(5)] ^ value)
        other |= (column[place + np.uint64(6)] ^ value) | (column[place + np.uint64(7)] ^ value)
        if other != 0:
            break
        found += 8
    while found < most and column[np.uint64(first + found)] == value:
        found += 1
    return found


@inlined
def reading_range(memory: Any, address: Any, left: Any) -> Any:
    """As many of the `left` bytes at `address` as have consecutive rows: the first and last row, and how many bytes.

    For the accesses of a run that adjoin one another: what is known of all of them takes one look for each word, not
    one for each access. The rows are those that `reading` gives of these bytes; call it again for the bytes behind.
    """
    word = word_of(page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS)), address)
    granules, first = np.int64(memory.granules[np.uint64(word)]), address & 7
    most = min((first + left + 7) >> 3, WORDS - (word & (WORDS - 1)))
    words = alike(memory.granules, word, most)
    return _span(memory, word, granules, first, min(left, 8 * words - first))


@inlined
def writing_range(memory: Any, address: Any, left: Any) -> Any:
    """As `reading_range`, to write: every word that is covered becomes whole, others are divided at their ends.

    Set every field of these rows, as with `writing`, whose rows they are.
    """
    if address & 7 != 0 or left < 8:
        return change_word(memory, address, left)
    word = word_to_write(memory, address)
    words = min(left >> 3, WORDS - (word & (WORDS - 1)))
    row = memory.granules.size + word
    done = 0
    while done < words:
        same = alike(memory.granules, word + done, words - done)
        if memory.granules[np.uint64(word + done)] != 0:
            make_zero(memory.granules, word + done, same)
            make_zero(memory.rows, row + done, same)  # what it was before it was divided says nothing
        done += same
    return row, row + words - 1, 8 * words


@inlined
def fill(memory: Any, address: Any, size: Any, value: Any) -> None:
    """Set the rows of `size` bytes at `address` to a number, in a shadow whose metadata is one."""
    done = np.int64(0)
    while done < size:
        first, last, taken = writing_range(memory, address + done, size - done)
        for row in range(first, last + 1):
            memory.rows[np.uint64(row)] = value  # an index that could count from the end would not be a vector's
        done += taken
