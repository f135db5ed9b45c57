"""Kernels of a hierarchy of caches: what one touch of a line does to all levels.

A line is looked for level by level. Where it is found, or else memory, it comes from, and is put into all levels above,
the lowest first. A dirty line that has to go is written to the next level, where that counts as a use; if it is not
there it is put there, which may drive another line out. An inclusive level that loses a line takes it out of the levels
above. With write-through, a store is passed on to all levels and memory, and puts its line nowhere. Exclusive levels
(exclusive.py) hold a line once.

The first levels may be private: each core has its own, which the protocol MESI keeps coherent (coherence.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.caches.kernels.coherence import snoop
from tracekit.caches.kernels.exclusive import fetch_exclusive
from tracekit.caches.kernels.fields import (
    BASE,
    EXCLUSIVE,
    MASK,
    NEXT_LINE,
    POLICY,
    PREFETCH,
    PREFETCHES,
    PRIVATE,
    THROUGH,
    WAYS,
    WRITTEN,
)
from tracekit.caches.kernels.fill import fill, used
from tracekit.caches.kernels.ways import LRU, way_of
from tracekit.jit.kernel import inlined, kernel


class Hierarchy(NamedTuple):
    """The levels, the one next to the processor first."""

    words: NDArray[np.int64]  # by level, core if it is private, set and way
    ages: NDArray[np.int64]  # the same; nothing in it with LRU
    shape: NDArray[np.int64]  # (cores, levels, 3)
    rules: NDArray[np.int64]  # what they have in common
    random: NDArray[np.uint64]  # (1): of random replacement
    counts: NDArray[np.int64]  # (levels + 1, COUNTS): lines; the last row is of memory


@inlined
def touch(caches: Any, core: Any, line: Any, store: Any) -> Any:
    """An access to a line: the level where it was, or the number of levels if it was in none."""
    first = caches.shape[core, 0, BASE] + (line & caches.shape[core, 0, MASK]) * caches.shape[core, 0, WAYS]
    word = caches.words[np.uint64(first)]
    if word >> 1 == line and caches.rules[POLICY] == LRU:
        # the line that was used last in this set: all that can change is whether it is dirty
        if not store:
            return 0
        if not caches.rules[THROUGH] and (caches.rules[PRIVATE] == 0 or word & 1):
            caches.words[np.uint64(first)] |= 1
            return 0
    return look(caches.words, caches.ages, caches.shape, caches.rules, caches.random, caches.counts, core, line, store)


@kernel
def look(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, line: Any, store: Any
) -> Any:
    """An access to any line (its number): the level where it was, or the number of levels if none."""
    if rules[PRIVATE]:
        snoop(words, ages, shape, rules, random, counts, core, line, store)
    if store and rules[THROUGH]:
        return write_through(words, ages, shape, rules, counts, core, line)
    found = fetch(words, ages, shape, rules, random, counts, core, line, store)
    if found > 0 and rules[PREFETCH] == NEXT_LINE:
        prefetch(words, ages, shape, rules, random, counts, core, line + 1)
    return found


@kernel
def fetch(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, line: Any, dirty: Any
) -> Any:
    """Bring a line to the first level. Returns the level where it was, or the number of levels."""
    if rules[EXCLUSIVE]:
        return fetch_exclusive(words, ages, shape, rules, random, counts, core, line, dirty)
    levels = shape.shape[1]
    found = 0
    while found < levels and not used(words, ages, shape, rules, core, found, line, dirty and found == 0):
        found += 1
    for level in range(found - 1, -1, -1):
        fill(words, ages, shape, rules, random, counts, core, level, line << 1 | (dirty and level == 0))
    return found


@kernel
def prefetch(words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, line: Any) -> None:
    """Bring a line to the first level unless it is there, which is then no use of it."""
    first = shape[core, 0, BASE] + (line & shape[core, 0, MASK]) * shape[core, 0, WAYS]
    if way_of(words, first, shape[core, 0, WAYS], line) < 0:
        if rules[PRIVATE]:
            snoop(words, ages, shape, rules, random, counts, core, line, False)
        found = fetch(words, ages, shape, rules, random, counts, core, line, False)
        for level in range(min(found, 1) if rules[EXCLUSIVE] else found):
            counts[level, PREFETCHES] += 1


@kernel
def write_through(words: Any, ages: Any, shape: Any, rules: Any, counts: Any, core: Any, line: Any) -> Any:
    """A store that goes to all levels and to memory. Returns the first level that holds its line."""
    levels = shape.shape[1]
    found = levels
    for level in range(levels):
        if used(words, ages, shape, rules, core, level, line, False):
            found = min(found, level)
    counts[levels, WRITTEN] += 1
    return found
