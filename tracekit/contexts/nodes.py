"""The rows of a context tree."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class ContextKind(IntEnum):
    """What a node of the context tree is (field ``kind`` of ``nodes``)."""

    ROOT = 0  # main, a constructor, a thread's or a handler's first function; lamp: the only context
    CALL = 1  # a call site, and the function that it entered
    LOOP = 2
    RECURSION = 3  # the call that enters a recursion: a leaf, and a level whose iterations are depths
    RECURSION_LOOP = 4  # a loop open inside a recursion leaf, at whatever depth
    RECURSIVE_CALL = 5  # a call whose function was entered again from inside: one node for all of its activations
    RECURSIVE_LOOP = 6  # a loop from inside which that happened: what it calls has nodes around it, too


CALLS = (ContextKind.CALL, ContextKind.RECURSION, ContextKind.RECURSIVE_CALL)
"""Kinds of the nodes that a call site made."""
LOOPS = (ContextKind.LOOP, ContextKind.RECURSION_LOOP, ContextKind.RECURSIVE_LOOP)
"""Kinds of the nodes that are loops."""
RECURSIONS = (ContextKind.RECURSION, ContextKind.RECURSIVE_CALL)
"""Kinds of the nodes that are levels though they are no loops."""
PARTLY_BELOW = (ContextKind.RECURSION_LOOP, ContextKind.RECURSIVE_LOOP)
"""Kinds of the loops inside which accesses are made whose nodes are not below theirs."""


NODE = np.dtype(
    [
        ("parent", "<u4"),  # row of nodes; NONE at a root
        ("kind", "u1"),  # ContextKind
        ("function", "<u4"),  # the function whose code stands at this node: entered by a root or a call, around a loop
        ("loop", "<u4"),  # row of the program's loops, or NONE
        ("call", "<u4"),  # instruction of the call site, or NONE
        ("camp_id", "<i8"),  # -1: not foreseen by the static tree, or beyond 63 bits
        # The rest is of loops (LOOPS) and recursions (RECURSIONS); zero, external NONE, at other nodes.
        ("invocations", "<u8"),  # recursion: entries from outside
        ("iterations", "<u8"),  # without partial ones; recursion: activations of the recursive functions
        ("most_iterations", "<u8"),  # in one invocation
        ("least_iterations", "<u8"),  # in one invocation
        ("accesses", "<u8"),  # load and store events made while the node was open, callees included
        ("external", "<u4"),  # instruction of the first external call made inside, or NONE
    ]
)
"""The dtype of a row of the context tree, whose nodes stand in pre-order."""
