"""What the program image says of a loop: its nodes in the dependence graph, register and control edges, exits.

Nodes of the dependence graph are numbered over the whole program: operations first (a node is the
row of ``ops``), then phis, then branches (one for each row of ``blocks``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
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


class LoopGraphs:
    """The loops of a program, each with its graph, made when first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.first_phi_node = len(program.ops)
        self.first_branch_node = len(program.ops) + len(program.phis)
        self._graphs: dict[int, LoopGraph] = {}
        self._ends = lru_cache(maxsize=1)(self._ends_of)

    @cached_property
    def op_block(self) -> Indices:
        """Per operation the block that holds it, -1 for none; a last row stands for no instruction."""
        return _owners(self.program.blocks["first_op"], self.program.blocks["ops"], len(self.program.ops) + 1)

    @cached_property
    def _nest(self) -> tuple[Indices, Indices]:
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

    def loop_contains(self, loops: Indices | int, inner: Indices) -> npt.NDArray[np.bool_]:
        """Elementwise: is loop ``inner[i]`` (-1 or NONE: no loop) the loop ``loops[i]`` (or `loops`) or inside it?"""
        enter, leave = self._nest
        known = (inner >= 0) & (inner != NONE)
        if not len(enter):
            return np.zeros(inner.shape, np.bool_)
        at = enter[np.where(known, inner, 0)]
        inside: npt.NDArray[np.bool_] = known & (enter[loops] <= at) & (at < leave[loops])
        return inside

    def op_inside(self, ops: Indices, loops: Indices) -> npt.NDArray[np.bool_]:
        """Elementwise: does operation ``ops[i]`` (or NONE) stand in loop ``loops[i]``, in its function's own text?"""
        block = self.op_block[np.minimum(ops, len(self.program.ops))]
        inner = np.where(block >= 0, self.program.blocks["loop"][block].astype(np.int64), -1)
        return self.loop_contains(loops, inner)

    def __getitem__(self, loop: int) -> LoopGraph:
        graph = self._graphs.get(loop)
        if graph is None:
            graph = self._graphs[loop] = self._build(loop)
        return graph

    def _build(self, loop: int) -> LoopGraph:
        program = self.program
        row = int(program.loops["function"][loop])
        function = program.functions[row]
        blocks = np.arange(function["first_block"], int(function["first_block"]) + int(function["blocks"]))
        blocks = blocks[self.loop_contains(loop, program.blocks["loop"][blocks].astype(np.int64))]
        ops = _runs(program.blocks["first_op"][blocks], program.blocks["ops"][blocks])
        loops = np.arange(function["first_loop"], int(function["first_loop"]) + int(function["loops"]))
        loops = loops[self.loop_contains(loop, loops)]
        phis = _runs(program.loops["first_phi"][loops], program.loops["phis"][loops])
        nodes = np.concatenate([np.sort(ops), np.sort(phis) + self.first_phi_node, blocks + self.first_branch_node])
        kinds = program.ops["kind"][ops]
        calls = ops[kinds == OpKind.CALL]
        flags = program.calls["flags"][program.ops["base"][calls]]
        works = np.zeros(nodes.size, np.bool_)
        works[np.searchsorted(nodes, ops[np.isin(kinds, MEMORY) | (kinds == OpKind.CALL)])] = True
        tails, heads = self._edges(row, nodes)
        leaving = np.unique(self.exit_rows(loop)["source"].astype(np.int64)) + self.first_branch_node
        leaving = leaving[np.isin(leaving, nodes)]
        return LoopGraph(
            nodes,
            works,
            tails,
            heads,
            calls,
            calls[flags & (CallFlag.PURE | CallFlag.ALLOCATES) == 0],
            np.searchsorted(nodes, leaving),
        )

    def _edges(self, function: int, nodes: Indices) -> tuple[Indices, Indices]:
        """The edges of a function with both ends among `nodes`, as positions in `nodes`."""
        tails, heads = self._ends(function)
        tails_at, heads_at = np.searchsorted(nodes, tails), np.searchsorted(nodes, heads)
        behind = np.append(nodes, -1)  # an element for what is greater than all nodes
        inside = (behind[tails_at] == tails) & (behind[heads_at] == heads)
        return tails_at[inside], heads_at[inside]

    def _ends_of(self, function: int) -> tuple[Indices, Indices]:
        """The nodes at both ends of all edges of a function, which may have many loops."""
        row = self.program.functions[function]
        edges = self.program.edges[int(row["first_edge"]) :][: int(row["edges"])]
        tails, heads = (self.node_numbers(edges[f"{end}_kind"], edges[end]) for end in ("from", "to"))
        return tails, heads

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
