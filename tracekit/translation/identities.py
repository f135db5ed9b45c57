"""Makes the map of live objects that ``kernels/identities.py`` works on."""

from __future__ import annotations

import numpy as np

from tracekit.containers import arena, budget
from tracekit.containers.hash_table import copied_table, hash_table
from tracekit.containers.kernels.arena import USED
from tracekit.translation.kernels.identities import BYTES, CONTROL, EXTENT, NEAR, PAGE, WORDS, Objects


def empty_objects() -> Objects:
    """A map without objects."""
    pages = hash_table([], *_page_rows())
    return Objects(
        pages=pages,
        words=arena.reserve("i4", WORDS * len(pages.rows)),
        bytes=arena.arena(BYTES, 1 << 29, spare=1),
        bigs=arena.arena(EXTENT, 1 << 28, spare=1),
        near=np.zeros(NEAR, PAGE),
        control=np.zeros(CONTROL, np.int64),
    )


def copied_objects(objects: Objects) -> Objects:
    """A copy of a map of objects that changes by itself."""
    pages = copied_table(objects.pages, *_page_rows())
    words = arena.reserve("i4", len(objects.words))
    used = WORDS * int(objects.pages.control[USED])
    words[:used] = objects.words[:used]
    return Objects(
        pages,
        words,
        arena.copied(objects.bytes),
        arena.copied(objects.bigs),
        objects.near.copy(),
        objects.control.copy(),
    )


def _page_rows() -> tuple[int, int]:
    """Pages at most, and the bytes beside the row of each."""
    return min(1 << 28, budget.memory() // (4 * WORDS)), 4 * WORDS
