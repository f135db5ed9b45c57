"""The loads of a granule since its last store: exact, and bounded by readers times open levels.

The clocks at which the open levels' present invocations and iterations began divide the past into
*intervals*; two loads of one interval relate to any later store alike at every level. As time goes on
boundaries disappear and intervals merge, but none is ever split. So the earliest and the latest load of
each access in each interval are all that a store needs to know.

A list is ordered by its entries' latest loads, the most recent first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.contexts import CLOCK, LEVELS
from tracekit.replay.kernels.hashmap import Int
from tracekit.replay.kernels.shadow import FIRST_LIMIT, give_reader, take_reader

FARTHEST = 8
"""A load looks at so many entries or levels for one to merge with; what it misses waits for the next compaction."""


@inlined
def add_reader(shadow: Any, stream: Any, accesses: Any, slot: Any, access: Any) -> Any:
    """Enter a load made now; returns False if there is no room (then nothing has changed)."""
    readers = shadow.readers
    now = stream.control[CLOCK]
    levels = np.int64(stream.control[LEVELS])
    present = np.int64(0)
    if levels > 0:
        present = stream.levels[levels - 1].iteration_start
    head = np.int64(shadow.slots[slot].readers)
    if head == 0:
        entry = np.int64(take_reader(readers, shadow.control))
        if entry < 0:
            return False
        _fill(readers, entry, access, now, 0)
        readers[entry].length = 1
        readers[entry].limit = FIRST_LIMIT
        shadow.slots[slot].readers = entry
        return True
    if readers[head].access == access:
        latest = readers[head].latest
        if latest >= present:
            readers[head].latest = now
            return True
        second = np.int64(readers[head].next)
        if second != 0 and readers[second].access == access:
            if readers[second].latest >= _interval_start(stream.levels, levels, latest):
                # The common case, a granule with one reader: both entries have come to lie in one interval.
                readers[second].latest = latest
                readers[head].earliest = now
                readers[head].latest = now
                return True
    return _add(shadow.slots, readers, shadow.control, stream.levels, levels, accesses, slot, access, now, present)


@kernel
def _add(slots: Any, readers: Any, control: Any, levels: Any, open_levels: Int, accesses: Any,
         slot: Int, access: Int, now: Int, present: Int) -> bool:
    """The rest of add_reader, for a list that is not empty."""
    head = np.int64(slots[slot].readers)
    before = head
    entry = np.int64(readers[head].next)
    farthest = FARTHEST
    while entry != 0 and readers[entry].latest >= present and farthest > 0:
        farthest -= 1
        if readers[entry].access == access:  # it read the granule in this interval before
            readers[entry].latest = now
            readers[before].next = readers[entry].next
            readers[entry].next = head
            readers[entry].length = readers[head].length
            readers[entry].limit = readers[head].limit
            slots[slot].readers = entry
            return True
        before = entry
        entry = np.int64(readers[entry].next)
    if readers[head].length >= readers[head].limit:
        _compact(readers, control, levels, open_levels, accesses, head)
    entry = take_reader(readers, control)
    if entry < 0:
        return False
    _fill(readers, entry, access, now, head)
    readers[entry].length = readers[head].length + 1
    readers[entry].limit = readers[head].limit
    slots[slot].readers = entry
    return True


@inlined
def _fill(readers: Any, entry: Any, access: Any, now: Any, following: Any) -> None:
    readers[entry].access = access
    readers[entry].earliest = now
    readers[entry].latest = now
    readers[entry].next = following


@inlined
def _interval_start(levels: Any, open_levels: Any, stamp: Any) -> Any:
    """The clock at which the interval that holds `stamp` began, or later than `stamp` if that is long to find."""
    level = np.int64(open_levels) - 1
    while level >= 0 and levels[level].invocation > stamp:
        level -= 1
        if level + FARTHEST < open_levels:
            return stamp + 1
    if level < 0:
        return np.int64(0)
    if stamp >= levels[level].iteration_start:
        return levels[level].iteration_start
    return levels[level].invocation


@inlined
def interval(levels: Any, open_levels: Any, stamp: Any) -> Any:
    """Number of the interval that holds `stamp`, from 0 for the time before the outermost open level."""
    level = np.int64(open_levels) - 1
    while level >= 0:
        if stamp >= levels[level].iteration_start:
            return 2 * level + 2
        if stamp >= levels[level].invocation:
            return 2 * level + 1
        level -= 1
    return np.int64(0)


@kernel
def _compact(readers: Any, control: Any, levels: Any, open_levels: Int, accesses: Any, head: Int) -> None:
    """Merge the entries of each access that have come to lie in one interval."""
    length = readers[head].length
    open_now = np.int64(open_levels)
    upper = np.int64(-1)  # the interval that is being gathered
    tag = 0
    before = np.int64(0)
    entry = np.int64(head)
    while entry != 0:
        following = np.int64(readers[entry].next)
        place = interval(levels, open_now, readers[entry].latest)
        if place != upper:
            upper = place
            open_now = (place + 1) >> 1  # later entries are not younger
            accesses[0].seen_tag += 1  # row 0 lends its field as the counter
            tag = accesses[0].seen_tag
        access = readers[entry].access
        if accesses[access].seen_tag == tag and access != 0:
            kept = accesses[access].seen_entry
            readers[kept].earliest = min(readers[kept].earliest, readers[entry].earliest)
            readers[before].next = following
            give_reader(readers, control, entry)
            length -= 1
        else:
            accesses[access].seen_tag = tag
            accesses[access].seen_entry = entry
            before = entry
        entry = following
    readers[head].length = length
    readers[head].limit = max(FIRST_LIMIT, 2 * length)
