"""In which loops both ends of a dependence were in one iteration.

That is so of all loops around the innermost one, which deep in a call tree are dozens. So a dependence is not marked at
each of them, but with the *set of loops*; thousands of dependences share one. A set is told by the way to it: the set
that it was, and the node that it has besides (`steps`). Two ways may lead to the same nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, find_or_make, row_of
from tracekit.jit.kernel import inlined, kernel

STEP_FIELDS = [("set", "<u4")]
"""The set that a step leads to: the number of its own row, or where it began if that had the node already."""
WITHIN_FIELDS: list[tuple[str, str]] = []
NAMED_SET = np.dtype([("loops", "<u4"), ("set", "<u4")])
"""The set of the loops of a stack (`LEVEL.loops`)."""
NAMED_SETS = 1 << 12
EMPTY = 0
"""The set of no loops."""
NODE_BITS = 32


class LoopSets(NamedTuple):
    """The sets, and which dependence lies in one iteration of which."""

    steps: HashTable  # STEP_FIELDS, by set << NODE_BITS | node
    within: HashTable  # by row of a dependence << 32 | set
    named: NDArray[Any]  # NAMED_SET, by the lowest bits of the name


@inlined
def mark_within(sets: Any, dependence: Any, loops: Any) -> None:
    """Enter that both ends of a dependence lie in one iteration of each of the loops of a set."""
    if loops != EMPTY:
        row_of(sets.within, (np.uint64(dependence) << np.uint64(32)) | np.uint64(loops))


@kernel
def set_of(sets: LoopSets, levels: Any, count: Any) -> int:
    """The set of the loops among the outermost `count` levels of a stream; one ``Contexts`` names all their stacks."""
    known, loops = _nearest_known(sets.named, levels, count)
    for level in range(known, count):
        if levels[level].depth == 0:  # else an activation, of which it is not said
            loops = _with_node(sets.steps, loops, np.int64(levels[level].node))
        _name(sets.named, levels[level].loops, loops)
    return int(loops)


@kernel
def unnamed_set_of(sets: LoopSets, levels: Any, count: Any) -> int:
    """The same, whoever named the stacks."""
    loops = np.int64(EMPTY)
    for level in range(count):
        if levels[level].depth == 0:
            loops = _with_node(sets.steps, loops, np.int64(levels[level].node))
    return int(loops)


@kernel
def number_sets(into: HashTable, steps: Any, numbers: Any) -> None:
    """numbers[n]: the set in the table `into` that is set n of another one, whose rows are `steps`."""
    for row in range(1, steps.size):
        if steps[row].set == row:
            key = np.int64(steps[row].key)
            numbers[row] = _with_node(into, numbers[key >> NODE_BITS], key & ((1 << NODE_BITS) - 1))


@inlined
def _nearest_known(named: Any, levels: Any, count: Any) -> Any:
    """How many of the outermost levels have a set that is known, at least as many as are none; and the set."""
    for level in range(count - 1, -1, -1):
        name = levels[level].loops
        known = named[name & (NAMED_SETS - 1)]
        if name != 0 and known.loops == name:
            return np.int64(level + 1), np.int64(known.set)
    return np.int64(0), np.int64(EMPTY)


@inlined
def _name(named: Any, name: Any, loops: Any) -> None:
    known = named[name & (NAMED_SETS - 1)]
    known.loops, known.set = name, loops


@inlined
def _with_node(steps: Any, loops: Any, node: Any) -> Any:
    """The set that `loops` becomes with a node."""
    row, is_new = find_or_make(steps, (np.uint64(loops) << np.uint64(NODE_BITS)) | np.uint64(node))
    if is_new:
        steps.rows[row].set = loops if _has_node(steps.rows, loops, node) else row
    return np.int64(steps.rows[row].set)


@inlined
def _has_node(steps: Any, loops: Any, node: Any) -> Any:
    """Whether a set has a node: all of its nodes are on the way to it."""
    while loops != EMPTY:
        key = np.int64(steps[loops].key)
        if key & ((1 << NODE_BITS) - 1) == node:
            return True
        loops = key >> NODE_BITS
    return False
