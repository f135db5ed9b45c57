"""CAMP's static context tree: the offset of every loop and call site from its parent's context id.

The tree has one node for each loop and call site on each path from a root, numbered in pre-order, so
its size grows exponentially with the program. It is never built: a function's subtree is the same
under every call site, so sizes and offsets are computed once per function, callees first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracekit.containers.grouping import grouped
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
    caller = program.blocks["function"][program.calls["block"]]
    (callers, entered), _ = grouped(caller, run)  # a function's sites that may enter the same ones are one
    pair, heads = program.callees.of_runs(runs[entered])
    tails = callers[pair]
    component = components(len(program.functions), tails, heads)
    recursive = np.bincount(component)[component] > 1
    recursive[tails[tails == heads]] = True
    return component, recursive


class _Sizes:
    """Subtree sizes (exact, of any length) and offsets, computed function by function, callees first."""

    def __init__(self, program: Program, component: Ints, recursive: np.typing.NDArray[np.bool_]) -> None:
        runs, run = program.callees.runs()
        self.runs: list[tuple[int, int]] = list(zip(*runs.T.tolist()))
        self.run_of_call: list[int] = run.tolist()
        self.recursive = recursive.tolist()
        self.target = program.callees.functions.tolist()
        self.function_size = [0] * len(program.functions)  # without the node that stands for the function
        self.loop_size = [1] * len(program.loops)
        self.loop_offset = [0] * len(program.loops)
        self.call_offset = [0] * len(program.calls)
        self.target_offset = [0] * len(self.target)
        self.sizes_of_runs: list[int | None] = [None] * len(runs)
        loops = _loops_by_function(program)
        children = _Children(program)
        # Components are numbered in reverse topological order; inside one, every call is a leaf.
        for function in np.argsort(component, kind="stable").tolist():
            for loop in loops.get(function, ()):
                self.loop_size[loop] = 1 + self._place(children.of_loop(loop))
            self.function_size[function] = self._place(children.of_function(function))

    def _place(self, items: list[int]) -> int:
        """Give the loops and calls of one container (_Children) their offsets; returns the size of all of them."""
        size = 0
        for item in items:
            if item >= 0:
                self.call_offset[item] = 1 + size
                size += self._call_size(item)
            else:
                self.loop_offset[~item] = 1 + size
                size += self.loop_size[~item]
        return size

    def _call_size(self, call: int) -> int:
        # Call sites with the same targets share these rows, and so these offsets: a target that is not finished here
        # is in the component of the caller, hence recursive, and a leaf for all of them.
        run = self.run_of_call[call]
        size = self.sizes_of_runs[run]
        if size is None:
            size = self.sizes_of_runs[run] = self._size_of_run(*self.runs[run])
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
    order = np.argsort(-program.loops["depth"].astype(np.int64), kind="stable")
    for loop, function in zip(order.tolist(), program.loops["function"][order].tolist()):
        loops_of.setdefault(function, []).append(loop)
    return loops_of


class _Children:
    """The items of each loop, and of each function outside of loops, in program order.

    An item is the row of a call, or ``~`` the row of a loop, which stands where its header does, before its calls.
    """

    def __init__(self, program: Program) -> None:
        loops, blocks, calls = program.loops, program.blocks, program.calls
        self._functions = len(program.functions)
        around = np.concatenate([loops["parent"], blocks["loop"][calls["block"]]]).astype(np.int64)
        function = np.concatenate([loops["function"], blocks["function"][calls["block"]]])
        container = np.where(around == NONE, function, self._functions + around)
        block = np.concatenate([loops["header"], calls["block"]])
        op = np.concatenate([np.full(len(loops), -1, np.int64), calls["op"]])
        item = np.concatenate([~np.arange(len(loops)), np.arange(len(calls))])
        order = np.lexsort((op, block, container))
        self._items: list[int] = item[order].tolist()
        ends = np.arange(self._functions + len(loops) + 1)
        self._first: list[int] = np.searchsorted(container[order], ends).tolist()

    def of_function(self, function: int) -> list[int]:
        """Those outside of its loops."""
        return self._items[self._first[function] : self._first[function + 1]]

    def of_loop(self, loop: int) -> list[int]:
        """Those outside of inner loops."""
        return self.of_function(self._functions + loop)
