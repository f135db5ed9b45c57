"""Makes the tables of the kernels of reuse distances."""

from __future__ import annotations

import numpy as np

from tracekit.containers import arena, shadow
from tracekit.containers.kernels.shadow import Shadow
from tracekit.reuse.kernels.distances import CAPACITY, CONTROL, SLOTS, Slots

MOST_SLOTS = 1 << 31


def no_slots(slots: int = SLOTS) -> Slots:
    """No access so far, and so many slots to begin with, a power of two of at least 64."""
    rows = arena.arena(np.int64, MOST_SLOTS, spare=slots, beside=1).rows
    control = np.zeros(CONTROL, np.int64)
    control[CAPACITY] = slots
    words = len(rows) >> 6
    return Slots(rows, arena.reserve("u8", words + 1), arena.reserve("i4", words + 2), control)


def no_lines() -> Shadow:
    """The slot of each line's last access plus 1; a word of the shadow stands for a line."""
    return shadow.empty(np.int64)
