"""The graph of a run as arrays: nodes, edges, the work of each node, the longest way."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table
from tracekit.jit.caller import Caller
from tracekit.program.linker import Rows
from tracekit.program.program import Program
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.kernels import layouts
from tracekit.taskgraph.kernels.build import build
from tracekit.taskgraph.kernels.layouts import LOCK, Graph
from tracekit.taskgraph.kernels.span import longest, mark, sum_uses

I8 = NDArray[np.int64]
Numbers = NDArray[Any]
"""int64, or float64."""

MEASURES = ("blocks", "accesses", "bytes")
"""What work may be counted in."""


class TaskGraph:
    """What was collected of a run, as a graph. Node 0 is none; edges lead from lesser nodes to greater ones."""

    def __init__(self, program: Program, collector: StepCollector) -> None:
        collector.finish()
        self.program, self.collector = program, collector
        steps = collector.steps
        most = 2 * len(steps) + 2
        graph = Graph(
            arena.arena(layouts.NODE, most, spare=1),
            arena.arena(layouts.EDGE, 1 << 31, spare=1, parts=2),
            hash_table(layouts.CHAIN, most),
            hash_table([("chain", "<i8")], most),
            hash_table([("chain", "<i8")], most),
            hash_table(layouts.TEAM, most),
            arena.arena(layouts.GROUP, most, spare=1),
            hash_table(layouts.DEPEND, most),
            hash_table(layouts.OBJECT, most),
            arena.arena(layouts.LINK, 1 << 31, spare=1, parts=2),
            hash_table([("times", "<i8")], most),
            hash_table(layouts.ROUND, most),
            hash_table([("round", "<i8")], most),
        )
        Caller(build)(graph, steps, collector.ordered())
        arena.check(*graph)
        self.nodes: Rows = graph.nodes.rows[: graph.nodes.control[0]]
        edges = graph.edges.rows[1 : graph.edges.control[0]]
        self.edges: Rows = edges[np.argsort(edges["destination"], kind="stable")]

    # -- work --

    @cached_property
    def each(self) -> dict[str, I8]:
        """Blocks, loads, stores and bytes of one run of a path, int64 by record id."""
        records, paths = self.collector.walked.records, self.program.paths
        blocks = np.zeros(len(records), np.int64)
        used = np.flatnonzero(self.program.path_row < len(paths))
        blocks[used] = paths["blocks"][self.program.path_row[used]]
        loads, stores, moved = self.collector.per_record(self.collector.work)
        return {"blocks": blocks, "loads": loads, "stores": stores, "bytes": moved, "accesses": loads + stores}

    @cached_property
    def of_steps(self) -> dict[str, I8]:
        """Blocks, loads, stores and bytes of steps, with what paths do not say; int64 by row of steps."""
        steps = self.collector.steps
        done = {name: self.sums(each) for name, each in self.each.items()}
        for name in ("loads", "stores", "bytes"):
            done[name] += steps[name]
        done["accesses"] = done["loads"] + done["stores"]
        return done

    def sums(self, each: Numbers) -> Numbers:
        """By step: the sum of `each`, a number by record id, over the paths that it ran."""
        sums: Numbers = np.zeros(len(self.collector.steps), each.dtype)
        Caller(sum_uses)(*self._uses, each, sums)
        return sums

    @cached_property
    def _uses(self) -> tuple[I8, I8, NDArray[np.uint32], I8]:
        """What `sum_uses` asks for, each in one piece: by step the first use and how many, by use record and count."""
        steps, uses = self.collector.steps, self.collector.uses
        columns = (steps["use"], steps["uses"], uses["record"], uses["count"])
        return tuple(map(np.ascontiguousarray, columns))  # type: ignore[return-value]

    def of_nodes(self, by_step: Numbers) -> Numbers:
        """A number by step as one by node, 0 where a node is no task."""
        by_node: Numbers = by_step[self._step_of_node]
        by_node[~self._is_task] = 0
        return by_node

    @cached_property
    def _step_of_node(self) -> I8:
        return np.ascontiguousarray(self.nodes["step"])

    @cached_property
    def _is_task(self) -> NDArray[np.bool_]:
        is_task: NDArray[np.bool_] = self._step_of_node > 0
        return is_task

    # -- the longest way --

    def span(self, weights: Numbers, locks: bool = True) -> tuple[float, NDArray[np.uint8]]:
        """The greatest sum of weights (by node) on a way, and which nodes lie on it; without the order of locks?"""
        first, sources = self._edges_in if locks else self._edges_without_locks
        finish = np.zeros_like(weights)
        before = np.zeros(len(weights), np.int64)
        Caller(longest)(first, sources, weights, finish, before)
        on_it = np.zeros(len(weights), np.uint8)
        last = int(finish.argmax()) if len(finish) else 0
        Caller(mark)(before, last, on_it)
        return finish[last], on_it

    @cached_property
    def _edges_in(self) -> tuple[I8, NDArray[np.uint32]]:
        """For each node and one behind the last: the first of the edges that lead to it; and where each comes from."""
        return self._by_destination(self.edges)

    @cached_property
    def _edges_without_locks(self) -> tuple[I8, NDArray[np.uint32]]:
        chosen = self.edges["kind"] != LOCK
        return self._edges_in if chosen.all() else self._by_destination(self.edges[chosen])

    def _by_destination(self, edges: Rows) -> tuple[I8, NDArray[np.uint32]]:
        first = np.zeros(len(self.nodes) + 1, np.int64)
        np.cumsum(np.bincount(edges["destination"], minlength=len(self.nodes)), out=first[1:])
        return first, np.ascontiguousarray(edges["source"])

    def record_counts(self, chosen: Numbers) -> I8:
        """How often each path ran, by record id, in the steps of `chosen` nodes (truth by node)."""
        steps, uses = self.collector.steps, self.collector.uses
        rows = self.nodes["step"][chosen.astype(np.bool_)]
        taken = np.zeros(len(uses) + 1, np.int64)
        rows = rows[rows > 0]
        np.add.at(taken, steps["use"][rows], 1)
        np.add.at(taken, steps["use"][rows] + steps["uses"][rows], -1)
        inside = np.cumsum(taken)[:-1] > 0
        counts = np.zeros(len(self.collector.walked.records), np.int64)
        np.add.at(counts, uses["record"][inside], uses["count"][inside])
        return counts
