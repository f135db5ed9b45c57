"""The loads of each byte since its last store: exact, and bounded by readers times open levels.

The clocks at which the open levels' present invocations and iterations began divide the past into *intervals*; two
loads of one interval relate to any later store alike at every level. As time goes on boundaries disappear and intervals
merge, but none is ever split. So the earliest and the latest load of each access in each interval are all that a store
needs to know. (Without levels all the past is one interval.)

A row of shadow memory (HISTORY) has its latest load in itself, and before that a *pair*: the earliest and the latest of
some loads by one access in one interval, which is all that most bytes ever have. What came before is a list, the latest
first, whose entries lie in a *log*: a load is appended to it, and reaches no memory but the row and the log's end.
Entries never change, so the parts of a divided word share a list, and a store forgets one in no time.

Of what programs load most is never stored again, and its lists are never read. So nothing is merged but the first
entries of a list that grows fast, which the caches have, when it has grown by as many as were left (`_with_pair`), and
all of it when the log has grown by as much as it held: then the lists that rows still lead to are copied into the other
half of the log, row by row, and merged on the way (`collect_now`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, limited
from tracekit.containers.kernels.paging import release
from tracekit.containers.kernels.prefetch import prefetch
from tracekit.containers.kernels.shadow import PAGES, SCRATCH, STREAM, WORDS
from tracekit.contexts.kernels.streams import LEVELS
from tracekit.jit.kernel import inlined, kernel

FINAL = 1 << 30
"""In ``store``: no store comes any more, so loads are not entered (final_stores.py). (OPEN is the bit beside it.)"""
ACCESS_BITS = FINAL - 1
"""The bits of ``store`` that are an access."""

HISTORY = np.dtype(
    [
        ("store", "<u4"),  # access that stored the byte last (ACCESS_BITS), 0: none
        ("reader", "<u4"),  # access that loaded it last since then, 0: none
        ("stamp", "<i8"),  # clocks of the two
        ("loaded", "<i8"),
        ("before", "<u4"),  # the latest entry of the loads before the pair, 0: none
        ("pair", "<u4"),  # access of the loads before the last, 0: none, then there is no list
        ("earliest", "<i8"),  # clocks of the two, which may be the same
        ("latest", "<i8"),
    ]
)
LOAD = np.dtype(
    [
        ("when", "<i8"),  # clock << GROWN_BITS | by how many entries the list has grown lately
        ("access", "<u4"),
        ("before", "<u4"),  # the next entry of the list, 0: none
    ]
)
GROWN_BITS = 8
GROWN = (1 << GROWN_BITS) - 1

# Elements of LoadHistory.control; the first are those of an arena.
END = 2  # of the half of the log that is in use
COLLECT_AT = 3  # entry at which the next collection runs
COLLECTIONS = 4  # collections so far
CONTROL = 5
"""How many there are."""
FIRST_COLLECTION = 1 << 20
"""The log grows by as many entries between two collections at least."""
YOUNG = 1 << 14
"""So many of the last entries are taken to be in the caches."""
FEW = 16
"""By so many entries a list grows before they are merged."""
FARTHEST = 8
"""A load looks at so many levels for one to take the place of; what it misses waits until lists are merged."""
WAYS = 16
"""Lists that are walked at once, so that the processor waits for entries of all of them together."""
DEPTH = 32
"""Entries of each that are brought into the caches so."""
SEEN = np.dtype([("tag", "<i8"), ("entry", "<i8")])
NOT_AT_HAND = -1
"""In place of the number of levels: they are another stream's."""
ALL = 1 << 62


@limited
class LoadHistory(NamedTuple):
    """The log, of which one half is in use; entry 0 is none."""

    rows: NDArray[Any]  # LOAD
    control: NDArray[np.int64]
    seen: NDArray[Any]  # [access]: SEEN, while lists are merged; row 0 counts
    ways: NDArray[np.int64]  # rows whose lists are being copied, and how far they have been walked


