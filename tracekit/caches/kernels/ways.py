"""The ways of one set: finding a line, putting one in, and which one goes.

With LRU the ways are in the order of their last uses, the newest first. Else a line stays in its way, and `ages` says
who goes: for tree-PLRU one word for each set, whose bit n says in which half below node n the victim is (node 1 is the
root, the children of n are 2n and 2n + 1, the leaf of way w is node w + ways); for SRRIP (Jaleel et al., High
performance cache replacement using re-reference interval prediction, 2010, hit priority, two bits) a number for each
way. An empty way is taken first, the one of the lowest number.

A way is a word: the line's number << 1, and whether it was written (dirty); EMPTY without a line.

In these kernels `words` (all ways of all sets, i8) and `ages` (the same, i8) are those of a Hierarchy, `first` is the
place of a set's first word, `ways` how many ways it has, and `policy` one of LRU, PLRU, SRRIP, RANDOM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.jit.kernel import kernel

EMPTY = -(1 << 63)
"""No line of two bytes or more has this number, the last ones of the address space (-1, -2, ...) included."""

LRU, PLRU, SRRIP, RANDOM = range(4)
"""Policies."""

DISTANT, LONG = 3, 2
"""Re-reference predictions of SRRIP: of a victim, and of a new line."""


@kernel
def way_of(words: Any, first: Any, ways: Any, line: Any) -> Any:
    """The way of the set at `first` that holds the line, -1 if none does."""
    for way in range(ways):
        if words[np.uint64(first + way)] >> 1 == line:
            return way
    return -1


@kernel
def use(words: Any, ages: Any, first: Any, ways: Any, way: Any, policy: Any) -> Any:
    """The line in this way is used: what the policy makes of it. Returns its way from now on."""
    if policy == LRU:
        word = words[np.uint64(first + way)]
        for behind in range(way, 0, -1):
            words[np.uint64(first + behind)] = words[np.uint64(first + behind - 1)]
        words[np.uint64(first)] = word
        return 0
    if policy == PLRU:
        point_away(ages, first, ways, way)
    elif policy == SRRIP:
        ages[first + way] = 0
    return way


@kernel
def point_away(ages: Any, first: Any, ways: Any, way: Any) -> None:
    """PLRU: the bits on the way from this leaf to the root lead elsewhere."""
    node = way + ways
    while node > 1:
        bit = np.int64(1) << (node >> 1)
        if node & 1:
            ages[first] &= ~bit
        else:
            ages[first] |= bit
        node >>= 1


@kernel
def put(words: Any, ages: Any, first: Any, ways: Any, word: Any, policy: Any, random: Any) -> Any:
    """Put a line into its set, as used now. Returns the word that had to go, or EMPTY.

    random (1) u8: the state of the generator.
    """
    if policy == LRU:
        gone = words[np.uint64(first + ways - 1)]
        for behind in range(ways - 1, 0, -1):
            words[np.uint64(first + behind)] = words[np.uint64(first + behind - 1)]
        words[np.uint64(first)] = word
        return gone
    way = way_of(words, first, ways, EMPTY >> 1)
    if way < 0:
        way = victim(ages, first, ways, policy, random)
    gone = words[first + way]
    words[first + way] = word
    if policy == PLRU:
        point_away(ages, first, ways, way)
    elif policy == SRRIP:
        ages[first + way] = LONG
    return gone


@kernel
def victim(ages: Any, first: Any, ways: Any, policy: Any, random: Any) -> Any:
    """The way of a full set whose line goes, by any policy but LRU. random (1) u8: the state of the generator."""
    if policy == PLRU:
        node = 1
        while node < ways:
            node = 2 * node + ((ages[first] >> node) & 1)
        return node - ways
    if policy == SRRIP:
        while True:
            for way in range(ways):
                if ages[first + way] == DISTANT:
                    return way
            for way in range(ways):
                ages[first + way] += 1
    # Knuth's linear congruential generator (MMIX); its upper bits are the random ones
    random[0] = random[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return np.int64((random[0] >> np.uint64(33)) % np.uint64(ways))


@kernel
def take_out(words: Any, first: Any, ways: Any, way: Any, policy: Any) -> Any:
    """Empty a way. Returns what was in it."""
    gone = words[first + way]
    if policy == LRU:  # empty ways are the last ones
        for ahead in range(way, ways - 1):
            words[first + ahead] = words[first + ahead + 1]
        words[first + ways - 1] = EMPTY
    else:
        words[first + way] = EMPTY
    return gone
