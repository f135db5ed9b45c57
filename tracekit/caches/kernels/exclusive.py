"""Exclusive levels: a line moves to the first one from where it is; each gets what the one before drives out."""

from __future__ import annotations

from typing import Any

from tracekit.caches.kernels.fields import BASE, MASK, POLICY, WAYS, WRITE_BACKS, WRITTEN
from tracekit.caches.kernels.fill import used
from tracekit.caches.kernels.ways import EMPTY, put, take_out, way_of
from tracekit.jit.kernel import kernel


@kernel
def fetch_exclusive(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, line: Any, dirty: Any
) -> Any:
    """Bring a line to the first level. Returns the level where it was, or the number of levels."""
    if used(words, ages, shape, rules, core, 0, line, dirty):
        return 0
    levels = shape.shape[1]
    word = line << 1 | dirty
    found = 1
    while found < levels:
        ways = shape[core, found, WAYS]
        first = shape[core, found, BASE] + (line & shape[core, found, MASK]) * ways
        way = way_of(words, first, ways, line)
        if way >= 0:
            word |= take_out(words, first, ways, way, rules[POLICY]) & 1
            break
        found += 1
    hand_down(words, ages, shape, rules, random, counts, core, 0, word)
    return found


@kernel
def hand_down(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, level: Any, word: Any
) -> None:
    """Put a line into a level that does not hold it, what it drives out into the next one, and so on."""
    levels = shape.shape[1]
    while True:
        ways = shape[core, level, WAYS]
        first = shape[core, level, BASE] + ((word >> 1) & shape[core, level, MASK]) * ways
        word = put(words, ages, first, ways, word, rules[POLICY], random)
        if word == EMPTY:
            return
        counts[level, WRITE_BACKS] += word & 1
        level += 1
        if level == levels:
            counts[levels, WRITTEN] += word & 1
            return
        if used(words, ages, shape, rules, core, level, word >> 1, word & 1):
            return  # a shared level, which another core's private one had given the line to
