"""Makes the map of live objects that ``kernels/identities.py`` works on."""

from __future__ import annotations

import numpy as np

from tracekit.containers import arena, budget
from tracekit.containers.hash_table import hash_table
from tracekit.translation.kernels.identities import BYTES, CONTROL, EXTENT, NEAR, PAGE, WORDS, Objects


def empty_objects() -> Objects:
    """A map without objects."""
    pages = hash_table([], min(1 << 28, budget.memory() // (4 * WORDS)), 4 * WORDS)
    return Objects(
        pages=pages,
        words=arena.reserve("i4", WORDS * len(pages.rows)),
        bytes=arena.arena(BYTES, 1 << 29, spare=1),
        bigs=arena.arena(EXTENT, 1 << 28, spare=1),
        near=np.zeros(NEAR, PAGE),
        control=np.zeros(CONTROL, np.int64),
    )
