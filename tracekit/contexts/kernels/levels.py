"""Reads the open levels: which of them an earlier access shares, and how many iterations ago it was made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.streams import DATED, DEPTH, LEAF_LEVEL, LEVELS, RECENT, RUNS, TELLING
from tracekit.jit.kernel import inlined, kernel


@inlined
def distance_to(stream: Any, level: Any, stamp: Any) -> Any:
    """How many iterations of the open level number `level` ago `stamp` was, which is in its present invocation."""
    iteration = stream.levels[np.uint64(level)].iteration
    if stamp >= _began(stream, level, iteration - (RECENT - 1)):
        distance = np.int64(0)
        while stamp < _began(stream, level, iteration - distance):
            distance += 1
        return distance
    return iteration - np.int64(_iteration_of(stream, level, stamp))


@inlined
def _iteration_of(stream: Any, level: Any, stamp: Any) -> Any:
    """The iteration that was under way at `stamp`; the same are asked for again and again, for each stored much."""
    begun = stream.levels[np.uint64(level)].invocation
    known = stream.dated[np.uint64((stamp ^ (begun << 3)) & (DATED - 1))]
    if known.stamp != stamp or known.invocation != begun:
        first, end = np.int64(stream.levels[level].first_run), _end_of_runs(stream, level)
        known.iteration = _iteration_at(stream.runs, first, end, stream.levels[level].iteration, stamp)
        known.stamp = stamp
        known.invocation = begun
    return known.iteration


@inlined
def iteration_at(stream: Any, level: Any, stamp: Any) -> Any:
    """The same, of a copy of the stream that nobody else looks at: nothing is noted."""
    first, end = np.int64(stream.levels[level].first_run), _end_of_runs(stream, level)
    return np.int64(_iteration_at(stream.runs, first, end, stream.levels[level].iteration, stamp))


@inlined
def _began(stream: Any, level: Any, iteration: Any) -> Any:
    """The clock at which one of the last RECENT iterations began; no later than the invocation for one before it."""
    return stream.recent[np.uint64(level * RECENT + (iteration & (RECENT - 1)))]


@inlined
def is_between(stream: Any, level: Any, stamp: Any, least: Any, greatest: Any) -> Any:
    """Whether `stamp` was surely from `least` (at least 1) to `greatest` iterations before the level's present one.

    False says nothing. `stamp` is before the present iteration.
    """
    iteration = stream.levels[np.uint64(level)].iteration
    return stamp >= _began(stream, level, iteration - min(greatest, RECENT - 1)) and is_from(
        stream, level, stamp, least
    )


@inlined
def is_from(stream: Any, level: Any, stamp: Any, least: Any) -> Any:
    """Whether `stamp` was surely at least `least` iterations before the level's present one; False says nothing."""
    iteration = stream.levels[np.uint64(level)].iteration
    return least == 1 or (least < RECENT and stamp < _began(stream, level, iteration - least + 1))


@kernel
def _iteration_at(runs: Any, first: Any, end: Any, present: Any, stamp: Any) -> int:
    """The iteration that was under way at `stamp`; a level's runs are those from `first` to `end` - 1."""
    low = high = end - 1
    step = np.int64(1)
    while runs[low].start > stamp:  # most dependences are short: look near the end first
        high = low - 1
        low = max(first, low - step)
        step *= 2
    while low < high:  # the last run that starts at or before the stamp
        middle = (low + high + 1) >> 1
        if runs[middle].start <= stamp:
            low = middle
        else:
            high = middle - 1
    run = runs[low]
    iteration = run.first
    if run.stride > 0:
        iteration += (stamp - run.start) // run.stride
        if low + 1 < end:
            iteration = min(iteration, runs[low + 1].first - 1)
        else:
            iteration = min(iteration, present)
    return int(iteration)


@kernel
def began_at(stream: Any, level: Any, iteration: Any) -> int:
    """The clock at which an iteration of the open level number `level` began, no later than the present one.

    When its invocation began, for one before the first.
    """
    low, high = np.int64(stream.levels[np.uint64(level)].first_run), np.int64(_end_of_runs(stream, level)) - 1
    if iteration <= 1:
        return int(stream.levels[np.uint64(level)].invocation)
    while low < high:  # the last run that has begun with it or before it
        middle = (low + high + 1) >> 1
        if stream.runs[np.uint64(middle)].first <= iteration:
            low = middle
        else:
            high = middle - 1
    run = stream.runs[np.uint64(low)]
    return int(run.start + (iteration - run.first) * run.stride)


@inlined
def _end_of_runs(stream: Any, level: Any) -> Any:
    """The row behind the runs of a level."""
    if level + 1 < stream.control[LEVELS]:
        return np.int64(stream.levels[level + 1].first_run)
    return np.int64(stream.control[RUNS])


@inlined
def shared_levels(stream: Any, stamp: Any, depth: Any) -> Any:
    """How far an earlier access, made at clock `stamp` and recursion depth `depth`, shares the open levels.

    Returns 2 * n if it was made in the present iteration of the outermost n levels and in another invocation
    of the next that is telling, and 2 * n + 1 if it was made in another iteration of the same invocation of the next.
    """
    control, begun = stream.control, stream.begun
    leaf = control[LEAF_LEVEL]
    if leaf >= 0 and depth != control[DEPTH] and stamp >= stream.levels[np.uint64(leaf)].invocation:
        return 2 * leaf + 1
    return shared_from(stream, last_begun(begun, control, stamp))


@inlined
def shared_from(stream: Any, place: Any) -> Any:
    """The same for an access of which ``last_begun`` is known, outside of recursion leaves."""
    if place == 0:
        return np.int64(0)
    level = np.int64(stream.telling[np.uint64((place - 1) >> 1)].level)
    return 2 * level + 2 - (place & 1)


@inlined
def last_begun(begun: Any, control: Any, stamp: Any) -> Any:
    """The place in `begun` of what had begun last at a stamp.

    2 * n + 1 is the invocation of telling level n, 2 * n + 2 the present iteration of that; 0 if it was none of them.
    """
    place = 2 * np.int64(control[TELLING])
    farthest = place - 16  # most dependences are short
    while place > 0 and place > farthest:
        if stamp >= begun[np.uint64(place)]:
            return place
        place -= 1
    low = np.int64(0)
    while low < place:
        middle = (low + place + 1) >> 1
        if stamp >= begun[np.uint64(middle)]:
            low = middle
        else:
            place = middle - 1
    return low
