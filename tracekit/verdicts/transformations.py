"""Which carried dependences a transformation removes: memory reductions and private objects (docs/verdicts.md)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.dependence.profile import LISTED_OBJECTS, DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.formats.image import EdgeKind, NodeKind, PartKind
from tracekit.objects.kinds import ObjectKind

if TYPE_CHECKING:
    from tracekit.program.program import Program
    from tracekit.verdicts.levels import Levels

Indices = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[Any]


class Transformation(NamedTuple):
    """One step to take so that a loop's iterations become independent."""

    kind: str  # "reduction", "private", "lastprivate", or "same value": to which all iterations store the same
    phi: int  # row of phis of a reduction through a register, or NONE
    object: int  # row of the profile's objects, NONE if the memory belongs to no one known object
    operator: int  # offset of the operator's string; 0 but of reductions
    variable: int = NONE  # row of variables, if only the source shows that iterations share it


class Updates:
    """The updates of a program (load, operator, store) whose intermediate values stay inside them."""

    def __init__(self, program: Program) -> None:
        updates, parts = program.updates, program.update_parts
        loads, stores = updates["load"].astype(np.int64), updates["store"].astype(np.int64)
        rows = np.arange(len(updates))
        offsets = _one_offset_each(program, np.concatenate([updates["operator"], parts["operator"]]))
        more = parts["kind"] != PartKind.DECISION
        owners, kinds = parts["update"].astype(np.int64), parts["kind"][more]
        operator = np.where(kinds == PartKind.POSITION, offsets[rows.size :][more], offsets[owners[more]])
        # An atomic read-modify-write may be both ends of its update.
        ops = np.concatenate([loads, stores[stores != loads], parts["index"][more].astype(np.int64)])
        of = np.concatenate([rows, rows[stores != loads], owners[more]])
        by = np.concatenate([offsets[: rows.size], offsets[: rows.size][stores != loads], operator])
        operations = len(program.ops) + 1  # the last row stands for no instruction
        self.operator = np.zeros(operations, np.int64)
        self.triple = np.full(operations, -1, np.int64)
        # An operation of two updates hands one value to two places.
        shared = of[np.bincount(ops, minlength=operations)[ops] > 1]
        usable = ~np.isin(of, np.concatenate([shared, self._leaking(program, ops, of)]))
        self.operator[ops[usable]] = by[usable]
        self.triple[ops[usable]] = of[usable]
        self.triples = rows.size

    def operator_of(self, instruction: int) -> int:
        """The operator (offset of its string) of the update that an instruction is in."""
        return int(self.operator[instruction])

    @staticmethod
    def _leaking(program: Program, ops: Indices, of: Indices) -> Indices:
        """Updates whose loads' values reach more than their stores and decisions through registers.

        A loop inside may go on accumulating in a register, between the load and the store: in phis that values of no
        other update reach.
        """
        parts = program.update_parts
        edges = program.edges[program.edges["kind"] == EdgeKind.REGISTER]
        of_op = np.full(len(program.ops), -1, np.int64)
        of_op[ops] = of
        least, greatest = _reaching(edges, of_op, len(program.phis))
        of_phi = np.where(least == greatest, least, -1)
        of_node = np.concatenate([of_op, of_phi, [-1]])
        tails = np.where(edges["from_kind"] == NodeKind.OP, of_node[_node(edges, "from", of_op.size)], -1)
        inner = edges["from_kind"] == NodeKind.PHI
        tails[inner] = greatest[edges["from"][inner].astype(np.int64)]
        kinds, heads = edges["to_kind"], edges["to"].astype(np.int64)
        stays = (kinds != NodeKind.BRANCH) & (of_node[_node(edges, "to", of_op.size)] == tails)
        decisions = parts[parts["kind"] == PartKind.DECISION]
        decided = _key(decisions["update"], decisions["index"])
        stays |= (kinds == NodeKind.BRANCH) & np.isin(_key(np.maximum(tails, 0), heads), decided)
        return np.unique(tails[(tails >= 0) & ~stays])

    def reductions(self, levels: Levels) -> Bools:
        """Which rows of `levels`, which are carried, belong to reductions there.

        All dependences of a level count, carried or not: an update counts only while every one that it takes part in
        has an update of the same operator at its other end, so updates are struck out until that holds.
        """
        is_part = self.triple >= 0
        touches = is_part.take(levels.sources, mode="clip") & is_part.take(levels.destinations, mode="clip")
        wanted = np.zeros(len(levels.profile.nodes), np.bool_)
        wanted[levels.node[touches]] = True
        rows = levels.profile.dependences
        ends = np.stack([rows["source"], rows["destination"]]).astype(np.int64)
        source_is_part, destination_is_part = is_part.take(ends, mode="clip")
        nodes, dependences = levels.valid(source_is_part | destination_is_part, wanted)
        ends = ends[:, dependences]
        triples, operators = self.triple.take(ends, mode="clip"), self.operator.take(ends, mode="clip")
        same = (triples >= 0).all(axis=0) & (operators[0] == operators[1])
        # Updates have numbers of their own at each level.
        _, numbers = np.unique(nodes * self.triples + triples, return_inverse=True)
        numbers = numbers.reshape(triples.shape)
        alive = np.ones(numbers.size, np.bool_)
        while same.any():
            good = same & alive[numbers].all(axis=0)
            struck = numbers[:, ~good][triples[:, ~good] >= 0]
            if not alive[struck].any():
                return _are_among(levels.node, levels.dependence, nodes[good], dependences[good])
            alive[struck] = False
        return np.zeros(levels.node.size, np.bool_)


