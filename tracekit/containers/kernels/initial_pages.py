"""What a shadow memory held before a segment of the trace began: taken over page by page, as pages are touched.

A shadow with ``initial`` is that of a segment. Its rows have the fields ``store`` and ``stamp``: the last store before
the segment, and its clock. They have OPEN in ``store`` until something is stored there or the memory is cleared: what
else was known of the bytes before, their loads, is not here. Or nothing at all is known of what was before: then rows
are integers, and begin as ``open`` says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import USED, Arena, take
from tracekit.containers.kernels.hash_table import CELLS, HashTable, cell_of, row_of
from tracekit.jit.kernel import inlined, kernel

WORDS = 512  # of a page
OPEN = 1 << 31
"""In ``store``: there may have been loads since, before the segment."""
STREAM_SHIFT = 52
MOST_STREAMS = 1 << 12
"""Streams whose pages have keys of their own."""
MANY = 1 << 12
"""So many pages are emptied as a range."""

STORED = np.dtype([("store", "<u4"), ("reserved", "<u4"), ("stamp", "<i8")])
BLOCK = [("block", "<i8")]
RANGE = np.dtype([("first", "<u8"), ("last", "<u8")])


class Blocks(NamedTuple):
    """Contents of pages, which never change; number 0 is none."""

    rows: Arena  # STORED: those of a page's words, in order, each in its parts
    granules: NDArray[np.uint8]  # (blocks * WORDS): log2 of the parts of each word
    first: Arena  # i8, by block: its first row


class InitialPages(NamedTuple):
    """What pages held when the segment began, and which are known to be empty since."""

    blocks: Blocks | None  # None: nothing is known, and there is `open`
    pages: HashTable  # BLOCK, by page number and stream
    streams: NDArray[np.uint8]  # (MOST_STREAMS): 1 if it had begun
    emptied: HashTable  # by page number: cleared as a whole since
    ranges: Arena  # RANGE: the same of MANY pages and more
    open: Any = None  # an array of one row


@inlined
def key_of(number: Any, stream: Any) -> Any:
    """The key of a page of a stream."""
    return np.uint64(number) ^ (np.uint64(stream) << np.uint64(STREAM_SHIFT))


@inlined
def _find(table: Any, key: Any) -> Any:
    return np.int64(table.cells[cell_of(table.rows, table.cells, table.control[CELLS], np.uint64(key))])


@kernel
def begin_page(rows: Any, granules: Any, initial: InitialPages, page: Any, number: Any, stream: Any) -> None:
    """Fill the rows of a new page of a shadow, which are zero, with what they were when the segment began."""
    if stream >= initial.streams.size or initial.streams[stream] == 0 or _is_emptied(initial, number):
        return
    _open(rows, initial.open, granules.size + page * WORDS)
    _take_over(rows, granules, initial.pages, initial.blocks, page * WORDS, key_of(number, stream))


@inlined
def _open(rows: Any, opened: Any, first: Any) -> None:
    if opened is not None:  # Numba compiles one of the two
        for row in range(first, first + WORDS):
            rows[row] = opened[0]


@inlined
def _take_over(rows: Any, granules: Any, pages: Any, blocks: Any, base: Any, key: Any) -> None:
    if blocks is not None:
        found = _find(pages, key)
        if found == 0:  # nothing was ever stored there
            for word in range(granules.size + base, granules.size + base + WORDS):
                rows[word].store = np.uint32(OPEN)
        else:
            _fill(rows, granules, blocks, pages.rows[found].block, base)


@kernel
def _fill(rows: Any, granules: Any, blocks: Blocks, block: Any, base: Any) -> None:
    source = blocks.first.rows[block]
    for word in range(WORDS):
        parts = np.int64(blocks.granules[block * WORDS + word])
        granules[base + word] = parts
        row = (granules.size + base + word) << parts
        for part in range(1 << parts):
            stored = blocks.rows.rows[source]
            rows[row + part].store = np.uint32(stored.store | OPEN)
            rows[row + part].stamp = stored.stamp
            source += 1


@kernel
def _is_emptied(initial: InitialPages, number: Any) -> bool:
    if _find(initial.emptied, number) != 0:
        return True
    for place in range(1, initial.ranges.control[USED]):
        if initial.ranges.rows[place].first <= number <= initial.ranges.rows[place].last:
            return True
    return False


@kernel
def empty_pages(initial: InitialPages, first: Any, last: Any) -> None:
    """The pages numbered `first` to `last` (u8) are cleared as a whole, in all streams.

    Those that are in the shadow already are the caller's. Few are noted one by one, others as a range.
    """
    if last - first < np.uint64(MANY):
        for number in range(first, last + np.uint64(1)):
            row_of(initial.emptied, number)
        return
    added = initial.ranges.rows[take(initial.ranges, 1)]
    added.first = first
    added.last = last


@kernel
def keep_pages(blocks: Blocks, rows: Any, granules: Any, pages: Any, kept: Any) -> None:
    """Keep the rows of `pages` of a shadow of STORED, and note the block of each. pages: i8; kept: i8 by page."""
    for place in range(pages.size):
        kept[pages[place]] = _keep_page(blocks, rows, granules, pages[place])


@inlined
def _keep_page(blocks: Any, rows: Any, granules: Any, page: Any) -> Any:
    block = take(blocks.first, 1)
    base, count = page * WORDS, np.int64(0)
    for word in range(WORDS):
        parts = granules[base + word]
        blocks.granules[block * WORDS + word] = parts
        count += 1 << np.int64(parts)
    place = take(blocks.rows, count)
    blocks.first.rows[block] = place
    for word in range(WORDS):
        parts = np.int64(granules[base + word])
        row = (granules.size + base + word) << parts
        for part in range(1 << parts):
            blocks.rows.rows[place].store = rows[row + part].store
            blocks.rows.rows[place].stamp = rows[row + part].stamp
            place += 1
    return block


@kernel
def index_pages(table: HashTable, numbers: Any, streams: Any, blocks: Any) -> None:
    """Enter the block of each page in `table` (BLOCK); numbers, streams, blocks: i8 (pages)."""
    for place in range(numbers.size):
        if blocks[place] != 0:
            table.rows[row_of(table, key_of(numbers[place], streams[place]))].block = blocks[place]
