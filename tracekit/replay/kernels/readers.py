"""The loads of each byte since its last store: exact, and bounded by readers times open levels.

The clocks at which the open levels' present invocations and iterations began divide the past into *intervals*; two
loads of one interval relate to any later store alike at every level. As time goes on boundaries disappear and intervals
merge, but none is ever split. So the earliest and the latest load of each access in each interval are all that a store
needs to know. (replay.md; without levels all the past is one interval.)

The list of a row of shadow memory is ordered by its entries' latest loads, the most recent first. Dividing a word
copies its row, so that the parts come to share one list; an entry says in how many parts the word was when its list was
made, and a row of other parts copies the list before it changes it. Such lists, and those of cleared memory, are
collected when the entries have doubled in number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.arena import EXHAUSTED, USED
from tracekit.replay.kernels.contexts import LEVELS
from tracekit.replay.kernels.history import FARTHEST, interval
from tracekit.replay.kernels.shadows import PAGES, SCRATCH, WORDS

READER = np.dtype([
    ("access", "<u4"),
    ("next", "<u4"),
    ("earliest", "<i8"),  # clocks of its first and last execution in one present interval
    ("latest", "<i8"),
    ("length", "<u4"),  # in the first entry: entries in the list
    ("limit", "<u4"),  # and the length at which the list is next compacted
    ("parts", "<u4"),  # and log2 of the parts of the word that made it
    ("seen", "<u4"),  # by the collection with this number
])
FIRST_LIMIT = 8
FREE, FREED, COLLECT_AT, COLLECTIONS, CONTROL = 2, 3, 4, 5, 6
"""Elements of Readers.control after those of an arena: first free entry (0: none), how many there are, entries in use
at which the next collection runs, and collections so far."""
FIRST_COLLECTION = 1 << 20
SEEN = np.dtype([("tag", "<i8"), ("entry", "<u4")])


class Readers(NamedTuple):
    """Entries of lists of loads; a row of the shadow has the first in its field `readers`, 0 if there is none."""

    rows: NDArray[Any]  # READER; row 0 is none
    control: NDArray[np.int64]
    seen: NDArray[Any]  # [access]: SEEN, for compaction; row 0 counts


@inlined
def _take(readers: Any) -> Any:
    entry = readers.control[FREE]
    if entry != 0:
        readers.control[FREE] = np.int64(readers.rows[entry].next)
        readers.control[FREED] -= 1
        return entry
    entry = readers.control[USED]
    if entry >= readers.rows.size:
        readers.control[EXHAUSTED] = 1
        return np.int64(0)
    readers.control[USED] = entry + 1
    return entry


@inlined
def _give(readers: Any, entry: Any) -> None:
    readers.rows[entry].next = readers.control[FREE]
    readers.control[FREE] = entry
    readers.control[FREED] += 1


@inlined
def parts_of(memory: Any, row: Any) -> Any:
    """log2 of the parts of the word that a row of the shadow belongs to."""
    whole = np.uint64(2 * memory.granules.size)
    return (np.uint32(row >= whole) + np.uint32(row >= whole * np.uint64(2)) + np.uint32(row >= whole * np.uint64(4)))


@inlined
def drop_readers(readers: Any, memory: Any, row: Any) -> None:
    """Forget the loads of a row, which is being stored."""
    first = np.int64(memory.rows[row].readers)
    if first != 0:
        memory.rows[row].readers = 0
        _free(readers, first, parts_of(memory, row))


@kernel
def _free(readers: Any, first: Any, parts: Any) -> None:
    if readers.rows[first].parts == parts:  # else other parts of the word may have it too
        entry = first
        while entry != 0:
            following = np.int64(readers.rows[entry].next)
            _give(readers, entry)
            entry = following


@inlined
def add_reader(readers: Any, memory: Any, row: Any, access: Any, now: Any, levels: Any) -> None:
    """Enter a load by `access` at clock `now`."""
    known = memory.rows[row]
    first = np.int64(known.readers)
    count = np.int64(levels.control[LEVELS])
    present = np.int64(0)
    if count > 0:
        present = levels.levels[count - 1].iteration_start
    if first != 0:
        head = readers.rows[first]
        if head.access == access and head.latest >= present and head.parts == parts_of(memory, row):
            head.latest = now
            return
    known.readers = _enter(readers, first, access, now, present, levels.levels, count, parts_of(memory, row))


@kernel
def _enter(readers: Any, first: Any, access: Any, now: Any, present: Any, levels: Any, count: Any, parts: Any) -> int:
    """The rest of add_reader; the first entry of the list that it makes."""
    rows = readers.rows
    if first != 0 and rows[first].parts != parts:
        first = _copied(readers, first, parts)
    before, entry, farthest = np.int64(0), np.int64(first), FARTHEST
    while entry != 0 and rows[entry].latest >= present and farthest > 0:
        farthest -= 1
        if rows[entry].access == access:  # it read the bytes in this interval before: it becomes the first
            rows[entry].latest = now
            if before != 0:
                rows[before].next = rows[entry].next
                rows[entry].next = first
                _describe(rows, entry, rows[first].length, rows[first].limit, parts)
            return int(entry)
        before, entry = entry, np.int64(rows[entry].next)
    if first != 0 and rows[first].length >= rows[first].limit:
        _compact(readers, levels, count, first)
    return int(_pushed(readers, first, access, now, parts))


@kernel
def push_reader(readers: Any, memory: Any, row: Any, access: Any, now: Any) -> None:
    """Enter a load while the levels of its stream are not at hand: nothing is merged."""
    first, parts = np.int64(memory.rows[row].readers), parts_of(memory, row)
    if first != 0 and readers.rows[first].parts != parts:
        first = np.int64(_copied(readers, first, parts))
    memory.rows[row].readers = _pushed(readers, first, access, now, parts)


@inlined
def _pushed(readers: Any, first: Any, access: Any, now: Any, parts: Any) -> Any:
    rows = readers.rows
    entry = _take(readers)
    rows[entry].access = access
    rows[entry].earliest = now
    rows[entry].latest = now
    rows[entry].next = first
    if first == 0:
        _describe(rows, entry, 1, FIRST_LIMIT, parts)
    else:
        _describe(rows, entry, rows[first].length + 1, rows[first].limit, parts)
    return entry


@inlined
def _describe(rows: Any, entry: Any, length: Any, limit: Any, parts: Any) -> None:
    rows[entry].length = length
    rows[entry].limit = limit
    rows[entry].parts = parts


@inlined
def _copied(readers: Any, first: Any, parts: Any) -> Any:
    """A copy of a list for a row of other parts."""
    rows = readers.rows
    copied, before, entry = np.int64(0), np.int64(0), np.int64(first)
    while entry != 0:
        new = _take(readers)
        rows[new] = rows[entry]
        rows[new].next = 0
        if before == 0:
            copied = new
        else:
            rows[before].next = new
        before, entry = new, np.int64(rows[entry].next)
    rows[copied].parts = parts
    return copied


@kernel
def _compact(readers: Any, levels: Any, count: Any, first: Any) -> None:
    """Merge the entries of each access that have come to lie in one interval."""
    rows, seen = readers.rows, readers.seen
    length = np.int64(rows[first].length)
    open_now, upper, tag = np.int64(count), np.int64(-1), np.int64(0)
    before, entry = np.int64(0), np.int64(first)
    while entry != 0:
        following = np.int64(rows[entry].next)
        place = interval(levels, open_now, rows[entry].latest)
        if place != upper:
            upper = place
            open_now = (place + 1) >> 1  # later entries are not younger
            seen[0].tag += 1
            tag = seen[0].tag
        access = rows[entry].access
        if seen[access].tag == tag:
            kept = seen[access].entry
            rows[kept].earliest = min(rows[kept].earliest, rows[entry].earliest)
            rows[before].next = following
            _give(readers, entry)
            length -= 1
        else:
            seen[access].tag = tag
            seen[access].entry = entry
            before = entry
        entry = following
    rows[first].length = length
    rows[first].limit = max(FIRST_LIMIT, 2 * length)


# -- collection ------------------------------------------------------------------------------------


@inlined
def collect(readers: Any, memory: Any) -> None:
    """Take entries back that no row leads to, if there are many; lists of other shadows are lost."""
    if readers.control[USED] - readers.control[FREED] > readers.control[COLLECT_AT]:
        collect_now(readers, memory)


@kernel
def collect_now(readers: Any, memory: Any) -> None:
    """Mark what the rows of the shadow lead to, and free the rest."""
    control, rows = readers.control, readers.rows
    control[COLLECTIONS] += 1
    number = np.uint32(control[COLLECTIONS])
    used = np.int64(0)
    for word in range((SCRATCH + 1) * WORDS, memory.control[PAGES] * WORDS):
        parts = np.int64(memory.granules[word])
        begin = (memory.granules.size + word) << parts
        for row in range(begin, begin + (1 << parts)):
            entry = np.int64(memory.rows[row].readers)
            while entry != 0 and rows[entry].seen != number:
                rows[entry].seen = number
                used += 1
                entry = np.int64(rows[entry].next)
    control[FREE] = 0
    control[FREED] = 0
    for unseen in range(1, control[USED]):
        if rows[unseen].seen != number:
            _give(readers, unseen)
    control[COLLECT_AT] = max(2 * used, FIRST_COLLECTION)
