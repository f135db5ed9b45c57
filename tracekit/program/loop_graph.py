"""What the program image says of a loop: its nodes in the dependence graph, register and control edges, exits.

Nodes of the dependence graph are numbered over the whole program: operations first (a node is the
row of ``ops``), then phis, then branches (one for each row of ``blocks``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag, EdgeKind, LoopFlag, NodeKind, OpKind, PhiKind

if TYPE_CHECKING:
    from tracekit.program.program import Program

Indices = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

MEMORY = (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.SET)
"""The operations that access memory."""

_WORKS = np.isin(np.arange(max(OpKind) + 1), (*MEMORY, OpKind.CALL))
"""Per kind of operation: is it a memory access or a call?"""


@dataclass(frozen=True)
class LoopGraph:
    """The static part of one loop's dependence graph; arrays hold node numbers unless said otherwise."""

    nodes: Indices  # sorted: operations, header phis and branches of the loop and of the loops inside
    works: npt.NDArray[np.bool_]  # per node: a memory access or a call
    tails: Indices  # register and control edges, as positions in `nodes`
    heads: Indices
    calls: Indices  # the call operations
    unseen_calls: Indices  # those that may have effects which the trace does not show
    exits: Indices  # branches that may leave the loop, as positions in `nodes`

    @cached_property
    def bound(self) -> tuple[Indices, Indices]:
        """The edges, and those by which each node of the next iteration waits for the decision not to leave.

        That is the node behind the next after `nodes`.
        """
        may_go_on, everything = self.nodes.size + 1, np.arange(self.nodes.size)
        return (
            np.concatenate([self.tails, self.exits, np.full(everything.size, may_go_on)]),
            np.concatenate([self.heads, np.full(self.exits.size, may_go_on), everything]),
        )


