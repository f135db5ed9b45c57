"""Reads the open levels: which of them an earlier access shares, and how many iterations ago it was made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels.contexts import DEPTH, LEAF_LEVEL, LEVELS, RECENT, RUNS


@inlined
def distance_to(stream: Any, level: Any, stamp: Any) -> Any:
    """How many iterations of the open level number `level` ago `stamp` was, which is in its present invocation."""
    iteration = stream.levels[level].iteration
    if stamp >= _began(stream, level, iteration - (RECENT - 1)):
        distance = np.int64(0)
        while stamp < _began(stream, level, iteration - distance):
            distance += 1
        return distance
    first, end = np.int64(stream.levels[level].first_run), _end_of_runs(stream, level)
    return iteration - np.int64(_iteration_at(stream.runs, first, end, iteration, stamp))


@inlined
def _began(stream: Any, level: Any, iteration: Any) -> Any:
    """The clock at which one of the last RECENT iterations began; no later than the invocation for one before it."""
    return stream.recent[np.uint64(level * RECENT + (iteration & (RECENT - 1)))]


@inlined
def is_between(stream: Any, level: Any, stamp: Any, least: Any, greatest: Any) -> Any:
    """Whether `stamp` was surely from `least` (at least 1) to `greatest` iterations before the level's present one.

    False says nothing. `stamp` is before the present iteration.
    """
    if greatest >= RECENT:
        return False
    iteration = stream.levels[level].iteration
    return stamp >= _began(stream, level, iteration - greatest) and (
        least == 1 or stamp < _began(stream, level, iteration - least + 1))


@inlined
def is_apart(stream: Any, level: Any, stamp: Any, distance: Any) -> Any:
    """Whether `stamp` lies surely `distance` (at least 1) or more iterations before the level's present one.

    The last `distance` runs hold at least as many iterations. False says nothing.
    """
    if distance == 1:
        return True
    if distance <= RECENT:
        return stamp < _began(stream, level, stream.levels[level].iteration - distance + 1)
    run = _end_of_runs(stream, level) - distance
    return run >= stream.levels[level].first_run and stream.runs[run].start > stamp


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


@inlined
def clock_at(stream: Any, level: Any, iteration: Any) -> Any:
    """The clock at which an iteration of the open level number `level` began, in its present invocation."""
    if iteration == 1:
        return stream.levels[level].invocation
    first, end = np.int64(stream.levels[level].first_run), _end_of_runs(stream, level)
    return np.int64(_clock_at(stream.runs, first, end, iteration))


@kernel
def _clock_at(runs: Any, first: Any, end: Any, iteration: Any) -> int:
    low, high = np.int64(first), np.int64(end) - 1
    while low < high:  # the last run that starts with or before the iteration
        middle = (low + high + 1) >> 1
        if runs[middle].first <= iteration:
            low = middle
        else:
            high = middle - 1
    return int(runs[low].start + runs[low].stride * (iteration - runs[low].first))


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
    of the next, and 2 * n + 1 if it was made in another iteration of the same invocation of the next.
    """
    control, levels = stream.control, stream.levels
    leaf = control[LEAF_LEVEL]
    if leaf >= 0 and depth != control[DEPTH] and stamp >= levels[leaf].invocation:
        return 2 * leaf + 1
    level = np.int64(control[LEVELS]) - 1
    farthest = level - 8  # most dependences are short
    while level >= 0 and level > farthest:
        if stamp >= levels[level].iteration_start:
            return 2 * level + 2
        if stamp >= levels[level].invocation:
            return 2 * level + 1
        level -= 1
    low, high = np.int64(-1), level  # the last level whose invocation had begun
    while low < high:
        middle = (low + high + 1) >> 1
        if stamp >= levels[middle].invocation:
            low = middle
        else:
            high = middle - 1
    if low < 0:
        return np.int64(0)
    return 2 * low + 2 if stamp >= levels[low].iteration_start else 2 * low + 1
