"""How many lines of a cache visits of a structure touch, for any order of its parts.

Visits that come in no order: the lines that the touched parts lie in, averaged over the places in a line at which the
structure may begin. Visits of one element after the other: the lines that the touched parts of all of them lie in, for
each element. What is not known of a run (lines that are still there of an earlier visit) counts for no layout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

LINE = 64
HEAP_ALIGNMENT = 16
HEAP_HEADER = 8
LEAST_CHUNK = 32
"""Of the allocator that most programs have, glibc's."""


@dataclass(frozen=True)
class Part:
    """Bytes of a structure that belong together: a field, or several that share a cell."""

    name: str
    type_name: str
    offset: int
    size: int
    is_open: bool = False
    """An array of open length, which stays the last: the bytes up to the structure's end are a part of it."""

    @property
    def alignment(self) -> int:
        """What it may need: that of its elements if it is an array, of its size else; at most what it has."""
        size = self.size
        if count := _ARRAY.search(self.type_name):
            size //= max(int(count[1]), 1)
        widest = 16 if self.type_name == "long double" else 8
        return min(1 << max(size - 1, 0).bit_length(), widest, self.offset & -self.offset or widest)


_ARRAY = re.compile(r"\[(\d+)\]$")

Place = tuple[int, int]
"""Offset and size."""


def packed(parts: Sequence[Part]) -> tuple[list[Place], int]:
    """Places of parts in this order, and the size of the structure that they make."""
    places, end, widest = [], 0, 1
    for part in parts:
        end = -(-end // part.alignment) * part.alignment
        places.append((end, part.size))
        end += part.size
        widest = max(widest, part.alignment)
    return places, -(-end // widest) * widest


def chunk(size: int) -> int:
    """Bytes from one heap object to the next that is made after it."""
    return max(-(-(size + HEAP_HEADER) // HEAP_ALIGNMENT) * HEAP_ALIGNMENT, LEAST_CHUNK)


def begins(pitch: int, is_array: bool) -> list[int]:
    """Places in a line at which an element may begin."""
    if not is_array:
        return list(range(0, LINE, HEAP_ALIGNMENT))
    return [(number * pitch) % LINE for number in range(LINE // gcd(pitch, LINE))]


def lines_touched(
    places: Sequence[Place], pitch: int, is_array: bool, in_order: float, used: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Lines per visit, for each row of `used` (visits, parts), which says what parts such a visit touches.

    pitch: bytes from one element to the next; in_order: share of the visits that come one element after the other.
    """
    if not places:
        return np.zeros(len(used))
    alone = np.mean([_lines(places, [start], used) for start in begins(pitch, is_array)], axis=0)
    count = LINE // gcd(pitch, LINE)
    together = _lines(places, [number * pitch for number in range(count)], used) / count
    return np.asarray((1 - in_order) * alone + in_order * together, np.float64)


def _lines(places: Sequence[Place], starts: Sequence[int], used: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How many lines the parts of all elements that begin at `starts` touch."""
    last = max(start + offset + size for start in starts for offset, size in places)
    inside = np.zeros((len(places), last // LINE + 1), np.float32)
    for row, (offset, size) in enumerate(places):
        for start in starts:
            inside[row, (start + offset) // LINE : (start + offset + max(size, 1) - 1) // LINE + 1] = 1
    return np.asarray((used.astype(np.float32) @ inside > 0).sum(axis=1), np.float64)
