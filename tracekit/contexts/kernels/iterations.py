"""Iterations of the innermost open loop in which nothing else happens that the clock tells of: many at once, and back.

What such iterations do to a stream follows from their number, so a callback for many accesses (modules/ranges.py) need
not go through them: it says which of them an access is in only where it looks at the open levels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.contexts.kernels.contexts import iterate
from tracekit.contexts.kernels.streams import CLOCK, LEVELS, RECENT, RUNS, TELLING
from tracekit.jit.kernel import inlined, kernel


class Mark(NamedTuple):
    """Where the innermost loop stood: what its iterations change."""

    clock: int
    iteration: int
    began: int  # when the iteration did
    runs: int
    stride: int  # of the last run
    recent: tuple[int, int, int, int, int, int, int, int]


@inlined
def mark_of(stream: Any) -> Any:
    """Where the innermost level of a stream stands; of one that is no loop it says nothing."""
    control = stream.control
    innermost = max(control[LEVELS], 1) - 1
    level = stream.levels[np.uint64(innermost)]
    first = np.uint64(innermost * RECENT)
    recent = stream.recent
    return Mark(
        control[CLOCK],
        level.iteration,
        level.iteration_start,
        control[RUNS],
        stream.runs[np.uint64(max(control[RUNS], 1) - 1)].stride,
        (
            recent[first],
            recent[first + np.uint64(1)],
            recent[first + np.uint64(2)],
            recent[first + np.uint64(3)],
            recent[first + np.uint64(4)],
            recent[first + np.uint64(5)],
            recent[first + np.uint64(6)],
            recent[first + np.uint64(7)],
        ),
    )


@kernel
def go_back(stream: Any, mark: Any) -> None:
    """Let the innermost level stand where it did, some iterations ago."""
    control = stream.control
    level = stream.levels[np.uint64(control[LEVELS] - 1)]
    control[CLOCK] = mark.clock
    control[RUNS] = mark.runs
    level.iteration = mark.iteration
    level.iteration_start = mark.began
    stream.begun[np.uint64(2 * control[TELLING])] = mark.began
    stream.runs[np.uint64(mark.runs - 1)].stride = mark.stride
    first = (control[LEVELS] - 1) * RECENT
    for place, clock in enumerate(mark.recent):
        stream.recent[np.uint64(first + place)] = clock


@kernel
def iterate_often(stream: Any, count: Any) -> None:
    """`count` events loop_iteration of the innermost level, one right after the other."""
    control = stream.control
    if not is_in_loop(stream):
        return
    left = np.int64(count)
    while left > 0 and not is_steady(stream):
        iterate(stream)
        left -= 1
    if left > 0:
        level = stream.levels[np.uint64(control[LEVELS] - 1)]
        control[CLOCK] += left
        level.iteration += left
        level.iteration_start = control[CLOCK]
        stream.begun[np.uint64(2 * control[TELLING])] = control[CLOCK]
        for ago in range(left if left < RECENT else RECENT):
            place = (control[LEVELS] - 1) * RECENT + ((level.iteration - ago) & (RECENT - 1))
            stream.recent[np.uint64(place)] = control[CLOCK] - ago


@inlined
def is_in_loop(stream: Any) -> Any:
    """Whether the innermost level is a loop, whose iterations take a tick of the clock."""
    count = stream.control[LEVELS]
    return count > 0 and stream.levels[np.uint64(count - 1)].depth == 0


@inlined
def is_steady(stream: Any) -> Any:
    """Whether the innermost loop's last iterations took one tick each: then the next such one goes on their run."""
    control = stream.control
    run, level = stream.runs[np.uint64(control[RUNS] - 1)], stream.levels[np.uint64(control[LEVELS] - 1)]
    return run.stride == 1 and control[CLOCK] == run.start + level.iteration - run.first
