"""Taking rows of an arena in a kernel."""

from __future__ import annotations

from typing import Any

from tracekit.formats.jit import inlined
from tracekit.replay.arena import EXHAUSTED, SPARE, USED

__all__ = ["SPARE", "take"]


@inlined
def take(arena: Any, count: Any) -> Any:
    """The first of `count` rows in sequence that are zero; of an arena that is used up, always its row 0."""
    row = arena.control[USED]
    if row + count > arena.rows.size:
        arena.control[EXHAUSTED] = 1
        return row - row  # a zero of the same type
    arena.control[USED] = row + count
    return row
