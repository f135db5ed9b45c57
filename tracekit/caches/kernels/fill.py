"""Using a line that a level holds, and putting one into a level, which may drive others out.

In these kernels and those of exclusive.py and coherence.py `words`, `ages`, `shape`, `rules`, `random` and `counts` are
the arrays of a Hierarchy (hierarchy.py), `core` and `level` count from 0, `line` is a line's number (address >> log2 of
its bytes, i8), and a `word` is a line with its dirty bit (ways.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.caches.kernels.fields import BASE, INCLUSIVE, MASK, POLICY, PRIVATE, WAYS, WRITE_BACKS, WRITTEN
from tracekit.caches.kernels.ways import EMPTY, put, take_out, use, way_of
from tracekit.jit.kernel import kernel


@kernel
def used(words: Any, ages: Any, shape: Any, rules: Any, core: Any, level: Any, line: Any, dirty: Any) -> Any:
    """Use a line of a level, which becomes dirty if `dirty`. Returns whether the level has it."""
    ways = shape[core, level, WAYS]
    first = shape[core, level, BASE] + (line & shape[core, level, MASK]) * ways
    way = way_of(words, first, ways, line)
    if way < 0:
        return False
    way = use(words, ages, first, ways, way, rules[POLICY])
    if dirty:
        words[first + way] |= 1
    return True


@kernel
def fill(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, level: Any, word: Any
) -> None:
    """Put the line of a word into a level, and what it drives out into the next one if it is dirty, and so on.

    An inclusive level that loses a line takes it out of the levels above. Counts write-backs of each level, and lines
    written to memory.
    """
    while True:
        ways = shape[core, level, WAYS]
        first = shape[core, level, BASE] + ((word >> 1) & shape[core, level, MASK]) * ways
        word = put(words, ages, first, ways, word, rules[POLICY], random)
        if word == EMPTY:
            return
        if rules[INCLUSIVE]:
            if level < rules[PRIVATE]:
                word |= out_of_levels_above(words, shape, rules, counts, core, level, word >> 1)
            else:
                for each in range(shape.shape[0]):
                    word |= out_of_levels_above(words, shape, rules, counts, each, level, word >> 1)
        if not word & 1:
            return
        counts[level, WRITE_BACKS] += 1
        level += 1
        if level == shape.shape[1]:
            counts[level, WRITTEN] += 1
            return
        if used(words, ages, shape, rules, core, level, word >> 1, True):
            return


@kernel
def out_of_levels_above(words: Any, shape: Any, rules: Any, counts: Any, core: Any, level: Any, line: Any) -> Any:
    """Take a line out of all levels above `level` that a core has. Returns 1 if one of them had written it."""
    dirty = np.int64(0)
    for above in range(level):
        ways = shape[core, above, WAYS]
        first = shape[core, above, BASE] + (line & shape[core, above, MASK]) * ways
        way = way_of(words, first, ways, line)
        if way >= 0 and take_out(words, first, ways, way, rules[POLICY]) & 1:
            counts[above, WRITE_BACKS] += 1
            dirty = np.int64(1)
    return dirty
