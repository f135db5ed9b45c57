"""The stacks of frames and open levels of a stream, and the context (tree.py) that it is in.

A *level* is an open loop, the open recursion leaf, or an activation. Each keeps two readings of the stream's clock:
when its present invocation and its present iteration began. The clock ticks at both, so an earlier access
belongs to the present iteration if its stamp is not smaller. The stream's number stands in the upper
bits of its clock: stamps of two streams never compare as if they were of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.hash_table import GOLDEN, find_or_make
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
from tracekit.contexts.kernels.tree import (
    CALL,
    CALLED_BITS,
    DYNAMIC,
    FOLDED,
    LAST_NAME,
    LOOP,
    NAMED_BITS,
    NO_CALLS,
    OVERFLOW,
    RECURSION,
    RECURSION_LOOP,
    ROOT,
    SITE_LEFT_OUT,
    SITE_LOOP,
    STATIC,
    Contexts,
    Int,
    intern,
    pair_of,
)
from tracekit.jit.kernel import inlined, kernel


@inlined
def enter_function(contexts: Any, stream: Any, function: Any, call: Any) -> None:
    """function_entry."""
    if contexts.rule[0] == DYNAMIC:
        _enter_dynamic(contexts, stream, function, call)
    elif contexts.rule[0] == STATIC:
        _enter_static(contexts, stream, function, call)
    else:  # for allocation sites
        stream.frames[stream.control[FRAMES]].call = call
        stream.control[FRAMES] += 1


@inlined
def _enter_static(contexts: Any, stream: Any, function: Any, call: Any) -> None:
    control, nodes = stream.control, contexts.tree.rows
    context, depth, leaf = np.int64(control[CONTEXT]), np.int64(control[DEPTH]), 0
    if control[LEAF_LEVEL] >= 0:
        node = np.int64(stream.levels[control[LEAF_LEVEL]].node)
        if contexts.component[function] == contexts.component[nodes[node].function]:
            context = pair_of(contexts, node, depth + 1)
            stream.levels[control[LEAF_LEVEL]].iteration += 1
            depth += 1
    else:
        context = _enter_call(contexts, control, context, function, call)
        if nodes[context].kind == RECURSION:
            pair = pair_of(contexts, context, 1)
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
    if control[FRAMES] == 0:
        return
    control[FRAMES] -= 1
    if contexts.rule[0] == NO_CALLS:
        return
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
    place = (key * GOLDEN) >> np.uint64(64 - NAMED_BITS)
    known = contexts.named[place]
    name = np.int64(known.name)
    if around == 0 or (known.key != key and name >= LAST_NAME):
        name = np.int64(0)
    elif known.key != key:
        name = max(name, np.int64(place)) + (1 << NAMED_BITS)
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