def first_entry(readers: LoadHistory) -> int:
    """Where the half of the log that is in use begins."""
    return int(readers.control[END]) - len(readers.rows) // 2


@inlined
def drop_readers(memory: Any, row: Any) -> None:
    """Forget the loads of a row, which is being stored."""
    known = memory.rows[row]
    known.reader = 0
    known.pair = 0
    known.before = 0


@inlined
def expect_readers(readers: Any, memory: Any, row: Any) -> None:
    """The loads of a row will be needed soon."""
    prefetch(readers.rows, memory.rows[row].before)


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
            if known.pair != 0:
                known.before = _with_pair(readers, known, levels.levels, count)
            _pair_last(known)
    known.reader = access
    known.loaded = now


@inlined
def read_again(readers: Any, known: Any, access: Any, now: Any, interval: Any) -> Any:
    """Enter a load in a row as ``add_reader`` does, if that needs no levels; whether it does not.

    The present iteration of the innermost level began at `now`. What is between ``low`` and ``high`` of `interval` is
    of one interval.
    """
    if known.reader != 0:
        if known.reader == access and known.loaded >= now:
            return True
        if known.pair == 0:
            _pair_last(known)
        elif known.pair == known.reader and known.earliest >= interval.low and known.loaded < interval.high:
            known.latest = known.loaded
        else:
            had, grown = _growth(readers, known)
            if _is_to_merge(had, grown) or readers.control[USED] + 2 >= readers.control[COLLECT_AT]:
                return False
            known.before = _listed(readers, known, grown)
            _pair_last(known)
    known.reader = access
    known.loaded = now
    return True


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
def push_reader(readers: Any, memory: Any, row: Any, access: Any, now: Any) -> None:
    """Enter a load while the levels of its stream are not at hand: nothing is merged."""
    known = memory.rows[row]
    if known.reader != 0:
        _list_pair(readers, known)
        _pair_last(known)
    known.reader = access
    known.loaded = now


@inlined
def list_all(readers: Any, known: Any) -> None:
    """Let all loads of a row be in its list; its last load and its pair have to be set then."""
    _list_pair(readers, known)
    if known.reader != 0:
        known.before = _append(readers, known.before, known.reader, known.loaded << GROWN_BITS)


@inlined
def _list_pair(readers: Any, known: Any) -> None:
    if known.pair != 0:
        known.before = _append(readers, known.before, known.pair, known.earliest << GROWN_BITS)
        if known.latest != known.earliest:
            known.before = _append(readers, known.before, known.pair, known.latest << GROWN_BITS)


@inlined
def _pair_last(known: Any) -> None:
    """The last load becomes the pair of its row."""
    known.pair = known.reader
    known.earliest = known.loaded
    known.latest = known.loaded


@kernel
def _with_pair(readers: LoadHistory, known: Any, levels: Any, count: Any) -> int:
    """The list of a row with its pair."""
    control, rows = readers.control, readers.rows
    had, grown = _growth(readers, known)
    first = np.int64(_listed(readers, known, grown))
    if _is_to_merge(had, grown):
        used = control[USED]
        merged = np.int64(_merged(readers, first, grown, levels, count))
        left = control[USED] - used
        if 2 * left > grown:
            control[USED] = used
        else:
            rows[merged].when |= left
            first = merged
    return int(first)


@inlined
def _growth(readers: Any, known: Any) -> Any:
    """By how many entries the list of a row has grown lately, and will have with its pair."""
    before, had = np.int64(known.before), np.int64(0)
    if before + YOUNG > readers.control[USED]:  # reached lately
        had = readers.rows[np.uint64(before)].when & GROWN
    return had, had + 1 + np.int64(known.latest != known.earliest)


@inlined
def _is_to_merge(had: Any, grown: Any) -> Any:
    """Whether a list that grows so is to be merged: it came to a power of two."""
    return grown >= FEW and (had ^ grown) > had


