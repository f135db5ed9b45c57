"""CAMP's static context tree: the offset of every loop and call site from its parent's context id.

The tree has one node for each loop and call site on each path from a root, numbered in pre-order, so
its size grows exponentially with the program. It is never built: a function's subtree is the same
under every call site, so sizes and offsets are computed once per function, callees first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracekit.formats.events import NONE
from tracekit.program.components import components
from tracekit.program.program import Program

GREATEST_ID = 2**63 - 1
"""The greatest context id that a profile prints; nodes beyond have none."""

Ints = np.typing.NDArray[np.int64]


class StaticTree(NamedTuple):
    """Offsets and recursion, as arrays of int64 that kernels read. An offset of -1 is beyond 63 bits."""

    component: Ints  # function -> its strongly connected component in the call graph
    recursive: Ints  # function -> 1 if it may call itself, directly or not
    loop_function: Ints  # loop -> function
    loop_offset: Ints  # loop -> offset from its parent loop, or from the node of its function
    call_row: Ints  # instruction -> row of calls, or -1
    call_offset: Ints  # call -> offset of its first target's node from the loop or function around it
    first_target: Ints  # call -> first row of `target`
    targets: Ints  # call -> number of rows
    target: Ints  # function that the call may enter
    target_offset: Ints  # offset of that target's node from the first target's node


def static_tree(program: Program) -> StaticTree:
    """Compute the static tree of `program`.

    A call of a recursive function is a leaf. A call site has one child for each function that it may
    enter, in ascending order of functions, and is a single node if it enters none that is known.
    """
    component, recursive = _recursion(program)
    sizes = _Sizes(program, component, recursive)
    call_row = np.full(len(program.ops), -1, np.int64)
    call_row[program.calls["op"]] = np.arange(len(program.calls))
    return StaticTree(
        component=component,
        recursive=recursive.astype(np.int64),
        loop_function=program.loops["function"].astype(np.int64),
        loop_offset=_saturated(sizes.loop_offset),
        call_row=call_row,
        call_offset=_saturated(sizes.call_offset),
        first_target=program.callees.first.astype(np.int64),
        targets=program.callees.count.astype(np.int64),
        target=program.callees.functions.astype(np.int64),
        target_offset=_saturated(sizes.target_offset),
    )


def _saturated(offsets: list[int]) -> Ints:
    return np.array([offset if offset <= GREATEST_ID else -1 for offset in offsets], np.int64)


def _recursion(program: Program) -> tuple[Ints, np.typing.NDArray[np.bool_]]:
    """The component of each function in the call graph, and whether the function lies on a cycle."""
    runs, run = program.callees.runs()
    caller = program.blocks["function"][program.calls["block"]].astype(np.int64)
    pairs = np.unique(np.stack([caller, run], 1), axis=0)  # a function's sites that may enter the same ones are one
    pair, heads = program.callees.of_runs(runs[pairs[:, 1]])
    tails = pairs[pair, 0]
    component = components(len(program.functions), tails, heads)
    recursive = np.bincount(component)[component] > 1
    recursive[tails[tails == heads]] = True
    return component, recursive


class _Sizes:
    """Subtree sizes (exact, of any length) and offsets, computed function by function, callees first."""

    def __init__(self, program: Program, component: Ints, recursive: np.typing.NDArray[np.bool_]) -> None:
        self.recursive = recursive.tolist()
        self.first = program.callees.first.tolist()
        self.count = program.callees.count.tolist()
        self.target = program.callees.functions.tolist()
        self.function_size = [0] * len(program.functions)  # without the node that stands for the function
        self.loop_size = [1] * len(program.loops)
        self.loop_offset = [0] * len(program.loops)
        self.call_offset = [0] * len(program.calls)
        self.target_offset = [0] * len(self.target)
        self.sizes_of_runs: dict[tuple[int, int], int] = {}
        loops = _loops_by_function(program)
        children = _children(program)
        # Components are numbered in reverse topological order; inside one, every call is a leaf.
        for function in np.argsort(component, kind="stable").tolist():
            for loop in loops.get(function, ()):
                self.loop_size[loop] = 1 + self._place(children.get((1, loop), ()))
            self.function_size[function] = self._place(children.get((0, function), ()))

    def _place(self, items: list[tuple[int, int, int, int]] | tuple[()]) -> int:
        """Give the loops and calls of one container their offsets; returns the size of all of them."""
        size = 0
        for _, _, is_call, row in items:
            if is_call:
                self.call_offset[row] = 1 + size
                size += self._call_size(row)
            else:
                self.loop_offset[row] = 1 + size
                size += self.loop_size[row]
        return size

    def _call_size(self, call: int) -> int:
        # Call sites with the same targets share these rows, and so these offsets: a target that is not finished here
        # is in the component of the caller, hence recursive, and a leaf for all of them.
        run = self.first[call], self.count[call]
        size = self.sizes_of_runs.get(run)
        if size is None:
            size = self.sizes_of_runs[run] = self._size_of_run(*run)
        return size

    def _size_of_run(self, first: int, count: int) -> int:
        size = 0
        for position in range(first, first + count):
            self.target_offset[position] = size
            function = self.target[position]
            size += 1 if self.recursive[function] else 1 + self.function_size[function]
        return size or 1


def _loops_by_function(program: Program) -> dict[int, list[int]]:
    """The loops of each function, inner ones first."""
    loops_of: dict[int, list[int]] = {}
    for loop in np.argsort(-program.loops["depth"].astype(np.int64), kind="stable").tolist():
        loops_of.setdefault(int(program.loops["function"][loop]), []).append(loop)
    return loops_of


def _children(program: Program) -> dict[tuple[int, int], list[tuple[int, int, int, int]]]:
    """(0, function) or (1, loop) -> its items (block, instruction, is call, row) in program order."""
    children: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}

    def container(loop: int, function: int) -> list[tuple[int, int, int, int]]:
        return children.setdefault((0, function) if loop == NONE else (1, loop), [])

    loops, blocks, calls = program.loops, program.blocks, program.calls
    for row, (parent, function, header) in enumerate(
        zip(*(loops[name].tolist() for name in ("parent", "function", "header")))
    ):
        container(parent, function).append((header, -1, 0, row))
    around, owner = blocks["loop"][calls["block"]].tolist(), blocks["function"][calls["block"]].tolist()
    for row, (block, op) in enumerate(zip(calls["block"].tolist(), calls["op"].tolist())):
        container(around[row], owner[row]).append((block, op, 1, row))
    for items in children.values():
        items.sort()
    return children
