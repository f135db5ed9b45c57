"""Interned contexts, and the stacks of frames and open levels of a stream.

A *context* is what an access is recorded with: a node of the context tree. Rows are found by (parent, site), where a
site says what was entered: a loop, a depth, or a pair of call and function. Recursion has one of two rules
(``Contexts.rule``):

* STATIC, CAMP's: a call that may be one of a recursion, by the static call graph, is a leaf. Inside it the context is
  the pair of the leaf and the present depth; ``printed`` leads from a pair to its leaf.
* DYNAMIC, that of the calling context tree (Ammons, Ball, Larus, PLDI 97): a call of a function that has a node on the
  path goes back to that node (a FOLD, found like any other row). A function that may do so is a level while it is open:
  an *activation*. activations.py says what a dependence across them is.

A *level* is an open loop, the open recursion leaf, or an activation. Each keeps two readings of the stream's clock:
when its present invocation and its present iteration began. The clock ticks at both, so an earlier access
belongs to the present iteration if its stamp is not smaller. The stream's number stands in the upper
bits of its clock: stamps of two streams never compare as if they were of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import GOLDEN, HashTable, find_or_make
from tracekit.contexts.kernels.activations import close_activation, open_activation
from tracekit.contexts.kernels.streams import (
    ACCESSES,
    CHAIN,
    CLOCK,
    CONTEXT,
    DEPTH,
    FRAMES,
    LEAF_LEVEL,
    LEVELS,
    NEVER,
    NO_CALL,
    NO_CHAIN,
    NO_LEVEL,
    NO_LOOPS,
    RECENT,
    RUNS,
    TELLING,
    push_level,
    push_telling,
)
from tracekit.jit.kernel import inlined, kernel

Int = Any
"""An integer in a kernel."""

NODE_FIELDS = [
    ("parent", "<i4"),  # -1 at a root
    ("kind", "<i4"),
    ("function", "<i4"),
    ("loop", "<i4"),
    ("call", "<i4"),
    ("depth", "<i4"),  # of a pair; else 0
    ("printed", "<i4"),  # the node that a profile shows: of a pair its leaf, else the row itself
    ("external", "<i4"),  # first external call made inside, or -1
    ("folded", "<i4"),  # FOLDED, LEFT_OUT, or 0
    ("reserved", "<i4"),
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
PAIR = 7  # from here on never shown
FOLD = 8  # the call goes back to the node `printed`
OVERFLOW = 9  # there are too many nodes: what the call enters counts at the node `printed`, and all inside

# What else is known of a node (`folded`).
FOLDED = 1  # of a call: a FOLD leads there, or it is entered again after one; of a loop: one leads out of it
LEFT_OUT = 2  # of a call: an OVERFLOW leads there

# Rules of recursion.
NO_CALLS = 0  # calls are not told apart: all loops are below one root
STATIC = 1
DYNAMIC = 2

CALLED = np.dtype([("site", "<u8"), ("context", "<i4"), ("row", "<i4")])
"""``site``: call + 1 << 32 | function; ``row``: what such a call from the context enters, 0: not known."""
CALLED_BITS = 13
NAMED = np.dtype([("key", "<u8"), ("name", "<i8")])
"""``key``: the name of the loops around << 32 | node."""
NAMED_BITS = 12
LAST_NAME = (1 << 32) - (1 << NAMED_BITS)
"""A place gives out names up to this one: its number plus multiples of how many places there are."""

SITE_LOOP = 1 << 30
SITE_DEPTH = 1 << 31
SITE_LEFT_OUT = 1 << 31  # a loop inside an OVERFLOW; DYNAMIC has no depths


class Contexts(NamedTuple):
    """All contexts of a profile. Row 0 of the tree is the root without a function."""

    tree: HashTable  # NODE_FIELDS, by parent << 32 | site
    sites: HashTable  # by call + 1 << 32 | function; a site's number is its row
    rule: NDArray[np.int64]  # one element: NO_CALLS, STATIC or DYNAMIC
    nodes: NDArray[np.int64]  # how many there are, and from how many on a call in a recursion makes none (DYNAMIC)
    called: NDArray[Any]  # CALLED: what calls entered lately, by a hash of context and site
    named: NDArray[Any]  # NAMED: the stacks of loops that were open lately, by a hash of the key
    recursing: NDArray[np.int64]  # function -> 1 if it may call itself, for all that is known by now
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
    printed = row
    if kind == CALL and contexts.rule[0] == DYNAMIC:
        kind, printed = _fold(contexts, row, parent, function)
    elif kind == CALL and (contexts.recursive[function] != 0 or _encloses(nodes, parent, function)):
        kind = RECURSION
    contexts.nodes[0] += np.int64(kind < PAIR)
    node = nodes[row]
    node.parent = parent
    node.kind = kind
    node.function = function
    node.loop = loop
    node.call = call
    node.printed = printed
    node.external = -1
    node.camp_id = -1
    node.least_iterations = -1
    if kind == ROOT:
        node.parent = -1
        node.camp_id = 0
    elif contexts.rule[0] == DYNAMIC and nodes[parent].kind == CALL and contexts.recursive[nodes[parent].function] != 0:
        node.camp_id = -1  # CAMP's tree has a leaf there
    elif kind == LOOP:
        node.camp_id = _sum(nodes[parent].camp_id, contexts.loop_offset[loop])
    elif kind == CALL or kind == RECURSION:
        node.camp_id = _call_id(contexts, parent, call, function)
    elif kind == PAIR:
        node.depth = site & (SITE_DEPTH - 1)
        node.printed = parent


@kernel
def _fold(contexts: Contexts, row: Int, parent: Int, function: Int) -> tuple[Int, Int]:
    """The kind of a new row for a call of `function` from the context `parent`, and the node that the call leads to."""
    nodes: Any = contexts.tree.rows
    known, leaf = np.int64(-1), np.int64(-1)  # the node of the function, and that of the outermost that may recurse
    above = np.int64(parent)
    while above >= 0:
        if nodes[above].kind == CALL:
            if nodes[above].function == function:
                known = above
            if contexts.recursing[nodes[above].function] != 0:
                leaf = above
        above = nodes[above].parent
    if known >= 0:
        contexts.recursing[function] = 1
        _mark_folded(nodes, parent, known, FOLDED)
        return np.int64(FOLD), known
    if leaf >= 0 and contexts.nodes[0] >= contexts.nodes[1]:
        _mark_folded(nodes, parent, leaf, LEFT_OUT)
        return np.int64(OVERFLOW), leaf
    return np.int64(CALL), np.int64(row)


@kernel
def _mark_folded(nodes: Any, inner: Int, outer: Int, how: Int) -> None:
    """A call from the node `inner` goes back to `outer`, and leaves the loops between the two."""
    nodes[outer].folded = max(nodes[outer].folded, how)
    while inner != outer:
        if nodes[inner].kind == LOOP:
            nodes[inner].folded = FOLDED
        inner = np.int64(nodes[inner].parent)


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
    if contexts.rule[0] == DYNAMIC:
        _enter_dynamic(contexts, stream, function, call)
    elif contexts.rule[0] == STATIC:
        _enter_static(contexts, stream, function, call)


@inlined
def _enter_static(contexts: Any, stream: Any, function: Any, call: Any) -> None:
    control, nodes = stream.control, contexts.tree.rows
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
def _enter_dynamic(contexts: Any, stream: Any, function: Any, call: Any) -> None:
    control, nodes = stream.control, contexts.tree.rows
    frame = stream.frames[control[FRAMES]]
    frame.context = control[CONTEXT]
    frame.levels = control[LEVELS]
    frame.leaf = 0
    frame.call = call
    if control[LEAF_LEVEL] < 0:
        row = _enter_call(contexts, control, np.int64(control[CONTEXT]), function, call)
        context = np.int64(nodes[row].printed)
        if nodes[row].kind == OVERFLOW:
            control[LEAF_LEVEL] = NO_LEVEL
            frame.leaf = 2
        elif contexts.recursing[function] != 0 and nodes[row].kind != ROOT:
            telling = control[TELLING]
            is_outermost = open_activation(stream, context)
            if control[TELLING] != telling:
                _name_telling(contexts, stream, telling)
            nodes[context].invocations += is_outermost
            nodes[context].folded = max(nodes[context].folded, FOLDED - is_outermost)
        control[CONTEXT] = context
    control[FRAMES] += 1


@inlined
def _enter_call(contexts: Any, control: Any, context: Any, function: Any, call: Any) -> Any:
    """The node of a function entered outside any recursion."""
    if call == NO_CALL or control[FRAMES] == 0:
        call = np.int64(-1)
        context = np.int64(0)
    site = (np.uint64(call + 1) << np.uint64(32)) | np.uint64(function)
    place = ((site ^ (np.uint64(context) << np.uint64(16))) * GOLDEN) >> np.uint64(64 - CALLED_BITS)
    known = contexts.called[place]
    if known.site != site or known.context != context or known.row == 0:
        number, _ = find_or_make(contexts.sites, site)
        known.row = intern(contexts, context, number, ROOT if call < 0 else CALL, function, -1, call)
        known.site = site
        known.context = context
    return np.int64(known.row)


@inlined
def leave_function(contexts: Any, stream: Any) -> None:
    """function_exit."""
    control = stream.control
    if contexts.rule[0] == NO_CALLS or control[FRAMES] == 0:
        return
    control[FRAMES] -= 1
    frame = stream.frames[control[FRAMES]]
    while control[LEVELS] > frame.levels:
        if frame.leaf != 0 and control[LEVELS] == frame.levels + 1:
            control[LEAF_LEVEL] = -1
        close_level(contexts, stream, 0)
    if frame.leaf == 2:
        control[LEAF_LEVEL] = -1
    control[CONTEXT] = frame.context
    control[DEPTH] = frame.depth


@inlined
def enter_loop(contexts: Any, stream: Any, loop: Any) -> None:
    """loop_invocation."""
    control = stream.control
    around, site, kind = np.int64(control[CONTEXT]), SITE_LOOP | loop, LOOP
    is_inside_leaf = control[LEAF_LEVEL] >= 0
    if is_inside_leaf:
        kind = RECURSION_LOOP
        if contexts.rule[0] == STATIC:
            around = np.int64(stream.levels[control[LEAF_LEVEL]].node)
        else:
            site = SITE_LEFT_OUT | loop
    node = intern(contexts, around, site, kind, contexts.loop_function[loop], loop, -1)
    open_level(contexts, stream, node)
    if contexts.rule[0] != NO_CALLS and not is_inside_leaf:
        control[CONTEXT] = node


@inlined
def open_level(contexts: Any, stream: Any, node: Any) -> None:
    """Push a level at `node` and tick the clock."""
    level, control = push_level(stream, node), stream.control
    level.outermost = stream.open[node] == 0
    stream.recent[np.uint64((control[LEVELS] - 1) * RECENT + 1)] = control[CLOCK]
    push_telling(stream, control[LEVELS] - 1)
    level.looped = control[CLOCK]
    chain = np.int64(level.loops)
    level.loops = name_loops(contexts, chain, node)
    if control[CHAIN] == chain and level.loops != 0:  # all telling levels are loops
        chain = np.int64(level.loops)
    else:
        chain = _name_chain(contexts, control[CHAIN], node)
    stream.telling[np.uint64(control[TELLING] - 1)].chain = chain
    control[CHAIN] = chain
    level.nest += 1
    stream.open[node] += 1
    contexts.tree.rows[node].invocations += 1
    _begin_run(stream, control, 1)


@inlined
def name_loops(contexts: Any, around: Any, node: Any) -> Any:
    """The name of a stack of levels: `node` inside the stack that is named `around`.

    Two stacks of one name are the same; one stack has another name when it comes again after many others.
    """
    key = (np.uint64(around) << np.uint64(32)) | np.uint64(node)
    known = contexts.named[(key * GOLDEN) >> np.uint64(64 - NAMED_BITS)]
    name = np.int64(known.name)
    if around == 0 or (known.key != key and name >= LAST_NAME):
        name = np.int64(0)
    elif known.key != key:
        name += 1 << NAMED_BITS
        known.key = key
        known.name = name
    return name


@inlined
def _name_chain(contexts: Any, around: Any, node: Any) -> Any:
    """The same, but NO_CHAIN if it has no name."""
    name = np.int64(0)
    if around > 0:
        name = np.int64(name_loops(contexts, around, node))
    return name if name != 0 else np.int64(NO_CHAIN)


@kernel
def _name_telling(contexts: Contexts, stream: Any, before: Int) -> None:
    """Name the stack of telling levels after an activation was pushed; all, if one further out came to be telling."""
    telling, control = stream.telling, stream.control
    first = before if control[TELLING] == before + 1 else np.int64(0)
    chain = np.int64(NO_LOOPS)
    if first > 0:
        chain = np.int64(telling[first - 1].chain)
    for place in range(first, control[TELLING]):
        chain = np.int64(_name_chain(contexts, chain, np.int64(stream.levels[telling[place].level].node)))
        telling[place].chain = chain
    control[CHAIN] = chain


@inlined
def _pop_telling(stream: Any, control: Any) -> None:
    """The last telling level closes."""
    control[TELLING] -= 1
    stream.begun[np.uint64(2 * control[TELLING] + 1)] = NEVER
    control[CHAIN] = NO_LOOPS
    if control[TELLING] > 0:
        control[CHAIN] = stream.telling[np.uint64(control[TELLING] - 1)].chain


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
    level = stream.levels[control[LEVELS] - 1]
    if level.depth != 0:
        return
    control[CLOCK] += 1
    level.iteration += 1
    level.iteration_start = control[CLOCK]
    stream.begun[np.uint64(2 * control[TELLING])] = control[CLOCK]
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
    if control[TELLING] > 0 and stream.telling[np.uint64(control[TELLING] - 1)].level == control[LEVELS]:
        _pop_telling(stream, control)
    if level.depth != 0:
        close_activation(stream)
    else:
        stream.open[level.node] -= 1
        control[RUNS] = level.first_run
    control[CONTEXT] = level.context
    if level.depth > 1:
        return
    node = contexts.tree.rows[level.node]
    iterations = level.iteration - partial
    node.iterations += iterations
    node.most_iterations = max(node.most_iterations, iterations)
    if node.least_iterations < 0 or iterations < node.least_iterations:
        node.least_iterations = iterations
    if level.outermost != 0:
        node.accesses += control[ACCESSES] - level.accesses


@inlined
def leave_loop(contexts: Any, stream: Any, partial: Any) -> None:
    """loop_exit."""
    control = stream.control
    innermost = control[LEVELS] - 1
    if innermost >= 0 and innermost != control[LEAF_LEVEL] and stream.levels[innermost].depth == 0:
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
