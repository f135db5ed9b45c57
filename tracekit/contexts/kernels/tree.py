"""Interned contexts: the tree of what was entered.

A *context* is what an access is recorded with: a node of the context tree. Rows are found by (parent, site), where a
site says what was entered: a loop, a depth, or a pair of call and function. Recursion has one of two rules
(``Contexts.rule``):

* STATIC, CAMP's: a call that may be one of a recursion, by the static call graph, is a leaf. Inside it the context is
  the pair of the leaf and the present depth; ``printed`` leads from a pair to its leaf.
* DYNAMIC, that of the calling context tree (Ammons, Ball, Larus, PLDI 97): a call of a function that has a node on the
  path goes back to that node (a FOLD, found like any other row). A function that may do so is a level while it is open:
  an *activation*. activations.py says what a dependence across them is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, find_or_make
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
CALLED_BITS = 14
NAMED = np.dtype([("key", "<u8"), ("name", "<i8")])
"""``key``: the name of the loops around << 32 | node; ``name``: the last that the place gave out, or 0."""
NAMED_BITS = 16
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
def pair_of(contexts: Any, leaf: Any, depth: Any) -> Any:
    """The context of a depth inside a recursion leaf, made if it is new."""
    return intern(contexts, leaf, SITE_DEPTH | depth, PAIR, contexts.tree.rows[leaf].function, -1, -1)
