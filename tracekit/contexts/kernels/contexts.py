"""Interned contexts, and the stacks of frames and open levels of a stream.

A *context* is what an access is recorded with: a node of the context tree or, inside a recursion, the
pair of its leaf and the present depth. Both are rows of one table; ``printed`` leads from a pair to its
leaf. Rows are found by (parent, site), where a site says what was entered: a loop, a depth, or a pair of
call and function.

A *level* is an open loop, or the open recursion leaf. Each keeps two readings of the stream's clock: when
its present invocation and its present iteration began. The clock ticks at both, so an earlier access
belongs to the present iteration if its stamp is not smaller. The stream's number stands in the upper
bits of its clock: stamps of two streams never compare as if they were of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, find_or_make
from tracekit.jit.kernel import inlined, kernel

Int = Any
"""An integer in a kernel."""

STREAM_BITS = 44
"""A stream's clock starts at its number shifted by this."""

NODE_FIELDS = [
    ("parent", "<i4"),  # -1 at a root
    ("kind", "<i4"),
    ("function", "<i4"),
    ("loop", "<i4"),
    ("call", "<i4"),
    ("depth", "<i4"),  # of a pair; else 0
    ("printed", "<i4"),  # the node that a profile shows: of a pair its leaf, else the row itself
    ("external", "<i4"),  # first external call made inside, or -1
    ("camp_id", "<i8"),
    ("invocations", "<i8"),
    ("iterations", "<i8"),
    ("most_iterations", "<i8"),
    ("least_iterations", "<i8"),  # -1 before the first invocation ends
    ("accesses", "<i8"),
]

# Kinds of nodes.
ROOT = 0
CALL = 1
LOOP = 2
RECURSION = 3
RECURSION_LOOP = 4
PAIR = 5  # never shown

FRAME = np.dtype(
    [
        ("context", "<i4"),
        ("depth", "<i4"),
        ("levels", "<i4"),  # those of the caller
        ("leaf", "<i4"),  # 1 if this activation opened the recursion leaf
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
        ("node", "<i4"),
        ("context", "<i4"),  # the context around it
        ("outermost", "<i4"),  # 1 unless its node is open already
        ("external", "<i4"),  # 1 if its node knows of an external call
    ]
)
RUN = np.dtype([("start", "<i8"), ("stride", "<i8"), ("first", "<i8")])
"""Iterations first, first + 1, ... began at clock start, start + stride, ..., up to the next run."""

RECENT = 8
"""Iterations of a level whose beginnings are found without its runs."""

DATE = np.dtype([("stamp", "<i8"), ("invocation", "<i8"), ("iteration", "<i8")])
DATED = 1 << 10

SITE_LOOP = 1 << 30
SITE_DEPTH = 1 << 31
NO_CALL = 0xFFFF_FFFF

# Elements of Stream.control.
CLOCK = 0
CONTEXT = 1  # the present context
LEAF_LEVEL = 2  # number of the leaf's level, or -1
DEPTH = 3  # the depth in it
LEVELS = 4
"""Element of the service ``levels``' control: how many loops and recursions are open in the stream."""
FRAMES = 5
"""Element of the service ``levels``' control: how many calls are open in the stream."""
RUNS = 6  # how many runs
ACCESSES = 7  # loads and stores so far
CONTROL = 8
"""How many there are."""


class Contexts(NamedTuple):
    """All contexts of a profile. Row 0 of the tree is the root without a function."""

    tree: HashTable  # NODE_FIELDS, by parent << 32 | site
    sites: HashTable  # by call + 1 << 32 | function; a site's number is its row
    aware: NDArray[np.int64]  # one element: 1 for contexts, 0 for the root alone and loops below it
    component: NDArray[np.int64]  # the rest: tracekit.contexts.static_ids.StaticTree
    recursive: NDArray[np.int64]
    loop_function: NDArray[np.int64]
    loop_offset: NDArray[np.int64]
    call_row: NDArray[np.int64]
    call_offset: NDArray[np.int64]
    first_target: NDArray[np.int64]
    targets: NDArray[np.int64]
    target: NDArray[np.int64]
    target_offset: NDArray[np.int64]


class Stream(NamedTuple):
    """Where one stream stands. An event takes at most one row of each; the driver makes room for a whole batch."""

    control: NDArray[np.int64]
    frames: NDArray[Any]  # FRAME
    levels: NDArray[Any]  # LEVEL
    recent: NDArray[np.int64]  # [level * RECENT + iteration % RECENT]: clocks at which its last iterations began
    runs: NDArray[Any]  # RUN
    dated: NDArray[Any]  # DATE: the iteration that was under way at a stamp, for stamps that were asked for lately
    open: NDArray[np.int32]  # node -> how many levels are open at it