def _are_among(nodes: Indices, dependences: Indices, of_nodes: Indices, of_dependences: Indices) -> Bools:
    """Which pairs are among others."""
    result: Bools = np.isin(nodes << 32 | dependences, of_nodes << 32 | of_dependences)
    return result


def _node(edges: Rows, end: str, operations: int) -> Indices:
    """The ends of edges as numbers: operations, then phis; -1 for a branch."""
    kinds, rows = edges[f"{end}_kind"], edges[end].astype(np.int64)
    return np.select([kinds == NodeKind.OP, kinds == NodeKind.PHI], [rows, operations + rows], -1)


def _reaching(edges: Rows, of_op: Indices, phis: int) -> tuple[Indices, Indices]:
    """By phi: the least and the greatest update (`of_op`, by operation) whose values reach it, by way of other phis,
    too; -1 for none."""
    into = edges[edges["to_kind"] == NodeKind.PHI]
    heads, tails = into["to"].astype(np.int64), _node(into, "from", of_op.size)
    none = np.iinfo(np.int64).max
    least = np.concatenate([np.where(of_op < 0, none, of_op), np.full(phis, none), [none]])
    greatest = np.concatenate([of_op, np.full(phis, -1), [-1]])
    while True:
        before = least.copy(), greatest.copy()
        np.minimum.at(least, of_op.size + heads, least[tails])
        np.maximum.at(greatest, of_op.size + heads, greatest[tails])
        if np.array_equal(before[0], least) and np.array_equal(before[1], greatest):
            break
    here = slice(of_op.size, of_op.size + phis)
    return np.where(least[here] == none, -1, least[here]), greatest[here]


def _one_offset_each(program: Program, offsets: Rows) -> Indices:
    """Operators by the first offset of the same string: each unit has strings of its own."""
    first: dict[str, int] = {}
    different, at = np.unique(offsets, return_inverse=True)
    same: Indices = np.array(
        [first.setdefault(program.text(offset), offset) for offset in different.tolist()], np.int64
    )[at]
    return same