@inlined
def _listed(readers: Any, known: Any, grown: Any) -> Any:
    """Put the pair of a row in front of its list, which has `grown` so by that; the first entry."""
    before = np.int64(known.before)
    if known.latest != known.earliest:
        before = np.int64(_append(readers, before, known.pair, known.earliest << GROWN_BITS))
    return np.int64(_append(readers, before, known.pair, (known.latest << GROWN_BITS) | (grown & GROWN)))


@inlined
def _append(readers: Any, before: Any, access: Any, when: Any) -> Any:
    """The entry that puts a load in front of a list; the list, if the log is full."""
    new = readers.control[USED]
    if new == readers.control[END]:
        readers.control[EXHAUSTED] = 1
        return np.int64(before)
    readers.control[USED] = new + 1
    entry = readers.rows[np.uint64(new)]
    entry.when = when
    entry.access = access
    entry.before = before
    return new


@kernel
def append_list(readers: LoadHistory, before: Any, loads: Any, entry: Any, accesses: Any) -> int:
    """Put a list of another log, `loads`, in front of one; `accesses`: the numbers here of those there."""
    count, at = 0, np.int64(entry)
    while at != 0:
        count += 1
        at = np.int64(loads[at].before)
    first = readers.control[USED]
    if first + count > readers.control[END]:
        readers.control[EXHAUSTED] = 1
        return int(before)
    readers.control[USED] = first + count
    at = np.int64(entry)
    for new in range(first + count - 1, first - 1, -1):  # the earliest lies first, as if they came one by one
        readers.rows[new].when = loads[at].when
        readers.rows[new].access = accesses[loads[at].access]
        readers.rows[new].before = new - 1 if new > first else before
        at = np.int64(loads[at].before)
    return int(first + count - 1) if count > 0 else int(before)


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


@inlined
def interval_of(levels: Any, count: Any, now: Any, stamp: Any) -> Any:
    """The clocks from which on, and before which, what is now past lies in the interval that holds `stamp`."""
    level = _open_at(levels, count, stamp) - 1
    low, high = np.int64(0), now + 1
    if level + 1 < count:
        high = levels[np.uint64(level + 1)].invocation
    if level >= 0:
        innermost = levels[np.uint64(level)]
        low = innermost.iteration_start
        if stamp < low:
            low, high = innermost.invocation, low
    return low, high


# -- collection ------------------------------------------------------------------------------------


@inlined
def collect(readers: Any, memory: Any, levels: Any) -> None:
    """Copy the lists that rows lead to if the log has grown enough; merge those of the stream that `levels` are of."""
    if readers.control[USED] >= readers.control[COLLECT_AT]:
        collect_now(readers, memory, levels.levels, np.int64(levels.control[LEVELS]))


@inlined
def collect_idle(readers: Any, memory: Any, levels: Any) -> None:
    """The same while no levels are at hand: nothing is merged."""
    if readers.control[USED] >= readers.control[COLLECT_AT]:
        collect_now(readers, memory, levels.levels, np.int64(NOT_AT_HAND))


