"""Strongly connected components of a directed graph given as two arrays of edges."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tracekit.jit.kernel import kernel

Indices: TypeAlias = npt.NDArray[np.int64]


def components(nodes: int, tails: Indices, heads: Indices) -> Indices:
    """Number the strongly connected components of a graph.

    ``tails`` and ``heads`` hold the two ends of each edge (``tail -> head``), values in
    ``0 .. nodes - 1``; repeated edges and self loops are allowed. Returns one component number per
    node; components are numbered in reverse topological order (a component's successors have
    smaller numbers). Raises ValueError if an end is out of range or the arrays differ in length.
    """
    tails = np.ascontiguousarray(tails, dtype=np.int64)
    heads = np.ascontiguousarray(heads, dtype=np.int64)
    if tails.shape != heads.shape:
        raise ValueError(f"{tails.size} tails but {heads.size} heads")
    if tails.size and not (min(tails.min(), heads.min()) >= 0 and max(tails.max(), heads.max()) < nodes):
        raise ValueError(f"an edge leaves the {nodes} nodes")
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=nodes), out=first[1:])
    successors = np.empty_like(heads)
    _by_tail(tails, heads, first[:nodes].copy(), successors)
    labels, index = (np.full(nodes, -1, dtype=np.int64) for _ in range(2))
    low, walk, pending = (np.zeros(nodes, np.int64) for _ in range(3))
    _tarjan(first, successors, labels, index, low, first[:nodes].copy(), walk, pending)
    return labels


@kernel
def _by_tail(tails: Indices, heads: Indices, following: Indices, successors: Indices) -> None:
    """Put the heads of each node's edges together, in their order; `following`: where those of a node begin."""
    for edge in range(tails.size):
        tail = tails[edge]
        successors[following[tail]] = heads[edge]
        following[tail] += 1


@kernel
def _tarjan(
    first: Indices,
    heads: Indices,
    labels: Indices,
    index: Indices,
    low: Indices,
    following: Indices,
    walk: Indices,
    pending: Indices,
) -> int:
    """Tarjan's algorithm with explicit stacks; fills ``labels`` and returns the number of components.

    The successors of node v are ``heads[first[v]:first[v + 1]]``. The other arrays have an element for each node:
    index: order of discovery, -1 at first; low: 0; following: the next edge to look at, as `first`; walk: the path of
    the depth-first search; pending: nodes found whose component is still open.
    """
    nodes = labels.size
    discovered = 0
    open_nodes = 0
    count = 0
    for root in range(nodes):
        if index[root] >= 0:
            continue
        depth = 0
        walk[0] = root
        index[root] = low[root] = discovered
        discovered += 1
        pending[open_nodes] = root
        open_nodes += 1
        while depth >= 0:
            node = walk[depth]
            if following[node] < first[node + 1]:
                head = heads[following[node]]
                following[node] += 1
                if index[head] < 0:
                    depth += 1
                    walk[depth] = head
                    index[head] = low[head] = discovered
                    discovered += 1
                    pending[open_nodes] = head
                    open_nodes += 1
                elif labels[head] < 0:
                    low[node] = min(low[node], index[head])
                continue
            if low[node] == index[node]:
                while True:
                    open_nodes -= 1
                    member = pending[open_nodes]
                    labels[member] = count
                    if member == node:
                        break
                count += 1
            depth -= 1
            if depth >= 0:
                low[walk[depth]] = min(low[walk[depth]], low[node])
    return count
