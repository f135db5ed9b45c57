"""The loads of each byte since its last store: exact, and bounded by readers times open levels.

The clocks at which the open levels' present invocations and iterations began divide the past into *intervals*; two
loads of one interval relate to any later store alike at every level. As time goes on boundaries disappear and intervals
merge, but none is ever split. So the earliest and the latest load of each access in each interval are all that a store
needs to know. (Without levels all the past is one interval.)

A row of shadow memory (HISTORY) has its latest load in itself, and before that a *pair*: the earliest and the latest of
some loads by one access in one interval, which is all that most bytes ever have. What came before, in order of time, is
in a *chunk*: a power of two of entries, compacted when it is full, and replaced by a larger one if that does not make
half of it free.

Dividing a word copies its row, so that the parts come to share one chunk; a chunk says in how many parts the word was
when it was made, and a row of other parts copies it before it changes it. Such chunks, and those of cleared memory, are
collected when the chunks in use have doubled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, limited
from tracekit.containers.kernels.prefetch import prefetch
from tracekit.containers.kernels.shadow import PAGES, SCRATCH, WORDS, parts_of
from tracekit.contexts.kernels.streams import LEVELS
from tracekit.jit.kernel import inlined, kernel

HISTORY = np.dtype(
    [
        ("store", "<u4"),  # access that stored the byte last, 0: none
        ("reader", "<u4"),  # access that loaded it last since then, 0: none
        ("stamp", "<i8"),  # clocks of the two
        ("loaded", "<i8"),
        ("chunk", "<u4"),  # the loads before the pair, 0: none
        ("pair", "<u4"),  # access of the loads before the last, 0: none, then there is no chunk
        ("earliest", "<i8"),  # clocks of the two, which may be the same
        ("latest", "<i8"),
    ]
)
READER = np.dtype(
    [
        ("stamp", "<i8"),  # of the first entry of a free chunk: the next free one
        ("access", "<u4"),
        ("about", "<u4"),  # of the first entry: entries in use; of the second: log2 of UNITs | parts << 8
    ]
)
UNIT = 4
"""Entries of the smallest chunk: a cache line."""

# Elements of LoadHistory.control; the first are those of an arena, in entries.
FREED = 2  # entries of free chunks
COLLECT_AT = 3  # entries in use at which the next collection runs
COLLECTIONS = 4  # collections so far
FREE = 5  # and behind it: the first free chunk of each size, 0: none
CONTROL = FREE + 28
"""How many there are."""
FIRST_COLLECTION = 1 << 20
SEEN = np.dtype([("tag", "<i8"), ("entry", "<i8")])
NOT_AT_HAND = -1
FARTHEST = 8
"""A load looks at so many levels for one to take the place of; what it misses waits for the next compaction."""


@limited
class LoadHistory(NamedTuple):
    """Chunks; number n begins with the entry n * UNIT. Chunk 0 is none."""

    rows: NDArray[Any]  # READER
    control: NDArray[np.int64]
    seen: NDArray[Any]  # [access]: SEEN, for compaction; row 0 counts
    marks: NDArray[np.uint32]  # [chunk]: the last collection that came across it


@inlined
def _take(readers: Any, size: Any) -> Any:
    """A chunk of UNIT << size entries."""
    control = readers.control
    chunk = control[FREE + size]
    if chunk != 0:
        control[FREE + size] = readers.rows[chunk * UNIT].stamp
        control[FREED] -= UNIT << size
        return chunk
    first = control[USED]
    if first + (UNIT << size) > readers.rows.size:
        control[EXHAUSTED] = 1
        return np.int64(0)
    control[USED] = first + (UNIT << size)
    return first // UNIT


@inlined
def _give(readers: Any, chunk: Any, size: Any) -> None:
    readers.rows[chunk * UNIT].stamp = readers.control[FREE + size]
    readers.control[FREE + size] = chunk
    readers.control[FREED] += UNIT << size


@inlined
def drop_readers(readers: Any, memory: Any, row: Any) -> None:
    """Forget the loads of a row, which is being stored."""
    known = memory.rows[row]
    known.reader = 0
    known.pair = 0
    if known.chunk != 0:
        _drop(readers, np.int64(known.chunk), parts_of(memory, row))
        known.chunk = 0


@kernel
def _drop(readers: LoadHistory, chunk: Any, parts: Any) -> None:
    about = np.int64(readers.rows[chunk * UNIT + 1].about)
    if about >> 8 == parts:  # else other parts of the word may have it too
        _give(readers, chunk, about & 255)


@inlined
def expect_readers(readers: Any, memory: Any, row: Any) -> None:
    """The loads of a row will be needed soon."""
    prefetch(readers.rows, np.uint64(memory.rows[row].chunk) * np.uint64(UNIT))


@inlined
def add_reader(readers: Any, memory: Any, row: Any, access: Any, now: Any, levels: Any) -> None:
    """Enter a load by `access` at clock `now`."""
    known = memory.rows[row]
    if known.reader != 0:
        count = np.int64(levels.control[LEVELS])
        if known.reader == access:
            present = np.int64(0)
            if count > 0:
                present = levels.levels[np.uint64(count - 1)].iteration_start
            if known.loaded >= present:
                return  # in this iteration it read the byte before: no store can tell the two apart
        if known.pair == known.reader and _is_one_interval(levels.levels, count, known.earliest, known.loaded):
            known.latest = known.loaded
        else:
            _make_pair(readers, memory, row, levels.levels, count)
    known.reader = access
    known.loaded = now


@inlined
def _is_one_interval(levels: Any, count: Any, earlier: Any, later: Any) -> Any:
    """Whether the interval that holds `later` holds `earlier`; False says nothing."""
    innermost = np.int64(count) - 1
    level, farthest = innermost, innermost - FARTHEST
    while level >= 0 and level > farthest and levels[np.uint64(level)].invocation > later:
        level -= 1
    if level < 0:
        return innermost < FARTHEST
    begun, iteration = levels[np.uint64(level)].invocation, levels[np.uint64(level)].iteration_start
    return level > farthest and begun <= earlier and (earlier >= iteration or later < iteration)


@inlined
def push_reader(readers: Any, memory: Any, row: Any, access: Any, now: Any, levels: Any) -> None:
    """Enter a load while the levels of its stream are not at hand: nothing is merged."""
    known = memory.rows[row]
    if known.reader != 0:
        _make_pair(readers, memory, row, levels.levels, np.int64(NOT_AT_HAND))
    known.reader = access
    known.loaded = now


@inlined
def _make_pair(readers: Any, memory: Any, row: Any, levels: Any, count: Any) -> None:
    """The last load becomes the pair of its row, and what was the pair goes to the chunk."""
    known = memory.rows[row]
    if known.pair != 0:
        known.chunk = _push_pair(
            readers,
            np.int64(known.chunk),
            known.pair,
            known.earliest,
            known.latest,
            levels,
            count,
            parts_of(memory, row),
        )
    known.pair = known.reader
    known.earliest = known.loaded
    known.latest = known.loaded


@kernel
def _push_pair(
    readers: LoadHistory, chunk: Any, access: Any, earliest: Any, latest: Any, levels: Any, count: Any, parts: Any
) -> int:
    """Append a pair to a chunk; the chunk that has it, maybe another."""
    chunk = np.int64(_push(readers, chunk, access, earliest, levels, count, parts))
    if latest != earliest:
        chunk = np.int64(_push(readers, chunk, access, latest, levels, count, parts))
    return int(chunk)


@kernel
def _push(readers: LoadHistory, chunk: Any, access: Any, stamp: Any, levels: Any, count: Any, parts: Any) -> int:
    """Append a load to a chunk, the latest of its loads so far; the chunk that has it, maybe another."""
    rows = readers.rows
    if chunk == 0:
        chunk = np.int64(_take(readers, 0))
        rows[chunk * UNIT].about = 0
        rows[chunk * UNIT + 1].about = parts << 8
    elif np.int64(rows[chunk * UNIT + 1].about) >> 8 != parts:
        chunk = np.int64(_copied(readers, chunk, np.int64(rows[chunk * UNIT + 1].about) & 255, parts))
    first = chunk * UNIT
    length = np.int64(rows[first].about)
    size = np.int64(rows[first + 1].about) & 255
    if length == UNIT << size:
        if count >= 0:
            length = np.int64(_compact(readers, first, length, levels, count))
        if 2 * length > UNIT << size:
            larger = _copied(readers, chunk, size + 1, parts)
            _give(readers, chunk, size)
            chunk = np.int64(larger)
            first = chunk * UNIT
    rows[first + length].access = access
    rows[first + length].stamp = stamp
    rows[first].about = length + 1
    return int(chunk)


@kernel
def _copied(readers: LoadHistory, chunk: Any, size: Any, parts: Any) -> int:
    """A copy of a chunk, of UNIT << size entries, for a row of such parts."""
    rows = readers.rows
    new = np.int64(_take(readers, size))
    length = np.int64(rows[chunk * UNIT].about)
    if new == 0:  # no room: there is no list
        length = np.int64(0)
    for entry in range(length):
        rows[new * UNIT + entry].stamp = rows[chunk * UNIT + entry].stamp
        rows[new * UNIT + entry].access = rows[chunk * UNIT + entry].access
    rows[new * UNIT].about = length
    rows[new * UNIT + 1].about = size | (parts << 8)
    return int(new)


@inlined
def _open_at(levels: Any, count: Any, stamp: Any) -> Any:
    """How many of the outermost `count` levels were open at a stamp: most often nearly all, but recursions are deep."""
    level = np.int64(count)
    step = np.int64(1)
    while level > 0 and levels[np.uint64(level - 1)].invocation > stamp:
        level = max(level - step, np.int64(0))
        step *= 2
    behind = min(np.int64(count), level + (step >> 1))
    while level < behind:  # level - 1 was open, behind was not
        middle = (level + behind + 1) >> 1
        if levels[np.uint64(middle - 1)].invocation <= stamp:
            level = middle
        else:
            behind = middle - 1
    return level


@inlined
def _interval_start(levels: Any, count: Any, stamp: Any) -> Any:
    """The clock at which the interval that holds `stamp` began."""
    level = _open_at(levels, count, stamp) - 1
    if level < 0:
        return np.int64(0)
    innermost = levels[np.uint64(level)]
    return innermost.iteration_start if stamp >= innermost.iteration_start else innermost.invocation


@kernel
def _compact(readers: LoadHistory, first: Any, length: Any, levels: Any, count: Any) -> int:
    """Keep the earliest and the latest load of each access in each interval; how many that are."""
    rows, seen = readers.rows, readers.seen
    start, tag = np.int64(-1), np.int64(0)  # of the interval that is being gathered
    open_now = np.int64(count)
    kept = first + length  # entries from here on are kept
    for entry in range(first + length - 1, first - 1, -1):
        stamp, access = rows[entry].stamp, rows[entry].access
        if start < 0 or stamp < start:
            open_now = np.int64(_open_at(levels, open_now, stamp))
            start = np.int64(_interval_start(levels, open_now, stamp))
            seen[0].tag += 2  # row 0 lends its field as the counter
            tag = seen[0].tag
        known = seen[access]
        if known.tag == tag + 1:  # two of it are kept
            rows[known.entry].stamp = min(rows[known.entry].stamp, stamp)
        elif known.tag != tag or rows[known.entry].stamp != stamp:
            known.tag = tag + np.int64(known.tag == tag)
            kept -= 1
            known.entry = kept
            rows[kept].stamp = stamp
            rows[kept].access = access
    left = first + length - kept
    if kept > first:
        for entry in range(left):
            rows[first + entry].stamp = rows[kept + entry].stamp
            rows[first + entry].access = rows[kept + entry].access
        rows[first].about = left
    return int(left)


# -- collection ------------------------------------------------------------------------------------


@inlined
def collect(readers: Any, memory: Any) -> None:
    """Take chunks back that no row leads to, if there are many; those of other shadows are lost."""
    if readers.control[USED] - readers.control[FREED] > readers.control[COLLECT_AT]:
        collect_now(readers, memory)


@kernel
def collect_now(readers: LoadHistory, memory: Any) -> None:
    """Mark what the rows of the shadow lead to, and free the rest."""
    control, rows = readers.control, readers.rows
    control[COLLECTIONS] += 1
    number = np.uint32(control[COLLECTIONS])
    for word in range((SCRATCH + 1) * WORDS, memory.control[PAGES] * WORDS):
        parts = np.int64(memory.granules[word])
        begin = (memory.granules.size + word) << parts
        for row in range(begin, begin + (1 << parts)):
            readers.marks[memory.rows[row].chunk] = number
    for place in range(FREE, control.size):
        control[place] = 0
    control[FREED] = 0
    chunk, end = np.int64(1), control[USED] // UNIT
    while chunk < end:
        if readers.marks[chunk] == number:
            chunk += 1 << (np.int64(rows[chunk * UNIT + 1].about) & 255)
            continue
        behind = chunk
        while behind < end and readers.marks[behind] != number:
            behind += 1
        while chunk < behind:
            size = np.int64(0)
            while size < control.size - FREE - 1 and chunk + (2 << size) <= behind:
                size += 1
            _give(readers, chunk, size)
            chunk += 1 << size
    control[COLLECT_AT] = max(2 * (control[USED] - control[FREED]), FIRST_COLLECTION)