@kernel
def collect_now(readers: LoadHistory, memory: Any, levels: Any, count: Any) -> None:
    """Copy the lists of all rows into the other half of the log, in the order of rows."""
    control, rows = readers.control, memory.rows
    control[COLLECTIONS] += 1
    half = readers.rows.size // 2
    old_end, old_used = control[END], control[USED]
    control[END] = half if old_end > half else 2 * half
    first = control[END] - half
    control[USED] = first + 1  # entry 0 is none
    looked_at = np.int64(0)
    for page in range(SCRATCH, memory.control[PAGES]):
        at_hand = count if memory.pages[page].stream == memory.control[STREAM] else np.int64(NOT_AT_HAND)
        waiting = np.int64(0)
        for word in range(page * WORDS, (page + 1) * WORDS):
            parts = np.int64(memory.granules[word])
            row = (memory.granules.size + word) << parts
            looked_at += 1 << parts
            for part in range(row, row + (1 << parts)):
                if rows[part].before != 0:
                    readers.ways[waiting] = part
                    waiting += 1
                    if waiting == WAYS:
                        _copy_lists(readers, rows, waiting, levels, at_hand)
                        waiting = np.int64(0)
        _copy_lists(readers, rows, waiting, levels, at_hand)
    release(readers.rows, old_end - half + FIRST_COLLECTION, old_used)
    kept = control[USED] - first
    grown = control[USED] + max(FIRST_COLLECTION, kept, looked_at)
    control[COLLECT_AT] = min(grown, control[END] - (control[END] - control[USED]) // 8)


@kernel
def _copy_lists(readers: LoadHistory, rows: Any, waiting: Any, levels: Any, count: Any) -> None:
    """Copy the lists of some rows."""
    ways = readers.ways
    for place in range(waiting):
        ways[WAYS + place] = rows[ways[place]].before
    for _ in range(DEPTH):
        for place in range(WAYS, WAYS + waiting):
            if ways[place] != 0:
                ways[place] = readers.rows[np.uint64(ways[place])].before
    copied, old = np.int64(0), np.int64(0)
    for place in range(waiting):
        known = rows[ways[place]]
        if known.before != old:  # else parts of a word share it
            old = np.int64(known.before)
            merged = _merged(readers, old, ALL, levels, count) if count >= 0 else _copied(readers, old)
            copied = np.int64(merged)
        known.before = copied


@inlined
def _merged(readers: Any, entry: Any, most: Any, levels: Any, count: Any) -> Any:
    """Copy the first entries of a list, `most` or all; of loads of one access in one interval the earliest and latest.

    Returns the first entry of the new list, which goes on with the rest of the old one.
    """
    rows, seen, control = readers.rows, readers.seen, readers.control
    start, tag = np.int64(-1), np.int64(0)  # of the interval that is being gathered
    open_now = np.int64(count)
    first, to = control[USED], control[USED]
    while entry != 0 and most > 0 and to < control[END]:
        stamp, access = rows[np.uint64(entry)].when >> GROWN_BITS, rows[np.uint64(entry)].access
        entry = np.int64(rows[np.uint64(entry)].before)
        most -= 1
        if start < 0 or stamp < start:
            open_now = np.int64(_open_at(levels, open_now, stamp))
            start = np.int64(_interval_start(levels, open_now, stamp))
            seen[0].tag += 2  # row 0 lends its field as the counter
            tag = seen[0].tag
        known = seen[access]
        if known.tag == tag + 1:  # two of it are kept
            kept = rows[np.uint64(known.entry)]
            kept.when = min(kept.when, stamp << GROWN_BITS)
        elif known.tag != tag or rows[np.uint64(known.entry)].when != stamp << GROWN_BITS:
            known.tag = tag + np.int64(known.tag == tag)
            known.entry = to
            to = _put(rows, to, access, stamp)
    return _ended(readers, first, to, entry)


@inlined
def _copied(readers: Any, entry: Any) -> Any:
    """Copy a list as it is. Its first entry."""
    rows, control = readers.rows, readers.control
    first, to = control[USED], control[USED]
    while entry != 0 and to < control[END]:
        to = _put(rows, to, rows[np.uint64(entry)].access, rows[np.uint64(entry)].when >> GROWN_BITS)
        entry = np.int64(rows[np.uint64(entry)].before)
    return _ended(readers, first, to, entry)


@inlined
def _put(rows: Any, to: Any, access: Any, stamp: Any) -> Any:
    """Write the entry `to`, which leads to the one behind it; which that is."""
    entry = rows[np.uint64(to)]
    entry.when = stamp << GROWN_BITS
    entry.access = access
    entry.before = to + 1
    return to + 1


@inlined
def _ended(readers: Any, first: Any, to: Any, rest: Any) -> Any:
    """The list of the entries first .. to - 1, and then of `rest`."""
    control = readers.control
    if to == control[END]:  # the rest may not be copied
        control[EXHAUSTED] = 1
        rest = rest - rest
    control[USED] = to
    if to == first:
        return rest
    readers.rows[np.uint64(to - 1)].before = rest
    return first
