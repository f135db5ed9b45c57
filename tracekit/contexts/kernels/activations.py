"""Activations: which open levels of functions that call themselves hold the source of a dependence.

All activations of a recursive function have one node. A dependence is *carried by the recursion* there if its
destination lies in an activation that was entered after the source, from inside an activation of the same node that was
open at the source already: the value goes into a recursive call. The distance is how many activations of the node were
entered on the way. (A value that comes back from a recursive call stays inside the activation that made the call.)

So it takes the clock alone to tell, and nothing grows with the depth but the stack of levels. Let i be the innermost
level whose present iteration holds the source (levels.py). What carries it is the outermost activation above i that is
inside another one of its node at or below i: ``entered`` of level i. It is kept for each open level: an activation is
that of all levels from the one around it upwards that have none yet. These are found by going down from the innermost
level along ``bare``, where each has the next below it; only what is above comes and goes, so the way stays as it was.

Most calls of a function that may call itself are not inside another one of it, and an activation that no other one of
its node is inside carries nothing. So it is *telling* (``Stream.telling``, where sources are looked for) only from the
first such call on.
"""

from __future__ import annotations

from typing import Any

from tracekit.contexts.kernels.streams import LEVELS, insert_telling, push_level, push_telling
from tracekit.jit.kernel import inlined


@inlined
def open_activation(stream: Any, node: Any) -> Any:
    """Push an activation at `node` and tick the clock; returns 1 if no other is open there."""
    control, levels = stream.control, stream.levels
    below, before = control[LEVELS], stream.open[node]
    level = push_level(stream, node)
    level.before = before
    stream.open[node] = control[LEVELS]
    if before == 0:
        level.outermost = 1
        level.depth = 1
        level.first = control[LEVELS]
    else:
        level.outermost = 0
        level.depth = levels[before - 1].depth + 1
        level.first = levels[before - 1].first
        levels[level.first - 1].iteration += 1
        if before == level.first:
            insert_telling(stream.telling, stream.begun, control, before - 1, levels[before - 1].invocation)
        push_telling(stream, control[LEVELS] - 1)
        while below >= before:
            levels[below - 1].entered = control[LEVELS]
            below = levels[below - 1].bare
    level.bare = below
    return level.outermost


@inlined
def close_activation(stream: Any) -> None:
    """The innermost level, an activation that has just been popped, was the innermost of its node."""
    levels, number = stream.levels, stream.control[LEVELS]
    before = levels[number].before
    stream.open[levels[number].node] = before
    below = number
    while before != 0 and below >= before:
        levels[below - 1].entered = 0
        below = levels[below - 1].bare


@inlined
def recursion_of(stream: Any, shared: Any) -> Any:
    """The activation, by the number of its level, that carries what ``shared_levels`` says `shared` of; -1: none."""
    if shared & 1 or shared == 0:
        return -1
    return stream.levels[(shared >> 1) - 1].entered - 1


@inlined
def activations_since(stream: Any, level: Any) -> Any:
    """How many activations of a recursion are open from the one on that is the level number `level`."""
    first = stream.levels[level]
    return stream.levels[stream.open[first.node] - 1].depth - first.depth + 1
