"""Makes the map of live objects that ``kernels/objects.py`` works on."""

from __future__ import annotations

import numpy as np

from tracekit.replay import arena, space
from tracekit.replay.kernels.objects import BYTES, CONTROL, EXTENT, NEAR, PAGE, WORDS, Objects
from tracekit.replay.keyed import keyed


def empty_objects() -> Objects:
    """A map without objects."""
    pages = keyed([], min(1 << 28, space.memory() // (4 * WORDS)), 4 * WORDS)
    return Objects(
        pages=pages,
        words=arena.reserve("i4", WORDS * len(pages.rows)),
        bytes=arena.arena(BYTES, 1 << 29, spare=1),
        bigs=arena.arena(EXTENT, 1 << 28, spare=1),
        near=np.zeros(NEAR, PAGE),
        control=np.zeros(CONTROL, np.int64),
    )
