"""Which rows of a forest in pre-order lie below each node, and how deep each node lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.formats.events import NONE

Indices = npt.NDArray[np.int64]


def subtree_ends(parents: npt.NDArray[np.unsignedinteger[Any]]) -> Indices:
    """Of each node the first row behind its subtree, which begins with the node itself.

    `parents` (nodes,) u4: rows of a forest in pre-order, NONE at a root. Returns (nodes,) i8. It takes a few
    passes over the rows for each doubling of the depth.
    """
    rows = np.arange(len(parents))
    by_parent = np.argsort(parents, kind="stable")
    are_siblings = parents[by_parent[1:]] == parents[by_parent[:-1]]
    next_sibling = np.full(len(parents), len(parents), np.int64)
    next_sibling[by_parent[:-1][are_siblings]] = by_parent[1:][are_siblings]
    # A last sibling's subtree ends where its parent's does.
    decides = np.where((next_sibling < len(parents)) | (parents == NONE), rows, parents)
    while not np.array_equal(decides, further := decides[decides]):
        decides = further
    return next_sibling[decides]


def count_around(ends: Indices, are_counted: npt.NDArray[np.bool_]) -> Indices:
    """For each node how many of those that are counted are the node itself or around it.

    `ends` (nodes,): as :func:`subtree_ends` has them; `are_counted` (nodes,). Returns (nodes,) i8.
    """
    changes = np.zeros(len(ends) + 1, np.int64)
    changes[:-1] += are_counted
    changes -= np.bincount(ends[are_counted], minlength=len(changes))
    return np.cumsum(changes[:-1])
