"""Clearing shadow memory, and noting which of its pages a store changes: both in every stream (shadow.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.initial_pages import empty_pages
from tracekit.containers.kernels.shadow import (
    LAST_PAGE,
    NOWHERE,
    PAGE_BITS,
    PAGES,
    SCRATCH,
    STREAM,
    STREAMS,
    Shadow,
    divide,
    page_of,
    parts_needed,
    turn_table,
    word_of,
    word_to_write,
)
from tracekit.containers.kernels.zeros import is_zero, make_zero
from tracekit.jit.kernel import inlined, kernel

FEW = 32
"""Fewer whole words are cleared without a call: most that is cleared are local variables of a few words."""


@inlined
def clear(memory: Any, address: Any, size: Any) -> None:
    """Make all that is known of `size` bytes zero, in every stream."""
    low = address & 4095
    if memory.control[STREAMS] == 1 and 0 < size <= 4096 - low:
        page = np.int64(_page_to_clear(memory, memory.initial, address, size))
        if page != NOWHERE:
            if (low | size) & 7 == 0 and size < 8 * FEW:
                _clear_few(memory, np.uint64(word_of(page, address)), size >> 3)
            elif (low & 7) + size > 8 or not _clear_one(memory, word_of(page, address), low & 7, size):
                clear_page(memory.rows, memory.granules, page, low, low + size)
    elif size > 0:
        _take_over_range(memory, memory.initial, address, size)
        clear_range(memory, address, address + size - 1)


@inlined
def _page_to_clear(memory: Any, initial: Any, address: Any, size: Any) -> Any:
    """The page that bytes lie in; NOWHERE: none is, or was before the segment."""
    page = page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS))
    if initial is not None and page == NOWHERE:
        _take_over(memory, initial, address, address + size - 1)
        page = page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS))
    return page


@inlined
def _take_over_range(memory: Any, initial: Any, address: Any, size: Any) -> None:
    """See that what pages held before the segment, and have not yet taken over, is cleared as well."""
    if initial is not None:
        _take_over(memory, initial, address, address + size - 1)


@kernel
def _take_over(memory: Shadow, initial: Any, address: Any, end: Any) -> None:
    """Make the pages of which bytes address .. end are a part; those that are covered are known to be empty."""
    first, last = np.uint64(address) >> np.uint64(PAGE_BITS), np.uint64(end) >> np.uint64(PAGE_BITS)
    control, present = memory.control, memory.control[STREAM]
    inner, behind = first, last
    if address & 4095 != 0:
        inner += np.uint64(1)
    if end & 4095 == 4095:
        behind += np.uint64(1)
    if inner < behind:
        empty_pages(initial, inner, behind - np.uint64(1))
    for place in range(control[STREAMS]):
        turn_table(memory.table, control, memory.streams[place])
        if first < inner:
            word_to_write(memory, address)
        if last >= behind and (last > first or first >= inner):
            word_to_write(memory, end)
    turn_table(memory.table, control, present)


@inlined
def _clear_words(memory: Any, word: Any, words: Any) -> Any:
    """Make whole words zero; returns the one behind them."""
    make_zero(memory.granules, word, words)
    make_zero(memory.rows, np.uint64(memory.granules.size) + word, words)
    return word + np.uint64(words)


@inlined
def _clear_few(memory: Any, word: Any, words: Any) -> None:
    """Make fewer than FEW whole words zero: no loop, for stores of constant width take no call."""
    if words & 16:
        word = _clear_words(memory, word, 16)
    if words & 8:
        word = _clear_words(memory, word, 8)
    if words & 4:
        word = _clear_words(memory, word, 4)
    if words & 2:
        word = _clear_words(memory, word, 2)
    if words & 1:
        _clear_words(memory, word, 1)


@inlined
def _clear_one(memory: Any, word: Any, first: Any, size: Any) -> Any:
    """Make bytes of one word zero if they have none or one row to themselves; returns whether that is so."""
    granules = np.int64(memory.granules[np.uint64(word)])
    row = memory.granules.size + word
    if granules == 0:
        return is_zero(memory.rows, row)
    if size != 8 >> granules or first & (size - 1) != 0:
        return False
    make_zero(memory.rows, (row << granules) + (first >> (3 - granules)), 1)
    return True


@kernel
def clear_range(memory: Shadow, address: Any, end: Any) -> None:
    """Make what is known of the bytes address .. end zero, in every stream, in no more steps than there are pages."""
    first, last = np.uint64(address) >> np.uint64(PAGE_BITS), np.uint64(end) >> np.uint64(PAGE_BITS)
    control = memory.control
    present = control[STREAM]
    if np.int64(last - first) * control[STREAMS] < control[PAGES]:
        for place in range(control[STREAMS]):
            turn_table(memory.table, control, memory.streams[place])
            number = first
            while number <= last:
                page = page_of(memory, number)
                if page != NOWHERE:
                    _clear_in(memory, page, number, first, last, address, end)
                number += np.uint64(1)
        turn_table(memory.table, control, present)
    else:
        for page in range(SCRATCH + 1, control[PAGES]):
            number = np.uint64(memory.pages[page].number)
            if first <= number <= last:
                _clear_in(memory, page, number, first, last, address, end)


@inlined
def _clear_in(memory: Any, page: Any, number: Any, first: Any, last: Any, address: Any, end: Any) -> None:
    """Make those of the bytes address .. end zero that lie in `page`, whose number is `number`, of first .. last."""
    low, high = np.int64(0), np.int64(4096)
    if number == first:
        low = address & 4095
    if number == last:
        high = (end & 4095) + 1
    clear_page(memory.rows, memory.granules, page, low, high)


@kernel
def clear_page(rows: Any, granules: Any, page: Any, low: Any, high: Any) -> None:
    """Make the bytes low .. high - 1 of a page zero, 0 <= low < high <= 4096."""
    base = page << 9
    word, stop = base + ((low + 7) >> 3), base + (high >> 3)
    if stop < word:  # inside one word
        _clear_part(rows, granules, stop, low & 7, high & 7)
        return
    if low & 7 != 0:
        _clear_part(rows, granules, word - 1, low & 7, 8)
    if high & 7 != 0:
        _clear_part(rows, granules, stop, 0, high & 7)
    make_zero(granules, word, stop - word)
    make_zero(rows, granules.size + word, stop - word)


@kernel
def _clear_part(rows: Any, granules: Any, word: Any, first: Any, last: Any) -> None:
    """Make the bytes first .. last - 1 of one word zero, and divide it for that if need be."""
    needed = parts_needed(first, last)
    if granules[word] < needed:
        if granules[word] == 0 and is_zero(rows, granules.size + word):
            return  # a word without history stays whole
        divide(rows, granules, word, needed)
    parts = 3 - np.int64(granules[word])
    start = (granules.size + word) << (3 - parts)
    make_zero(rows, start + (first >> parts), (last - first) >> parts)


@inlined
def dirty_pages(memory: Any, dirty: Any, address: Any, size: Any) -> None:
    """Set the elements of `dirty`, u1 (pages,), of the pages that `size` bytes, at least 1, lie in, in every stream."""
    if (
        memory.control[STREAMS] == 1
        and (np.uint64(address) ^ np.uint64(address + size - 1)) >> np.uint64(PAGE_BITS) == 0
    ):
        dirty[np.uint64(page_of(memory, np.uint64(address) >> np.uint64(PAGE_BITS)))] = 1
    else:
        _dirty_range(memory, dirty, address, address + size - 1)


@kernel
def _dirty_range(memory: Shadow, dirty: Any, address: Any, end: Any) -> None:
    """`dirty_pages` of the bytes address .. end, in no more steps than there are pages.

    A store that a damaged trace claims goes on at address 0 behind the last one, as that of a word does.
    """
    first = np.uint64(address) >> np.uint64(PAGE_BITS)
    more = ((np.uint64(end) >> np.uint64(PAGE_BITS)) - first) & LAST_PAGE
    control, present = memory.control, memory.control[STREAM]
    if np.int64(more) * control[STREAMS] < control[PAGES]:
        for place in range(control[STREAMS]):
            turn_table(memory.table, control, memory.streams[place])
            for number in range(more + np.uint64(1)):
                dirty[page_of(memory, (first + np.uint64(number)) & LAST_PAGE)] = 1
        turn_table(memory.table, control, present)
    else:
        for page in range(SCRATCH + 1, control[PAGES]):
            if (np.uint64(memory.pages[page].number) - first) & LAST_PAGE <= more:
                dirty[page] = 1