@inlined
def intern(contexts: Any, parent: Any, site: Any, kind: Any, function: Any, loop: Any, call: Any) -> Any:
    """The row of `site` below `parent`, made if it is new."""
    key = (np.uint64(parent) << np.uint64(32)) | np.uint64(site)
    row, is_new = find_or_make(contexts.tree, key)
    if is_new:
        _describe(contexts, row, parent, site, kind, function, loop, call)
    return row


@kernel
def _describe(
    contexts: Contexts, row: Int, parent: Int, site: Int, kind: Int, function: Int, loop: Int, call: Int
) -> None:
    nodes: Any = contexts.tree.rows
    if kind == CALL and (contexts.recursive[function] != 0 or _encloses(nodes, parent, function)):
        kind = RECURSION
    node = nodes[row]
    node.parent = parent
    node.kind = kind
    node.function = function
    node.loop = loop
    node.call = call
    node.printed = row
    node.external = -1
    node.camp_id = -1
    node.least_iterations = -1
    if kind == ROOT:
        node.parent = -1
        node.camp_id = 0
    elif kind == LOOP:
        node.camp_id = _sum(nodes[parent].camp_id, contexts.loop_offset[loop])
    elif kind == CALL or kind == RECURSION:
        node.camp_id = _call_id(contexts, parent, call, function)
    elif kind == PAIR:
        node.depth = site & (SITE_DEPTH - 1)
        node.printed = parent


@kernel
def _encloses(nodes: Any, node: Int, function: Int) -> bool:
    """Whether `function` is open on the path to `node`: a recursion that the static tables do not show."""
    while node >= 0:
        kind = nodes[node].kind
        if (kind == ROOT or kind == CALL) and nodes[node].function == function:
            return True
        node = nodes[node].parent
    return False


@inlined
def _sum(identity: Any, offset: Any) -> Any:
    """identity + offset, or -1 if either is missing or the sum is beyond 63 bits."""
    if identity < 0 or offset < 0 or identity + offset < 0:
        return np.int64(-1)
    return identity + offset


@kernel
def _call_id(contexts: Contexts, parent: Int, call: Int, function: Int) -> int:
    if call < 0 or call >= contexts.call_row.size or contexts.call_row[call] < 0:
        return -1
    row = contexts.call_row[call]
    for target in range(contexts.first_target[row], contexts.first_target[row] + contexts.targets[row]):
        if contexts.target[target] == function:
            nodes: Any = contexts.tree.rows
            around = _sum(nodes[parent].camp_id, contexts.call_offset[row])
            return int(_sum(around, contexts.target_offset[target]))
    return -1


@inlined
def _pair(contexts: Any, leaf: Any, depth: Any) -> Any:
    return intern(contexts, leaf, SITE_DEPTH | depth, PAIR, contexts.tree.rows[leaf].function, -1, -1)


@inlined
def enter_function(contexts: Any, stream: Any, function: Any, call: Any) -> None:
    """function_entry."""
    control, nodes = stream.control, contexts.tree.rows
    if contexts.aware[0] == 0:
        return
    context, depth, leaf = np.int64(control[CONTEXT]), np.int64(control[DEPTH]), 0
    if control[LEAF_LEVEL] >= 0:
        node = np.int64(stream.levels[control[LEAF_LEVEL]].node)
        if contexts.component[function] == contexts.component[nodes[node].function]:
            context = _pair(contexts, node, depth + 1)
            stream.levels[control[LEAF_LEVEL]].iteration += 1
            depth += 1
    else:
        context = _enter_call(contexts, control, context, function, call)
        if nodes[context].kind == RECURSION:
            pair = _pair(contexts, context, 1)
            open_level(contexts, stream, context)
            control[LEAF_LEVEL] = control[LEVELS] - 1
            context, depth, leaf = pair, np.int64(1), 1
    frame = stream.frames[control[FRAMES]]
    frame.context = control[CONTEXT]
    frame.depth = control[DEPTH]
    frame.levels = control[LEVELS] - leaf
    frame.leaf = leaf
    frame.call = call
    control[FRAMES] += 1
    control[CONTEXT] = context
    control[DEPTH] = depth


@inlined
def _enter_call(contexts: Any, control: Any, context: Any, function: Any, call: Any) -> Any:
    """The node of a function entered outside any recursion."""
    if call == NO_CALL or control[FRAMES] == 0:
        call = np.int64(-1)
        context = np.int64(0)
    site, _ = find_or_make(contexts.sites, (np.uint64(call + 1) << np.uint64(32)) | np.uint64(function))
    return intern(contexts, context, site, ROOT if call < 0 else CALL, function, -1, call)


