"""MESI between the private levels of several cores (Papamarcos and Patel, A low-overhead coherence solution, 1984).

A line that a core has written (modified) is in no other core's levels. So a core that asks for a line, and does not
have it, makes the one that has written it write it back to the first level that is shared, or to memory; a core that
writes a line takes it out of all others. Whether a line that is not dirty is exclusive or shared is not kept: a store
to it looks whether another core has it.
"""

from __future__ import annotations

from typing import Any

from tracekit.caches.kernels.exclusive import hand_down
from tracekit.caches.kernels.fields import (
    BASE,
    EXCLUSIVE,
    INVALIDATIONS,
    MASK,
    POLICY,
    PRIVATE,
    TRANSFERS,
    WAYS,
    WRITE_BACKS,
    WRITTEN,
)
from tracekit.caches.kernels.fill import fill, used
from tracekit.caches.kernels.ways import take_out, way_of
from tracekit.jit.kernel import kernel


@kernel
def snoop(
    words: Any, ages: Any, shape: Any, rules: Any, random: Any, counts: Any, core: Any, line: Any, store: Any
) -> None:
    """What a core's access to a line asks of the others: all lose it if it is stored, and a dirty one is written back.

    Counts, of memory's row, a transfer if another core had it dirty, and an invalidation for each core that loses it.
    """
    if is_enough(words, shape, rules, core, line, store):
        return
    levels, private = shape.shape[1], rules[PRIVATE]
    was_dirty = False
    for other in range(shape.shape[0]):
        if other == core:
            continue
        held, dirty = False, False
        for level in range(private):
            ways = shape[other, level, WAYS]
            first = shape[other, level, BASE] + (line & shape[other, level, MASK]) * ways
            way = way_of(words, first, ways, line)
            if way >= 0:
                held = True
                dirty = dirty or words[first + way] & 1 == 1
                if store:
                    take_out(words, first, ways, way, rules[POLICY])
                else:
                    words[first + way] &= ~1
        if held and store:
            counts[levels, INVALIDATIONS] += 1
        was_dirty = was_dirty or dirty
    if was_dirty:
        counts[levels, TRANSFERS] += 1
        counts[private - 1, WRITE_BACKS] += 1
        if private == levels:
            counts[levels, WRITTEN] += 1
        elif used(words, ages, shape, rules, core, private, line, True):
            return
        elif rules[EXCLUSIVE]:
            hand_down(words, ages, shape, rules, random, counts, core, private, line << 1 | 1)
        else:
            fill(words, ages, shape, rules, random, counts, core, private, line << 1 | 1)


@kernel
def is_enough(words: Any, shape: Any, rules: Any, core: Any, line: Any, store: Any) -> Any:
    """Whether the core may load, or store, a line as its private levels hold it."""
    for level in range(rules[PRIVATE]):
        ways = shape[core, level, WAYS]
        first = shape[core, level, BASE] + (line & shape[core, level, MASK]) * ways
        way = way_of(words, first, ways, line)
        if way >= 0 and (not store or words[first + way] & 1):
            return True
    return False
