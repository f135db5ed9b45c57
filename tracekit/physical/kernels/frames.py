"""The page frame of an address when a stream is at some time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel

PAGE_BITS = 12
PAGE = 1 << PAGE_BITS
UNKNOWN = -1
"""The physical address where no frame is known."""
NO_FRAME = 1 << 60
"""Added to a virtual address that stands for a physical one: no machine has so much memory."""

PAGE_NUMBER, SNAPSHOT, FOUND = range(3)
HAND_OVER = CODE["hand_over"]
WINDOW_BEGIN = CODE["window_begin"]
LOCATES = 1
"""Action of an event with an address, beside the codes of those that tell the time."""


class Frames(NamedTuple):
    """Page frames by page and snapshot, and how far each stream is. Snapshots are numbered by time, from 0."""

    taken: Any  # int64 (snapshots): nanoseconds since the start, ascending
    pages: Any  # int64 (pages): page numbers, ascending
    first: Any  # int64 (pages + 1): the first row of each page
    since: Any  # int64 (rows): from which snapshot on; a page's first row holds before that, too
    frames: Any  # int64 (rows): its frame from there on; UNKNOWN: neither there nor later
    now: Any  # int64 (streams): the last snapshot before the stream's last time, 0 before the first one
    found: Any  # int64 (entries, 3): what was found last: page number, snapshot, frame


@inlined
def passed(frames: Frames, stream: int, time: int) -> None:
    """A stream is at a time, in nanoseconds since the start."""
    if stream < frames.now.size:
        now = frames.now[stream]
        while now + 1 < frames.taken.size and frames.taken[now + 1] <= time:
            now += 1
        frames.now[stream] = now


@inlined
def physical_of(frames: Frames, stream: int, address: int) -> int:
    """Where an address lies physically, for a stream where it is; UNKNOWN (-1): its page frame is not known."""
    page = address >> PAGE_BITS
    now = frames.now[stream] if stream < frames.now.size else 0
    known = frames.found[page & (frames.found.shape[0] - 1)]
    if known[PAGE_NUMBER] != page or known[SNAPSHOT] != now:
        look_up(frames.pages, frames.first, frames.since, frames.frames, known, page, now)
    frame = known[FOUND]
    if frame < 0:
        return UNKNOWN
    place: int = (frame << PAGE_BITS) | (address & (PAGE - 1))
    return place


@inlined
def place_of(frames: Frames, stream: int, address: int, unlocated: Any) -> int:
    """Where an address lies physically, for simulators: if unknown, the virtual one stands in, above all physical ones.

    unlocated: int64 (1), counts how often that was so.
    """
    place = physical_of(frames, stream, address)
    if place < 0:
        unlocated[0] += 1
        place = NO_FRAME | (address & (NO_FRAME - 1))
    return place


@inlined
def in_page(address: int, end: int) -> int:
    """How many of the bytes from an address to `end` lie in its page."""
    return min(end, (address | (PAGE - 1)) + 1) - address


@kernel
def look_up(pages: Any, first: Any, since: Any, frames: Any, known: Any, page: int, now: int) -> None:
    """Find the frame of a page at snapshot `now`, and put page, snapshot and frame (or UNKNOWN) into the entry `known`.

    pages, first, since, frames: those of Frames; known: three i8.
    """
    low, high = 0, pages.size
    while low < high:
        middle = (low + high) >> 1
        if pages[middle] < page:
            low = middle + 1
        else:
            high = middle
    frame = UNKNOWN
    if low < pages.size and pages[low] == page:
        row, end = first[low], first[low + 1]
        while end - row > 1:
            middle = (row + end) >> 1
            if since[middle] <= now:
                row = middle
            else:
                end = middle
        frame = frames[row]
    known[PAGE_NUMBER], known[SNAPSHOT], known[FOUND] = page, now, frame


@kernel
def locate(frames: Frames, stream: int, actions: Any, kind: Any, address: Any, size: Any, physical: Any) -> None:
    """Fill the column `physical` of a batch: UNKNOWN for events without an address.

    actions: uint8 (256): for each code of an event what to do.
    """
    for event in range(kind.size):
        action = actions[kind[event]]
        physical[event] = UNKNOWN
        if action == LOCATES:
            place: Any = np.int64(address[event])
            physical[event] = physical_of(frames, stream, place)
        elif action == HAND_OVER:
            time: Any = np.int64(address[event])
            passed(frames, stream, time)
        elif action == WINDOW_BEGIN:
            begin: Any = np.int64(size[event])
            passed(frames, stream, begin)
