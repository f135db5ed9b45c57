"""Reuse distances from a list of lines, the one touched last first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

Event = tuple[int, str, int, int, int, int]


def distances(events: Sequence[Event], line: int) -> list[tuple[int, int, int | None]]:
    """Each touch of a line: the event's instruction and address, and the distance, None for the first touch."""
    recent: list[int] = []
    found: list[tuple[int, int, int | None]] = []
    for _, name, subject, address, size, _ in events:
        if name not in ("load", "store") or size == 0:
            continue
        for number in range(address // line, (address + size - 1) // line + 1):
            known = number in recent
            found.append((subject, address, len(list(takewhile(number.__ne__, recent))) if known else None))
            if known:
                recent.remove(number)
            recent.insert(0, number)
    return found


def misses(found: Sequence[int | None], lines: int) -> int:
    """Of a fully associative cache of so many lines."""
    return sum(distance is None or distance >= lines for distance in found)
