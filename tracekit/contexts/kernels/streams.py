"""Where one stream stands: its stacks of frames and open levels, and its clock (contexts.py says what these are)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.jit.kernel import inlined, kernel

STREAM_BITS = 44
"""A stream's clock starts at its number shifted by this."""

NO_CALL = 0xFFFF_FFFF

FRAME = np.dtype(
    [
        ("context", "<i4"),
        ("depth", "<i4"),
        ("levels", "<i4"),  # those of the caller
        ("leaf", "<i4"),  # 1 if this activation opened the recursion leaf, 2 if its call is an OVERFLOW
        ("call", "<i8"),  # the instruction that called it, NO_CALL at a root
    ]
)
LEVEL = np.dtype(
    [
        ("invocation", "<i8"),  # clock at the start of the present invocation
        ("iteration_start", "<i8"),  # clock at the start of the present iteration; of a leaf: the invocation's
        ("iteration", "<i8"),  # number of the present iteration, from 1; of a leaf: activations so far
        ("accesses", "<i8"),  # of the stream before it opened
        ("first_run", "<i8"),  # of its iterations, in `runs`
        ("looped", "<i8"),  # when the present invocation of the innermost loop at or below began
        ("node", "<i4"),
        ("context", "<i4"),  # the context around it
        ("outermost", "<i4"),  # 1 unless its node is open already
        ("external", "<i4"),  # 1 if its node knows of an external call
        # See activations.py; levels are named by their number, plus 1.
        ("depth", "<i4"),  # of an activation: how many are open at its node, itself included; else 0
        ("before", "<i4"),  # of an activation: the one at its node that it is inside; 0: none
        ("first", "<i4"),  # of an activation: the outermost at its node
        ("entered", "<i4"),  # the first activation above that is inside one at or below this level; 0: none
        ("bare", "<i4"),  # the next level below that has no `entered`
        ("loops", "<u4"),  # the name of the stack of loops at and below it (`name_loops`); 0: it has none
        ("nest", "<i4"),  # how many loops these are; a leaf counts as one
        ("reserved", "<i4"),
    ]
)
TELLING_LEVEL = np.dtype([("level", "<i8"), ("chain", "<i8")])
"""The number of the level; the name of the stack of telling levels up to it (`name_loops`), or NO_CHAIN."""
NO_CHAIN = -1
NEVER = (1 << 63) - 1
RUN = np.dtype([("start", "<i8"), ("stride", "<i8"), ("first", "<i8")])
"""Iterations first, first + 1, ... began at clock start, start + stride, ..., up to the next run."""

RECENT = 8
"""Iterations of a level whose beginnings are found without its runs."""

NO_LOOPS = 1
"""The name of the empty stack of loops."""

DATE = np.dtype([("stamp", "<i8"), ("invocation", "<i8"), ("iteration", "<i8")])
DATED = 1 << 10

# Elements of Stream.control.
CLOCK = 0
CONTEXT = 1  # the present context
LEAF_LEVEL = 2  # number of the leaf's level, or -1; inside an OVERFLOW NO_LEVEL
DEPTH = 3  # the depth in it
LEVELS = 4
"""Element of the service ``levels``' control: how many loops and recursions are open in the stream."""
FRAMES = 5
"""Element of the service ``levels``' control: how many calls are open in the stream."""
RUNS = 6  # how many runs
ACCESSES = 7  # loads and stores so far
TELLING = 8  # how many levels are in `telling`
CHAIN = 9  # the name of the stack of all telling levels, or NO_CHAIN
CONTROL = 10
"""How many there are."""
NO_LEVEL = 1 << 40


class Stream(NamedTuple):
    """Where one stream stands. An event takes at most one row of each; the driver makes room for a whole batch."""

    control: NDArray[np.int64]
    frames: NDArray[Any]  # FRAME
    levels: NDArray[Any]  # LEVEL
    telling: NDArray[Any]  # TELLING_LEVEL: of each level but activations that no other of their node was inside
    begun: NDArray[np.int64]  # 0; of each telling level when its present invocation and iteration began; NEVER
    recent: NDArray[np.int64]  # [level * RECENT + iteration % RECENT]: clocks at which its last iterations began
    runs: NDArray[Any]  # RUN
    dated: NDArray[Any]  # DATE: the iteration that was under way at a stamp, for stamps that were asked for lately
    open: NDArray[np.int32]  # node -> how many levels are open at it; of activations the innermost, plus 1


@inlined
def push_level(stream: Any, node: Any) -> Any:
    """Push a level at `node` and tick the clock; the new row.

    The caller fills in ``outermost`` and what is not the same as of the level below, and enters it in ``open``.
    """
    control = stream.control
    control[CLOCK] += 1
    level = stream.levels[control[LEVELS]]
    level.invocation = control[CLOCK]
    level.iteration_start = control[CLOCK]
    level.iteration = 1
    level.accesses = control[ACCESSES]
    level.first_run = control[RUNS]
    level.node = node
    level.context = control[CONTEXT]
    level.external = 0
    level.depth = 0
    level.entered = 0
    level.bare = control[LEVELS]
    if control[LEVELS] > 0:
        below = stream.levels[control[LEVELS] - 1]
        level.looped, level.loops, level.nest = below.looped, below.loops, below.nest
    else:
        level.looped, level.loops, level.nest = control[CLOCK], NO_LOOPS, 0
    control[LEVELS] += 1
    return level


@inlined
def push_telling(stream: Any, level: Any) -> None:
    """The new innermost level, number `level`, is one that dependences are told of."""
    control = stream.control
    stream.telling[np.uint64(control[TELLING])].level = level
    control[TELLING] += 1
    begin_last(stream.begun, control, control[CLOCK])


@inlined
def begin_last(begun: Any, control: Any, clock: Any) -> None:
    """The last telling level began at `clock`."""
    last = np.uint64(2 * control[TELLING])
    begun[last - np.uint64(1)] = clock
    begun[last] = clock
    begun[last + np.uint64(1)] = NEVER


@kernel
def insert_telling(telling: Any, begun: Any, control: Any, level: Any, invocation: Any) -> None:
    """So is a level further out, if it was not yet: an activation that another one is now inside."""
    place = control[TELLING]
    while place > 0 and telling[place - 1].level > level:
        place -= 1
    if place > 0 and telling[place - 1].level == level:
        return
    for above in range(control[TELLING], place, -1):
        telling[above].level = telling[above - 1].level
    for later in range(2 * control[TELLING] + 1, 2 * place, -1):
        begun[later + 2] = begun[later]
    begun[2 * place + 1] = invocation
    begun[2 * place + 2] = invocation
    telling[place].level = level
    control[TELLING] += 1
