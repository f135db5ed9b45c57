"""Where each digram of a grammar stands: a hash table of cache lines, of which a look-up reads one.

A bucket is a cache line: the keys of five entries (the two symbols), their places, and how many entries did not fit
and went on to the next bucket, and the next: eight counts of four bits each, of as many kinds of keys, so that most
keys that are nowhere are not looked for further on. A count that comes to 15 stays. An entry that goes leaves a free
slot, and nothing moves. The buckets double in place: an entry stays where it is, or goes as far up as there were
buckets.

What a place says is the grammar's own: a number that is not 0 of 32 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import GOLDEN
from tracekit.containers.kernels.prefetch import prefetch
from tracekit.jit.kernel import inlined, kernel

LINE = 8  # words of 64 bits
SLOTS = 5
FIRST_BUCKETS = 1 << 11
NOWHERE = np.int64(-1)
MOST = np.uint32(15)
"""That a count comes to."""

# Elements of Digrams.control.
BUCKETS = 0
ENTRIES = 1
CONTROL = 2
"""How many there are."""


class Digrams(NamedTuple):
    """The table. A slot is the number of its key in `keys`; `places` is the same memory."""

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]
    control: NDArray[np.int64]  # (CONTROL)


@kernel
def clear(table: Digrams) -> None:
    """No entry."""
    table.control[BUCKETS] = FIRST_BUCKETS
    table.control[ENTRIES] = 0
    for word in range(FIRST_BUCKETS * LINE):
        table.keys[word] = 0


@inlined
def has_room(table: Any) -> Any:
    """Whether two more entries fit for each bucket that there is; makes more buckets if not."""
    control = table.control
    if control[ENTRIES] <= 3 * control[BUCKETS]:
        return True
    if 2 * LINE * control[BUCKETS] > table.keys.size:
        return False
    _double(table.keys, table.places, control)
    return True


@inlined
def key_of(first: Any, second: Any) -> Any:
    """The key of two symbols; never 0, for no symbol is."""
    return (np.uint64(first) << np.uint64(32)) | np.uint64(second)


@inlined
def line_of(key: Any, buckets: Any) -> Any:
    """The first word of a key's bucket."""
    mixed = ((key ^ (key >> np.uint64(29))) * GOLDEN) >> np.uint64(32)
    return np.int64(mixed & np.uint64(buckets - 1)) * LINE


@inlined
def find(table: Any, key: Any) -> Any:
    """The slot of a key, or NOWHERE."""
    line = line_of(key, table.control[BUCKETS])
    slot = _slot_in(table.keys, line, key)
    if slot < 0 and _has_passed(table.places, line, key):
        slot = np.int64(_find_behind(table.keys, table.places, table.control[BUCKETS], line, key))
    return slot


@inlined
def expect(table: Any, first: Any, second: Any) -> None:
    """The digram of two symbols will be looked for."""
    prefetch(table.keys, line_of(key_of(first, second), table.control[BUCKETS]))


@inlined
def place_at(table: Any, slot: Any) -> Any:
    """Where the digram of a slot stands."""
    return table.places[_place_of(slot)]


@inlined
def set_place(table: Any, slot: Any, place: Any) -> None:
    """It stands somewhere else."""
    table.places[_place_of(slot)] = place


@inlined
def insert(table: Any, key: Any, place: Any) -> None:
    """Enter a digram that is not there."""
    line = line_of(key, table.control[BUCKETS])
    slot = _slot_in(table.keys, line, np.uint64(0))
    if slot < 0:
        slot = np.int64(_free_behind(table.keys, table.places, table.control[BUCKETS], line, key))
    table.keys[slot] = key
    table.places[_place_of(slot)] = place
    table.control[ENTRIES] += 1


@inlined
def remove(table: Any, key: Any, slot: Any) -> None:
    """Take the entry of a key out of its slot."""
    line = line_of(key, table.control[BUCKETS])
    table.keys[slot] = 0
    if line != slot & ~np.int64(LINE - 1):
        _unpass(table.places, table.control[BUCKETS], line, slot & ~np.int64(LINE - 1), key)
    table.control[ENTRIES] -= 1


@inlined
def _slot_in(keys: Any, line: Any, key: Any) -> Any:
    """The slot of a key in one bucket, without a branch."""
    slot = NOWHERE
    for each in range(SLOTS):
        slot = line + each if keys[line + each] == key else slot
    return slot


@inlined
def _place_of(slot: Any) -> Any:
    """The number of a slot's place: places follow the keys of a bucket."""
    return slot + (slot & ~np.int64(LINE - 1)) + 2 * SLOTS


@inlined
def _passed(line: Any) -> Any:
    """The number in `places` of what went on from a bucket."""
    return 2 * line + 2 * LINE - 1


@inlined
def _kind(key: Any) -> Any:
    """Where the count of a key's kind begins: 0, 4, ... 28."""
    return np.uint32((key * GOLDEN) >> np.uint64(61)) << np.uint32(2)


@inlined
def _has_passed(places: Any, line: Any, key: Any) -> Any:
    """Whether a key of this kind went on from a bucket."""
    return (places[_passed(line)] >> _kind(key)) & MOST != 0


@inlined
def _count_passed(places: Any, line: Any, key: Any, by: Any) -> None:
    """One more, or less, went on from a bucket."""
    counts, kind = places[_passed(line)], _kind(key)
    if (counts >> kind) & MOST != MOST:
        places[_passed(line)] = counts + (np.uint32(by) << kind)


@kernel
def _find_behind(keys: Any, places: Any, buckets: Any, line: Any, key: Any) -> int:
    """The slot of a key that is not in its own bucket."""
    while _has_passed(places, line, key):
        line = (line + LINE) & (buckets * LINE - 1)
        slot = _slot_in(keys, line, key)
        if slot >= 0:
            return int(slot)
    return int(NOWHERE)


@kernel
def _free_behind(keys: Any, places: Any, buckets: Any, line: Any, key: Any) -> int:
    """A free slot for a key behind its bucket, which is full."""
    slot = NOWHERE
    while slot < 0:
        _count_passed(places, line, key, 1)
        line = (line + LINE) & (buckets * LINE - 1)
        slot = _slot_in(keys, line, np.uint64(0))
    return int(slot)


@kernel
def _unpass(places: Any, buckets: Any, line: Any, to: Any, key: Any) -> None:
    """An entry that went on from one bucket to another has gone."""
    while line != to:
        _count_passed(places, line, key, -1)
        line = (line + LINE) & (buckets * LINE - 1)


@kernel
def _double(keys: Any, places: Any, control: Any) -> None:
    """Twice as many buckets. An entry is as far behind its own bucket as it was."""
    words = control[BUCKETS] * LINE
    for word in range(words, 2 * words):
        keys[word] = 0
    for line in range(0, words, LINE):
        places[_passed(line)] = 0
    control[BUCKETS] *= 2
    for line in range(0, words, LINE):
        for slot in range(line, line + SLOTS):
            key = keys[slot]
            if key == 0:
                continue
            passed = line_of(key, control[BUCKETS])
            to = (passed + ((line - passed) & (words - 1))) & (2 * words - 1)
            if to != line:
                keys[slot + words] = key
                places[_place_of(slot + words)] = places[_place_of(slot)]
                keys[slot] = 0
            while passed != to:
                _count_passed(places, passed, key, 1)
                passed = (passed + LINE) & (2 * words - 1)