@inlined
def leave_function(contexts: Any, stream: Any) -> None:
    """function_exit."""
    control = stream.control
    if contexts.aware[0] == 0 or control[FRAMES] == 0:
        return
    control[FRAMES] -= 1
    frame = stream.frames[control[FRAMES]]
    while control[LEVELS] > frame.levels:
        if frame.leaf != 0 and control[LEVELS] == frame.levels + 1:
            control[LEAF_LEVEL] = -1
        close_level(contexts, stream, 0)
    control[CONTEXT] = frame.context
    control[DEPTH] = frame.depth


@inlined
def enter_loop(contexts: Any, stream: Any, loop: Any) -> None:
    """loop_invocation."""
    control = stream.control
    around = np.int64(control[CONTEXT])
    leaf = control[LEAF_LEVEL] >= 0
    kind = LOOP
    if leaf:
        around = np.int64(stream.levels[control[LEAF_LEVEL]].node)
        kind = RECURSION_LOOP
    node = intern(contexts, around, SITE_LOOP | loop, kind, contexts.loop_function[loop], loop, -1)
    open_level(contexts, stream, node)
    if contexts.aware[0] != 0 and not leaf:
        control[CONTEXT] = node


@inlined
def open_level(contexts: Any, stream: Any, node: Any) -> None:
    """Push a level at `node` and tick the clock."""
    control = stream.control
    control[CLOCK] += 1
    level = stream.levels[control[LEVELS]]
    control[LEVELS] += 1
    level.invocation = control[CLOCK]
    level.iteration_start = control[CLOCK]
    level.iteration = 1
    level.accesses = control[ACCESSES]
    level.first_run = control[RUNS]
    level.node = node
    level.context = control[CONTEXT]
    level.outermost = stream.open[node] == 0
    stream.recent[np.uint64((control[LEVELS] - 1) * RECENT + 1)] = control[CLOCK]
    level.external = 0
    stream.open[node] += 1
    contexts.tree.rows[node].invocations += 1
    _begin_run(stream, control, 1)


@inlined
def _begin_run(stream: Any, control: Any, iteration: Any) -> None:
    run = stream.runs[control[RUNS]]
    control[RUNS] += 1
    run.start = control[CLOCK]
    run.stride = 0
    run.first = iteration


@inlined
def iterate(stream: Any) -> None:
    """loop_iteration of the innermost level."""
    control = stream.control
    if control[LEVELS] == 0:
        return
    control[CLOCK] += 1
    level = stream.levels[control[LEVELS] - 1]
    level.iteration += 1
    level.iteration_start = control[CLOCK]
    stream.recent[np.uint64((control[LEVELS] - 1) * RECENT + (level.iteration & (RECENT - 1)))] = control[CLOCK]
    run = stream.runs[control[RUNS] - 1]
    ahead = level.iteration - run.first
    if ahead == 1 and run.stride == 0:
        run.stride = control[CLOCK] - run.start
    elif control[CLOCK] != run.start + run.stride * ahead:
        _begin_run(stream, control, level.iteration)


@inlined
def close_level(contexts: Any, stream: Any, partial: Any) -> None:
    """Pop the innermost level; `partial` is 1 if its last iteration only tested and left."""
    control = stream.control
    control[LEVELS] -= 1
    level = stream.levels[control[LEVELS]]
    node = contexts.tree.rows[level.node]
    iterations = level.iteration - partial
    node.iterations += iterations
    node.most_iterations = max(node.most_iterations, iterations)
    if node.least_iterations < 0 or iterations < node.least_iterations:
        node.least_iterations = iterations
    if level.outermost != 0:
        node.accesses += control[ACCESSES] - level.accesses
    stream.open[level.node] -= 1
    control[RUNS] = level.first_run
    control[CONTEXT] = level.context


@inlined
def leave_loop(contexts: Any, stream: Any, partial: Any) -> None:
    """loop_exit."""
    control = stream.control
    if control[LEVELS] > 0 and control[LEVELS] - 1 != control[LEAF_LEVEL]:
        close_level(contexts, stream, partial)


@inlined
def note_external(contexts: Any, stream: Any, call: Any) -> None:
    """external_call: every open level's node learns of it."""
    level = np.int64(stream.control[LEVELS]) - 1
    while level >= 0 and stream.levels[level].external == 0:
        stream.levels[level].external = 1
        node = contexts.tree.rows[stream.levels[level].node]
        if node.external < 0:
            node.external = call
        level -= 1
