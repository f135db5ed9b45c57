"""Kernels of a hierarchy of caches: what one touch of a line does to all levels.

A line is looked for level by level. Where it is found, or else memory, it comes from, and is put into all levels above,
the lowest first. A dirty line that has to go is written to the next level, where that counts as a use; if it is not
there it is put there, which may drive another line out. An inclusive level that loses a line takes it out of the levels
above. With write-through, a store is passed on to all levels and memory, and puts its line nowhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.caches.kernels.ways import EMPTY, LRU, put, take_out, use, way_of
from tracekit.jit.kernel import inlined, kernel

# Columns of Hierarchy.shape.
MASK, WAYS, BASE = range(3)  # sets - 1; ways of a set; the first word of the level

# Elements of Hierarchy.rules.
POLICY, THROUGH, INCLUSIVE, PREFETCH = range(4)
RULES = 4
"""How many there are."""

# Columns of Hierarchy.counts.
WRITE_BACKS, PREFETCHES, WRITTEN = range(3)  # the last one only in the last row, of memory
COUNTS = 3
"""How many there are."""


class Hierarchy(NamedTuple):
    """The levels, the one next to the processor first."""

    words: NDArray[np.int64]  # by level, set and way
    ages: NDArray[np.int64]  # the same; nothing in it with LRU
    shape: NDArray[np.int64]  # (levels, 3)
    rules: NDArray[np.int64]  # what they have in common
    random: NDArray[np.uint64]  # (1): of random replacement
    counts: NDArray[np.int64]  # (levels + 1, 3): lines; the last row is of memory


@inlined
def touch(caches: Any, line: Any, store: Any) -> Any:
    """An access to a line: the level where it was, or the number of levels if it was in none."""
    first = (line & caches.shape[0, MASK]) * caches.shape[0, WAYS]
    if caches.words[np.uint64(first)] >> 1 == line and caches.rules[POLICY] == LRU:
        # the line that was used last in this set: all that can change is whether it is dirty
        if not store:
            return 0
        if not caches.rules[THROUGH]:
            caches.words[np.uint64(first)] |= 1
            return 0
    return look(caches.words, caches.ages, caches.shape, caches.rules, caches.random, caches.counts, line, store)


@kernel
def look(words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, line: Any, store: Any) -> Any:
    """The same for any line."""
    if store and rules[THROUGH]:
        return write_through(words, ages, shape, rules, counts, line)
    found = fetch(words, ages, shape, rules, random, counts, line, store)
    if found > 0 and rules[PREFETCH]:
        prefetch(words, ages, shape, rules, random, counts, line + 1)
    return found


@kernel
def fetch(words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, line: Any, dirty: Any) -> Any:
    """Bring a line to the first level. Returns the level where it was, or the number of levels."""
    levels = shape.shape[0]
    found = 0
    while found < levels and not used(words, ages, shape, rules, found, line, dirty and found == 0):
        found += 1
    for level in range(found - 1, -1, -1):
        fill(words, ages, shape, rules, random, counts, level, line << 1 | (dirty and level == 0))
    return found


@kernel
def prefetch(words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, line: Any) -> None:
    """Bring a line to the first level unless it is there, which is then no use of it."""
    first = shape[0, BASE] + (line & shape[0, MASK]) * shape[0, WAYS]
    if way_of(words, first, shape[0, WAYS], line) < 0:
        found = fetch(words, ages, shape, rules, random, counts, line, False)
        for level in range(found):
            counts[level, PREFETCHES] += 1


@kernel
def write_through(words: Any, ages: Any, shape: Any, rules: Any, counts: Any, line: Any) -> Any:
    """A store that goes to all levels and to memory. Returns the first level that holds its line."""
    levels = shape.shape[0]
    found = levels
    for level in range(levels):
        if used(words, ages, shape, rules, level, line, False):
            found = min(found, level)
    counts[levels, WRITTEN] += 1
    return found


@kernel
def used(words: Any, ages: Any, shape: Any, rules: Any, level: Any, line: Any, dirty: Any) -> Any:
    """Use a line of a level, and say whether the level has it."""
    ways = shape[level, WAYS]
    first = shape[level, BASE] + (line & shape[level, MASK]) * ways
    way = way_of(words, first, ways, line)
    if way < 0:
        return False
    way = use(words, ages, first, ways, way, rules[POLICY])
    if dirty:
        words[first + way] |= 1
    return True


@kernel
def fill(words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, level: Any, word: Any) -> None:
    """Put a line into a level, and what it drives out into the next one if it is dirty, and so on."""
    while True:
        ways = shape[level, WAYS]
        first = shape[level, BASE] + ((word >> 1) & shape[level, MASK]) * ways
        word = put(words, ages, first, ways, word, rules[POLICY], random)
        if word == EMPTY:
            return
        if rules[INCLUSIVE]:
            word |= out_of_levels_above(words, shape, rules, counts, level, word >> 1)
        if not word & 1:
            return
        counts[level, WRITE_BACKS] += 1
        level += 1
        if level == shape.shape[0]:
            counts[level, WRITTEN] += 1
            return
        if used(words, ages, shape, rules, level, word >> 1, True):
            return


@kernel
def out_of_levels_above(words: Any, shape: Any, rules: Any, counts: Any, level: Any, line: Any) -> Any:
    """Take a line out of all levels above `level`. Returns 1 if one of them had written it."""
    dirty = np.int64(0)
    for above in range(level):
        ways = shape[above, WAYS]
        first = shape[above, BASE] + (line & shape[above, MASK]) * ways
        way = way_of(words, first, ways, line)
        if way >= 0 and take_out(words, first, ways, way, rules[POLICY]) & 1:
            counts[above, WRITE_BACKS] += 1
            dirty = np.int64(1)
    return dirty
