"""The context tree of a finished replay, in an order that does not depend on how batches were cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.contexts.kernels import streams as stacks
from tracekit.contexts.kernels import tree
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.names import ContextNames, Json
from tracekit.contexts.nodes import NODE, ContextKind
from tracekit.contexts.state import nodes_of
from tracekit.formats.events import NONE
from tracekit.jit.kernel import kernel
from tracekit.program.program import Program

Rows = NDArray[Any]
Ints = NDArray[np.int64]


class ContextTable:
    """What the numbers in the service ``context`` mean, when the replay is over."""

    def __init__(self, program: Program, contexts: Contexts, streams: Iterable[Stream]) -> None:
        self._contexts, self._streams = contexts, list(streams)
        self.known = len(nodes_of(contexts))
        """Numbers that there are: they are smaller than this."""
        self.nodes, self._row_of = self.where(np.ones(self.known, np.bool_))
        self._names = ContextNames(program, self.nodes)

    def where(self, used: NDArray[np.bool_]) -> tuple[Rows, Ints]:
        """The context tree of a profile that recorded something only in the contexts `used`, and the row of each."""
        nodes, rows = final_nodes(self._contexts, self._streams, used)
        return nodes, rows[nodes_of(self._contexts)["printed"]]

    def rows(self, contexts: NDArray[Any]) -> Ints:
        """Numbers as a callback saw them -> rows of :attr:`nodes`, which stand in canonical order."""
        rows: Ints = self._row_of[contexts]
        return rows

    def describe(self, row: int) -> Json:
        """A row of :attr:`nodes` as profiles show a context: CAMP's id, root, path."""
        described: Json = self._names.context(int(row))
        return described

    def of_number(self, number: int) -> Json:
        """A number as a callback saw it, as profiles show a context."""
        return self.describe(int(self._row_of[number]))


def final_nodes(contexts: Contexts, streams: Iterable[Stream], used: NDArray[np.bool_]) -> tuple[Rows, Ints]:
    """The rows of the context tree (NODE) in pre-order, and the new row of each old one (-1: not shown).

    `used` says of each old row whether something was recorded there; loops that are open count as if they ended here.
    """
    old = nodes_of(contexts).copy()
    for stream in streams:
        _close_open_levels(old, stream)
    _settle(old)
    shown = old["kind"] < tree.PAIR
    shown[0] = contexts.rule[0] == tree.NO_CALLS or used[0] or bool(np.any(old["parent"][1:][shown[1:]] == 0))
    kept = np.flatnonzero(shown)
    row_of = np.full(len(old) + 1, -1, np.int64)  # the last element answers for parent -1
    row_of[kept] = np.arange(len(kept))
    old = old[kept]
    parent = row_of[old["parent"]]
    order = np.lexsort([old["function"], old["loop"], old["call"], old["kind"], parent])
    place = np.empty(len(kept), np.int64)
    size, following = np.ones(parent.size, np.int64), np.zeros(parent.size + 1, np.int64)
    _number_in_preorder(parent, order, place, size, following)
    nodes = np.zeros(len(kept), NODE)
    for field in NODE.names or ():
        nodes[field][place] = old[field].astype(NODE[field])  # -1 becomes NONE
    nodes["parent"][place] = np.where(parent >= 0, place[parent], NONE)
    new_node = np.full(len(shown), -1, np.int64)
    new_node[kept] = place
    return nodes, new_node


def _settle(nodes: Rows) -> None:
    """Say what became of each node, now that all recursion is known; a call without any is no level."""
    kind, folded = nodes["kind"], nodes["folded"]
    call, loop = kind == tree.CALL, kind == tree.LOOP
    nodes["kind"][loop & (folded != 0)] = ContextKind.RECURSIVE_LOOP
    nodes["kind"][call & (folded == tree.FOLDED)] = ContextKind.RECURSIVE_CALL
    nodes["kind"][call & (folded == tree.LEFT_OUT)] = ContextKind.RECURSION
    for field, nothing in NO_LEVEL.items():
        nodes[field][call & (folded == 0)] = nothing
    nodes["least_iterations"] = np.maximum(nodes["least_iterations"], 0)


NO_LEVEL = {
    "invocations": 0,
    "iterations": 0,
    "most_iterations": 0,
    "least_iterations": 0,
    "accesses": 0,
    "external": -1,
}


def _close_open_levels(nodes: Rows, stream: Stream) -> None:
    """Count what the open levels of a stream have done so far."""
    for level in stream.levels[: stream.control[stacks.LEVELS]]:
        if level["depth"] > 1:  # the outermost activation counts
            continue
        node = nodes[level["node"]]
        node["iterations"] += level["iteration"]
        node["most_iterations"] = max(node["most_iterations"], level["iteration"])
        if node["least_iterations"] < 0 or level["iteration"] < node["least_iterations"]:
            node["least_iterations"] = level["iteration"]
        if level["outermost"]:
            node["accesses"] += stream.control[stacks.ACCESSES] - level["accesses"]


@kernel
def _number_in_preorder(parent: Ints, order: Ints, place: Ints, size: Ints, following: Ints) -> None:
    """Number the nodes of a forest; `order` sorts them by parent, then as siblings shall stand.

    Parents have smaller rows than their children, and roots have parent -1. size: ones, which become how many nodes
    there are in a subtree; following: zeros, one more: where the next child goes; the last is for roots.
    """
    for row in range(parent.size - 1, -1, -1):
        if parent[row] >= 0:
            size[parent[row]] += size[row]
    for row in order:
        place[row] = following[parent[row]]
        following[parent[row]] += size[row]
        following[row] = place[row] + 1