class LoopGraphs:
    """The loops of a program, each with its graph, made when first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.first_phi_node = len(program.ops)
        self.first_branch_node = len(program.ops) + len(program.phis)
        self._graphs: dict[int, LoopGraph] = {}

    @cached_property
    def op_block(self) -> Indices:
        """Per operation the block that holds it, -1 for none; a last row stands for no instruction."""
        return _owners(self.program.blocks["first_op"], self.program.blocks["ops"], len(self.program.ops) + 1)

    @cached_property
    def nest(self) -> tuple[Indices, Indices]:
        """Per loop an interval [enter, leave) that holds the `enter` of exactly the loops inside it and itself."""
        parents = self.program.loops["parent"]
        children: dict[int, list[int]] = {}
        for loop, parent in enumerate(parents.tolist()):
            children.setdefault(parent, []).append(loop)
        enter = np.zeros(len(parents), np.int64)
        leave = np.zeros(len(parents), np.int64)
        clock = 0
        stack = [(loop, False) for loop in reversed(children.get(NONE, []))]
        while stack:
            loop, done = stack.pop()
            if done:
                leave[loop] = clock
                continue
            enter[loop] = clock
            clock += 1
            stack.append((loop, True))
            stack.extend((child, False) for child in reversed(children.get(loop, [])))
        return enter, leave

    @cached_property
    def op_enter(self) -> Indices:
        """Per operation the `enter` (:attr:`nest`) of its innermost loop, -1 for none; a last row as in `op_block`."""
        enter, _ = self.nest
        loop = np.append(self.program.blocks["loop"], NONE)[self.op_block]
        enters: Indices = np.append(enter, -1)[np.minimum(loop, enter.size)]
        return enters

    def op_inside(self, ops: Indices, loops: Indices) -> npt.NDArray[np.bool_]:
        """Elementwise: does operation ``ops[i]`` (or NONE) stand in loop ``loops[i]``, in its function's own text?"""
        enter, leave = self.nest
        if not enter.size:
            return np.zeros(ops.shape, np.bool_)
        at = self.op_enter[np.minimum(ops, len(self.program.ops))]
        inside: npt.NDArray[np.bool_] = (enter[loops] <= at) & (at < leave[loops])
        return inside

    def __getitem__(self, loop: int) -> LoopGraph:
        graph = self._graphs.get(loop)
        if graph is None:
            graph = self._graphs[loop] = self._build(loop)
        return graph

    def _build(self, loop: int) -> LoopGraph:
        program, (enter, leave) = self.program, (int(at[loop]) for at in self.nest)
        nodes = np.sort(self._inside(self._nodes, enter, leave))
        self._place[nodes] = np.arange(nodes.size)
        tails, heads = self._inside(self._edges, enter, leave)
        inside = (self._enter[heads] >= enter) & (self._enter[heads] < leave)
        ops = nodes[: np.searchsorted(nodes, self.first_phi_node)]
        kinds = program.ops["kind"][ops]
        calls = ops[kinds == OpKind.CALL]
        flags = program.calls["flags"][program.ops["base"][calls]]
        works = np.zeros(nodes.size, np.bool_)
        works[: ops.size] = _WORKS[kinds]
        leaving = np.unique(self.exit_rows(loop)["source"].astype(np.int64)) + self.first_branch_node
        leaving = leaving[(self._enter[leaving] >= enter) & (self._enter[leaving] < leave)]
        return LoopGraph(
            nodes,
            works,
            self._place[tails[inside]],
            self._place[heads[inside]],
            calls,
            calls[flags & (CallFlag.PURE | CallFlag.ALLOCATES) == 0],
            self._place[leaving],
        )

    @cached_property
    def _place(self) -> Indices:
        """Per node of the program its position in the graph that was built last, if it is in it."""
        return np.zeros(self._enter.size, np.int64)

    @cached_property
    def _enter(self) -> Indices:
        """Per node of the program the `enter` of the innermost loop around it; -1 if there is none."""
        program, loop = self.program, self.program.blocks["loop"].astype(np.int64)
        of_op, of_phi = (
            self.op_block[:-1],
            _owners(program.loops["first_phi"], program.loops["phis"], len(program.phis)),
        )
        loops = np.concatenate([np.append(loop, -1)[of_op], of_phi, loop])
        known = (loops >= 0) & (loops != NONE)
        enter: Indices = np.where(known, np.append(self.nest[0], -1)[np.where(known, loops, -1)], -1)
        return enter

    @cached_property
    def _nodes(self) -> tuple[Indices, Indices]:
        """The nodes by the innermost loop around them, and how many stand before those of each `enter`."""
        return self._by_loop(self._enter, np.arange(self._enter.size))

    @cached_property
    def _edges(self) -> tuple[Indices, Indices]:
        """The nodes at both ends of edges, of shape (2, edges), by the innermost loop around the tails; as `_nodes`."""
        edges = self.program.edges
        ends = np.stack([self.node_numbers(edges[f"{end}_kind"], edges[end]) for end in ("from", "to")])
        return self._by_loop(self._enter[ends[0]], ends)

    def _by_loop(self, enter: Indices, things: Indices) -> tuple[Indices, Indices]:
        """Some `things`, the `enter` of each given, sorted by it, and how many stand before those of each."""
        order = np.argsort(enter, kind="stable")
        return things[..., order], np.searchsorted(enter[order], np.arange(len(self.program.loops) + 1))

    @staticmethod
    def _inside(sorted_by_loop: tuple[Indices, Indices], enter: int, leave: int) -> Indices:
        """Those inside a loop."""
        things, first = sorted_by_loop
        return things[..., first[enter] : first[leave]]

    def node_numbers(self, kinds: Rows, rows: Rows) -> Indices:
        """The nodes that ends of edges (``NodeKind``, row of its table) stand for."""
        start = np.zeros(max(NodeKind) + 1, np.int64)
        start[NodeKind.PHI] = self.first_phi_node
        start[NodeKind.BRANCH] = self.first_branch_node
        numbers: Indices = start[kinds] + rows.astype(np.int64)
        return numbers

    def header_phis(self, loop: int, kind: PhiKind) -> Indices:
        """The rows of `phis` at the loop's header that are of `kind`."""
        row = self.program.loops[loop]
        phis = np.arange(row["first_phi"], int(row["first_phi"]) + int(row["phis"]))
        chosen: Indices = phis[self.program.phis["kind"][phis] == kind]
        return chosen

    def exit_range(self, loop: int) -> tuple[int, int]:
        """The first row of ``loop_exits`` of the loop, and the one behind its last."""
        row = self.program.loops[loop]
        return int(row["first_exit"]), int(row["first_exit"]) + int(row["exits"])

    def exit_rows(self, loop: int) -> Rows:
        """The rows of ``loop_exits`` of the loop."""
        return self.program.loop_exits[slice(*self.exit_range(loop))]

    def blocking_exits(self, loop: int) -> Indices:
        """Rows of ``loop_exits`` that keep iterations from being started ahead, all of them if in doubt.

        For images that do not say what exits depend on (``Causes.known``).
        """
        row = self.program.loops[loop]
        flags = int(row["flags"])
        rows = np.arange(*self.exit_range(loop))
        blocking = np.zeros(rows.size, np.bool_)
        sources = self.program.loop_exits["source"][rows].astype(np.int64)
        if flags & LoopFlag.EXITS_EARLY:
            # The loop's own test is the one that looks at an induction variable.
            inductions = self.header_phis(loop, PhiKind.INDUCTION)
            blocking |= ~np.isin(sources, self._branches_on(row, NodeKind.PHI, inductions))
        if flags & LoopFlag.EXITS_ON_DATA:
            blocking |= np.isin(sources, self._branches_on(row, NodeKind.OP))
        if flags & (LoopFlag.EXITS_EARLY | LoopFlag.EXITS_ON_DATA) and not blocking.any():
            blocking[:] = True
        return rows[blocking]

    def _branches_on(self, loop: Rows, kind: NodeKind, rows: Indices | None = None) -> Indices:
        """Blocks of the loop's function whose branch takes a value from nodes of `kind`: all, or those in `rows`."""
        function = self.program.functions[loop["function"]]
        edges = self.program.edges[int(function["first_edge"]) :][: int(function["edges"])]
        chosen = (edges["kind"] == EdgeKind.REGISTER) & (edges["from_kind"] == kind)
        chosen &= edges["to_kind"] == NodeKind.BRANCH
        if rows is not None:
            chosen &= np.isin(edges["from"], rows)
        branches: Indices = np.unique(edges["to"][chosen].astype(np.int64))
        return branches


def _owners(first: Rows, count: Rows, rows: int) -> Indices:
    """Per row of a table the row that owns it through a (first, count) run, -1 for none."""
    owner = np.full(rows, -1, np.int64)
    owner[_runs(first, count)] = np.repeat(np.arange(first.size), count)
    return owner


def _runs(first: Rows, count: Rows) -> Indices:
    """Concatenate ``arange(first[i], first[i] + count[i])``."""
    count = count.astype(np.int64)
    ends = np.cumsum(count)
    total = int(ends[-1]) if count.size else 0
    runs: Indices = np.arange(total) + np.repeat(first.astype(np.int64) - (ends - count), count)
    return runs
