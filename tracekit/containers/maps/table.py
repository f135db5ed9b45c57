"""The table behind every reduction map: open addressing, filled from a buffer, growing by itself.

A cell is a tag (0: free), the words of the key if they are more than one, and the words of the value. A cell's place
comes from the upper bits of its tag, then onwards. One more cell, at the end, is that of the single-word key of tag 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.paging import ADVISES, HUGE_PAGES, advise
from tracekit.containers.kernels.prefetch import prefetch
from tracekit.containers.maps.exact import ROWS_ADDRESS, ROWS_SIZE
from tracekit.containers.maps.folds import fold
from tracekit.containers.maps.keys import ONE, tag_of
from tracekit.containers.maps.memory import allocate_zeroed, give_back, words_at
from tracekit.jit.kernel import inlined, kernel

ZERO = np.uint64(0)
WORD = np.uint64(8)

# Words of `control`; those behind them are exact.py's.
FILLED = 0  # words in the buffer
USED = 1  # keys in the table
SHIFT = 2  # how far a tag is shifted to give its cell
ADDRESS = 3  # where the cells are
SIZE = 4  # of how many words they consist
CONTROL = 8
"""How many there are."""

AHEAD = 12
"""So many insertions before its turn a cell is asked for: about a cache miss's worth of insertions."""

IN_CACHE = np.uint64(1 << 15)
"""Cells of so many words (256 KB) or fewer are not worth asking for."""

ROOM = np.uint64(2)
"""A table has at least twice as many cells as keys."""

FULL_HUGE_PAGE = np.uint64(1 << 21)


@inlined
def record_words(table: Any) -> Any:
    """Words of an insertion in the buffer: the key's, and one of the value if the map has values."""
    return np.uint64(len(table.key) + min(len(table.value), 1))


@inlined
def cell_words(table: Any) -> Any:
    """Words of a cell."""
    return np.uint64(value_offset(table) + len(table.value))


@inlined
def value_offset(table: Any) -> Any:
    """Where in a cell the value begins."""
    return 1 if len(table.key) == 1 else 1 + len(table.key)


@inlined
def same_key(table: Any, cells: Any, place: Any, source: Any, first: Any) -> Any:
    """Whether the cell at `place`, whose tag is that of the key at ``source[first]``, is that key's."""
    same = True
    if len(table.key) > 1:
        for i in range(len(table.key)):
            same &= cells[place + np.uint64(1 + i)] == source[first + np.uint64(i)]
    return same


@inlined
def cell_of(table: Any, cells: Any, end: Any, shift: Any, tag: Any, source: Any, first: Any) -> Any:
    """The place of the cell of a key, or of the free cell where it belongs."""
    if len(table.key) == 1 and tag == ZERO:
        return end
    place = (tag >> shift) * cell_words(table)
    while cells[place] != ZERO and not (cells[place] == tag and same_key(table, cells, place, source, first)):
        place += cell_words(table)
        if place == end:
            place = ZERO
    return place


@inlined
def claim(table: Any, cells: Any, end: Any, shift: Any, tag: Any, source: Any, first: Any) -> Any:
    """The place of the cell of the key at ``source[first]``, made if need be, and whether it is new."""
    place = cell_of(table, cells, end, shift, tag, source, first)
    new = cells[place] == ZERO
    if new:
        cells[place] = max(tag, ONE)
        if len(table.key) > 1:
            for i in range(len(table.key)):
                cells[place + np.uint64(1 + i)] = source[first + np.uint64(i)]
    return place, new


@inlined
def take(table: Any, cells: Any, end: Any, shift: Any, tag: Any, source: Any, first: Any) -> Any:
    """Insert the key and value at ``source[first]``; 1 if the key is new, else 0."""
    place, new = claim(table, cells, end, shift, tag, source, first)
    fold(table, cells, place + np.uint64(value_offset(table)), new, source, first + np.uint64(len(table.key)))
    return np.uint64(new)


@kernel
def drain(table: Any) -> None:
    """Empty the buffer into the cells."""
    control, buffer, width = table.control, table.buffer, record_words(table)
    filled = control[FILLED]
    reserve(table, filled // width)
    cells, shift, used = words_at(control[ADDRESS], control[SIZE]), control[SHIFT], control[USED]
    end = control[SIZE] - cell_words(table)
    at = ZERO
    if control[SIZE] > IN_CACHE:
        while at < filled:
            later = tag_of(table.key, buffer, at + np.uint64(AHEAD) * width)
            prefetch(cells, (later >> shift) * cell_words(table))
            used += take(table, cells, end, shift, tag_of(table.key, buffer, at), buffer, at)
            at += width
    else:
        while at < filled:
            used += take(table, cells, end, shift, tag_of(table.key, buffer, at), buffer, at)
            at += width
    control[USED] = used
    control[FILLED] = ZERO


@inlined
def reserve(table: Any, more: Any) -> None:
    """Make room for `more` keys. Raises MemoryError if there is no memory for them."""
    if (table.control[USED] + more + ONE) * ROOM * cell_words(table) > table.control[SIZE]:
        _grow(table, more)


@kernel
def _grow(table: Any, more: Any) -> None:
    """Move the cells to a table that has room for `more` keys, of a power of two of cells, at least 8, and one."""
    control, stride = table.control, cell_words(table)
    number, shift = np.uint64(8), np.uint64(61)
    while number < (control[USED] + more + ONE) * ROOM:
        number *= np.uint64(2)
        shift -= ONE
    size = (number + ONE) * stride
    address = allocate_zeroed(size, WORD)
    if address == 0:
        raise MemoryError("No memory is left for the table of a reduction map.")
    if ADVISES and size * WORD >= np.uint64(2) * FULL_HUGE_PAGE:
        start = (np.uint64(address) + FULL_HUGE_PAGE - ONE) & ~(FULL_HUGE_PAGE - ONE)
        advise(start, np.uint64(address) + size * WORD - start & ~np.uint64(4095), HUGE_PAGES)
    cells = words_at(address, size)
    if control[SIZE]:
        old = words_at(control[ADDRESS], control[SIZE])
        _copy_cells(table, old, control[SIZE] - stride, cells, size - stride, shift)
        give_back(control[ADDRESS])
    control[ADDRESS], control[SIZE], control[SHIFT] = address, size, shift


@inlined
def _copy_cells(table: Any, old: Any, old_end: Any, new: Any, new_end: Any, shift: Any) -> None:
    """Copy cells to where their tags put them; the last cells, at `old_end` and `new_end`, are those of tag 0."""
    stride, at = cell_words(table), ZERO
    while at <= old_end:
        if old[at] != ZERO:
            place = new_end
            if at != old_end:
                place = (old[at] >> shift) * stride
                while new[place] != ZERO:
                    place += stride
                    if place == new_end:
                        place = ZERO
            for i in range(cell_words(table)):
                new[place + np.uint64(i)] = old[at + np.uint64(i)]
        at += stride


@kernel
def release(control: Any) -> None:
    """Give the memory of a map back."""
    if control[SIZE]:
        give_back(control[ADDRESS])
    if control[ROWS_SIZE]:
        give_back(control[ROWS_ADDRESS])
