"""Counts of reuse distances, by steps at which miss-ratio curves are exact.

The *steps* are capacities of caches in lines, ascending: four for each power of two, and those that were asked for.
The count number `i` is that of the distances which are at least as great as `i` of the steps and no more; behind them
all is one for first accesses. So a cache with the capacity of step `i` misses what is counted behind number `i`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
MOST = 1 << 31
"""Lines of the largest cache."""


def steps(wanted: Sequence[int]) -> NDArray[np.int64]:
    """The steps, with those `wanted` among them, int64."""
    usual = {(4 + part << power) // 4 for power in range(MOST.bit_length()) for part in range(4)}
    return np.array(sorted({step for step in usual if step <= MOST} | set(wanted)), np.int64)


def octaves(all_steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """By n below 65: how many steps are at most 2**n, so that those at most a distance of n + 1 bits are as many or
    more."""
    return np.array([np.searchsorted(all_steps, 1 << min(bits, 62), "right") for bits in range(65)], np.int64)


def misses(all_steps: NDArray[np.int64], counts: NDArray[np.int64], capacity: int) -> int:
    """Of a cache of so many lines; `capacity` is one of the steps."""
    return int(counts[int(np.searchsorted(all_steps, capacity)) + 1 :].sum())


def row(all_steps: NDArray[np.int64], counts: NDArray[np.int64], capacities: Sequence[int]) -> Json:
    """What a profile says of one row of counts; ``distances`` are pairs: the least of a step, and how many."""
    lowest = [0, *all_steps.tolist()]
    return {
        "touches": int(counts.sum()),
        "cold": int(counts[-1]),
        "misses": [misses(all_steps, counts, capacity) for capacity in capacities],
        "distances": [[lowest[step], int(counts[step])] for step in np.flatnonzero(counts[:-1]).tolist()],
    }


def points(all_steps: NDArray[np.int64], counts: NDArray[np.int64], line: int) -> list[Json]:
    """The miss-ratio curve, up to the first size at which only first accesses miss."""
    total = int(counts.sum())
    if total == 0:
        return []
    left = total - int(counts[0])
    found = []
    for step, capacity in enumerate(all_steps.tolist()):
        found.append(_point(capacity * line, left, total))
        if left == counts[-1]:
            break
        left -= int(counts[step + 1])
    return found


def _point(size: int, missed: int, total: int) -> Json:
    return {"size": size, "misses": missed, "miss_ratio": round(missed / total, 6)}


def joined(curves: Sequence[tuple[Sequence[Json], int]]) -> list[Json]:
    """Of several runs; each is a curve and how many touches it is of. Behind its end a curve stays as it is."""
    total = sum(touches for _, touches in curves)
    at = [{point["size"]: point["misses"] for point in points} for points, _ in curves]
    found = []
    now = [points[0]["misses"] if points else 0 for points, _ in curves]
    for size in sorted({size for each in at for size in each}):
        now = [each.get(size, before) for each, before in zip(at, now)]
        found.append(_point(size, sum(now), total))
    return found


def added(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Counts, one by one."""
    return [one + other for one, other in zip(first, second)]


def added_steps(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> list[list[int]]:
    """Pairs of a step and a count: those of one step add."""
    counts = {step: count for step, count in first}  # noqa: C416
    for step, count in second:
        counts[step] = counts.get(step, 0) + count
    return [[step, counts[step]] for step in sorted(counts)]