class Privates:
    """Tells objects that every iteration of a loop writes before it reads them."""

    def __init__(self, profile: DependenceProfile) -> None:
        self.profile = profile
        dependences = profile.dependences
        self.wide = dependences["objects"] > LISTED_OBJECTS
        self.lists = dependences["object_list"].astype(np.int64)
        self.raw = raw = dependences["kind"] == DependenceKind.RAW
        self._war = war = dependences["kind"] == DependenceKind.WAR
        reads = raw | war
        self._load = np.where(
            reads,
            _key(
                np.where(raw, dependences["destination"], dependences["source"]),
                np.where(raw, dependences["destination_node"], dependences["source_node"]),
            ),
            -1,
        )

    @cached_property
    def _by_object(self) -> tuple[Indices, Indices]:
        """(object, dependence) pairs, sorted by object."""
        lists = self.lists
        rows, columns = np.nonzero(lists != NONE)
        order = np.argsort(lists[rows, columns], kind="stable")
        return lists[rows, columns][order], rows[order]

    @cached_property
    def _exposed(self) -> tuple[Indices, Indices]:
        """The keys of accesses that are exposed somewhere, and (level * keys + number of the key); both sorted."""
        exposed = self.profile.exposed
        keys, numbers = np.unique(_key(exposed["instruction"], exposed["node"]), return_inverse=True)
        return keys, np.sort(exposed["level"].astype(np.int64) * keys.size + numbers)

    def objects(self, dependence: int) -> list[int]:
        """The objects in which a dependence happened; NONE alone if they are too many or unknown."""
        listed = self.lists[dependence]
        known: list[int] = listed[listed != NONE].tolist()
        return known if known and not self.wide[dependence] else [NONE]

    def find(self, levels: Levels, carried: Bools, reduced: Bools) -> Bools:
        """Which rows of `levels`, of those that are `carried`, privatization removes: all objects become private there.

        Those that reductions remove (`reduced`) need no private object; as flows they still forbid one.
        """
        at = np.flatnonzero(carried)
        nodes, rows = levels.node[at], levels.dependence[at]
        is_flow, wide = self.raw[rows], self.wide[rows]
        is_false = ~reduced[at] & ~is_flow & (self.lists[rows, 0] != NONE) & ~wide
        fits = np.zeros(len(self.profile.nodes), np.bool_)  # the nodes at which objects may become private
        fits[nodes[is_false]] = True
        fits[nodes[is_flow & wide]] = False  # which may be on any object
        overwritten = np.flatnonzero(self._war[rows] & fits[nodes])
        exposed = overwritten[self._is_exposed(rows[overwritten], nodes[overwritten])]
        fits[nodes[exposed[wide[exposed]]]] = False
        false, flows, exposed = at[is_false & fits[nodes]], at[is_flow & fits[nodes]], at[exposed]
        forbidden = np.unique(np.append(self.things(levels, flows), self.things(levels, exposed)))
        things, objects = self.things(levels, false), self.lists[levels.dependence[false]]
        kinds = np.append(self.profile.objects["kind"], ObjectKind.UNKNOWN)[
            np.minimum(objects, len(self.profile.objects))
        ]
        private = ~np.isin(things, forbidden) & (kinds != ObjectKind.UNKNOWN)
        removed = np.zeros(carried.size, np.bool_)
        removed[false] = (private | (objects == NONE)).all(axis=1)
        return removed

    def things(self, levels: Levels, rows: Indices) -> Indices:
        """The objects in which the dependences of `rows` of levels happened: (rows, LISTED_OBJECTS).

        node * objects + object, one number for what may be private at a level, or -1.
        """
        objects = self.lists[levels.dependence[rows]]
        things: Indices = np.where(
            objects == NONE, -1, levels.node[rows, np.newaxis] * len(self.profile.objects) + objects
        )
        return things

    def is_read_before_written(self, object_row: int, level: int) -> bool:
        """May a load at `level` read what its own iteration had not stored in an object (row)?"""
        objects, holders = self._by_object
        first, last = np.searchsorted(objects, [object_row, object_row + 1])
        return bool(self._is_exposed(np.append(holders[first:last], np.flatnonzero(self.wide)), level).any())

    def _is_exposed(self, dependences: Indices, levels: Indices | int) -> Bools:
        """Elementwise: has a dependence a load that reads, at its level, what its own iteration had not stored?"""
        keys, exposed = self._exposed
        loads = self._load[dependences]
        numbers = np.searchsorted(keys, loads)
        known: Bools = np.append(keys, -2)[numbers] == loads
        wanted = levels * keys.size + numbers
        known &= np.append(exposed, -1)[np.searchsorted(exposed, wanted)] == wanted
        return known


def _key(instruction: Rows, node: Rows) -> Indices:
    """One number for an (instruction, context) pair."""
    return instruction.astype(np.int64) << 32 | node.astype(np.int64)
