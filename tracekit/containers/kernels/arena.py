"""Arenas: arrays that hand out their rows one after the other, and never write out of bounds."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tracekit.jit.kernel import inlined

SPARE = 1024
"""Rows at the beginning of an arena that are never handed out: where writes go once it is used up."""

# Elements of Arena.control.
USED = 0  # rows handed out, with the spare ones
EXHAUSTED = 1  # 1 if rows were refused


LIMITED: list[type] = []
"""The structures that can be used up: with `rows` and with `control`, whose first elements are USED and EXHAUSTED."""

Structure = TypeVar("Structure", bound=type)


def limited(structure: Structure) -> Structure:
    """Note that kernels may use up a structure: what runs them checks it after each batch (arena.check)."""
    LIMITED.append(structure)
    return structure


@limited
class Arena(NamedTuple):
    """Rows to hand out; row 0 never is, so that 0 can stand for "none"."""

    rows: npt.NDArray[Any]  # of any dtype
    control: npt.NDArray[np.int64]  # (2): USED, EXHAUSTED


@inlined
def take(arena: Any, count: Any) -> Any:
    """Take `count` rows in sequence, which are zero; returns the first (int64), 0 if the arena is used up."""
    row = arena.control[USED]
    if row + count > arena.rows.size:
        arena.control[EXHAUSTED] = 1
        return row - row  # a zero of the same type
    arena.control[USED] = row + count
    return row
