"""How a loop uses an object of memory: the instructions that touch it, whose it is, what is read of it afterwards.

Only the run tells, and the text of the loop as the image has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices
from tracekit.contexts.nodes import ContextKind
from tracekit.dependence.profile import DependenceKind
from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag, OpKind, OpUse
from tracekit.objects.kinds import ObjectKind
from tracekit.verdicts.verdicts import Judge


class ObjectUses:
    """Answers for the loops of one profile; `loop` is one of the program, `node` that loop in a context."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.program = judge.program
        self.profile = judge.profile

    def is_text_of(self, loop: int, op: int) -> bool:
        """Does an instruction stand in the text of the loop's function, in the same copy of it?"""
        ends = [int(self.program.loops["location"][loop]), int(self.program.ops["location"][op])]
        if NONE in ends or self.program.op_function[op] != self.program.loops["function"][loop]:
            return False
        one, other = (self.program.locations[end] for end in ends)
        return bool(one["function"] == other["function"] and one["inlined_at"] == other["inlined_at"])

    def is_by_name(self, op: int, name: str) -> bool:
        """Does an access get to the variable called `name` by that name in the source, too?"""
        return self.name(op) == name and not int(self.program.ops["flags"][op]) & OpFlag.BY_POINTER

    def name(self, op: int) -> str:
        """The variable that an access is to, as far as the pass has known it; "" otherwise."""
        return "" if self.reference(op) else self.program.text(int(self.program.ops["name"][op]))

    def reference(self, op: int) -> str:
        """The reference or dummy argument by whose name the source gets to what is accessed; "" if by none."""
        row = self.program.ops[op]
        return self.program.text(int(row["name"])) if int(row["use"]) & OpUse.BY_REFERENCE else ""

    def size(self, kind: ObjectKind, object_row: int) -> int:
        """Bytes of a global or stack object."""
        site = int(self.profile.objects["site"][object_row])
        return int(self.program.globals["size"][site] if kind == ObjectKind.GLOBAL else self.program.ops["size"][site])

    def operations(self, loop: int) -> list[int]:
        """The memory accesses and calls in the loop's text."""
        graph = self.judge.graphs[loop]
        ops: list[int] = graph.nodes[graph.works & (graph.nodes < len(self.program.ops))].tolist()
        return ops

    def operations_of(self, function: int) -> range:
        """All instructions of a function."""
        row = self.program.functions[function]
        return range(int(row["first_op"]), int(row["first_op"]) + int(row["ops"]))

    def calls_alloca(self, loop: int) -> bool:
        """Does the loop's text call `alloca`?"""
        ops = self.operations_of(int(self.program.loops["function"][loop]))
        rows = self.program.ops[ops.start : ops.stop]
        made = ops.start + np.flatnonzero((rows["kind"] == OpKind.STACK_ALLOC) & (rows["use"] & OpUse.ALLOCA != 0))
        inside = self.judge.facts.graphs.op_inside(made, np.full(made.shape, loop))
        return any(self.is_text_of(loop, op) for op in made[inside].tolist())

    def is_of_a_call_inside(self, node: int, object_row: int) -> bool:
        """Is a stack object of a function that is not open around the loop? Then calls in the loop made it."""
        nodes, function = self.profile.nodes, int(self.program.op_function[self.profile.objects["site"][object_row]])
        row = node
        while row != NONE:
            recursive = nodes["kind"][row] in (ContextKind.RECURSION, ContextKind.RECURSION_LOOP)
            if recursive or int(nodes["function"][row]) == function:
                return False
            row = int(nodes["parent"][row])
        return True

    def is_of_an_inlined_call(self, loop: int, object_row: int) -> bool:
        """Is a stack object a local of a function that was inlined into the loop's, but not around the loop?"""
        site = int(self.profile.objects["site"][object_row])
        if self.program.op_function[site] != self.program.loops["function"][loop]:
            return False
        locations = self.program.locations
        declared, around = int(self.program.ops["location"][site]), int(self.program.loops["location"][loop])
        if NONE in (declared, around):
            return False
        while around != NONE:
            if locations["function"][around] == locations["function"][declared]:
                return False
            around = int(locations["inlined_at"][around])
        return True

    def is_of_a_caller(self, loop: int, object_row: int) -> bool:
        """Is a stack object a local of another function than the loop's, which has a pointer to it?"""
        locations = self.program.locations
        declared = int(self.program.ops["location"][int(self.profile.objects["site"][object_row])])
        place = int(self.program.loops["location"][loop])
        return NONE not in (declared, place) and bool(locations["function"][declared] != locations["function"][place])

    @cached_property
    def _listed(self) -> Indices:
        lists: Indices = self.profile.dependences["object_list"].astype(np.int64)
        return lists

    def users(self, node: int, object_row: int) -> Indices:
        """The instructions (i8) below `node` known to touch an object: ends of its dependences.

        A copy goes by its load in profiles; where it is what it stores that touches the object, its store stands here.
        """
        rows = self.profile.dependences[(self._listed == object_row).any(axis=1)]
        ends = []
        for end, loads in (("source", DependenceKind.WAR), ("destination", DependenceKind.RAW)):
            inside = rows[self._is_inside(node, rows[end], rows[end + "_node"])]
            ops = inside[end].astype(np.int64)
            ends.append(ops + ((self.program.ops["kind"][ops] == OpKind.COPY_FROM) & (inside["kind"] != loads)))
        return np.unique(np.concatenate(ends))

    def _is_inside(self, node: int, instructions: Indices, nodes: Indices) -> np.ndarray:
        """Per end of a dependence: did it run in the loop of `node`?

        Inside a recursion, where accesses have the context of the recursion: does it stand in the loop's text? All that
        the loop runs does: openmp.py refuses the others.
        """
        inside: np.ndarray
        if self.profile.nodes["kind"][node] == ContextKind.RECURSION_LOOP:
            inside = np.isin(instructions, self.operations(int(self.profile.nodes["loop"][node])))
            inside &= self._is_below(int(self.profile.nodes["parent"][node]), nodes)
        else:
            inside = self._is_below(node, nodes)
        return inside

    def _is_below(self, node: int, nodes: Indices) -> npt.NDArray[np.bool_]:
        """Per one of `nodes`: is it `node`, or in its subtree?"""
        below: npt.NDArray[np.bool_] = (node <= nodes) & (nodes < self.judge.subtree_ends[node])
        return below

    def is_read_after(self, node: int, object_row: int) -> bool:
        """Does code outside the loop read what the loop stored in an object? More objects than are listed: perhaps."""
        dependences = self.profile.dependences
        wide = dependences["objects"] > self._listed.shape[1]
        rows = dependences[
            ((self._listed == object_row).any(axis=1) | wide) & (dependences["kind"] == DependenceKind.RAW)
        ]
        stored = self._is_inside(node, rows["source"], rows["source_node"])
        return bool((stored & ~self._is_inside(node, rows["destination"], rows["destination_node"])).any())

    def is_always_stored(self, loop: int, node: int, object_row: int, users: Indices) -> bool:
        """Does every iteration store the whole of an object, by a store that stands in the loop's own body?"""
        ops, accesses = self.program.ops, self.profile.accesses
        size = self.size(ObjectKind(int(self.profile.objects["kind"][object_row])), object_row)
        stores = users[(ops["kind"][users] == OpKind.STORE) & (ops["size"][users] == size)]
        own = stores[self.program.blocks["loop"][self.judge.graphs.op_block[stores]] == loop]
        here = accesses[(accesses["node"] == node) & np.isin(accesses["instruction"], own)]
        return bool((here["count"] == self.profile.nodes["iterations"][node]).any())

    def has_other_loads(self, loop: int, name: str, users: Indices) -> bool:
        """Does another load in the loop's text read the variable (a part that nothing stores)?"""
        ops = np.array(self.operations(loop), np.int64)
        loads = ops[np.isin(self.program.ops["kind"][ops], (OpKind.LOAD, OpKind.COPY_FROM))]
        others: Iterable[int] = np.setdiff1d(loads, users).tolist()
        return any(self.name(op) == name for op in others)

    def may_read_parts_from_before(self, users: Indices) -> bool:
        """Does a load read more at once than some store stores: a structure, of which parts may be from before?"""
        ops = self.program.ops[users]
        loads = np.isin(ops["kind"], (OpKind.LOAD, OpKind.COPY_FROM))
        widest, narrowest = ops["size"][loads].max(initial=0), ops["size"][~loads].min(initial=np.iinfo(np.uint32).max)
        return bool(widest > narrowest)
