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
    from tracekit.verdicts.levels import LevelView

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
        """Updates whose loads' values reach more than their stores and decisions through registers."""
        edges, parts = program.edges, program.update_parts
        chosen = (edges["kind"] == EdgeKind.REGISTER) & (edges["from_kind"] == NodeKind.OP)
        update_of = np.full(len(program.ops), -1, np.int64)
        update_of[ops] = of
        tails = update_of[edges["from"][chosen].astype(np.int64)]
        kinds, heads = edges["to_kind"][chosen], edges["to"][chosen].astype(np.int64)
        stays = (kinds == NodeKind.OP) & (update_of[np.where(kinds == NodeKind.OP, heads, 0)] == tails)
        decisions = parts[parts["kind"] == PartKind.DECISION]
        decided = _key(decisions["update"], decisions["index"])
        stays |= (kinds == NodeKind.BRANCH) & np.isin(_key(np.maximum(tails, 0), heads), decided)
        return np.unique(tails[(tails >= 0) & ~stays])

    def reductions(self, sources: Indices, destinations: Indices) -> Bools:
        """Which of the dependences valid at a level belong to reductions there.

        ``sources`` and ``destinations`` are the instructions of all of them, carried or not: an update
        counts only while every dependence that it takes part in has an update of the same operator at its
        other end, so updates are struck out until that holds.
        """
        sources, destinations = (np.minimum(ops, self.operator.size - 1) for ops in (sources, destinations))
        alive = np.ones(self.triples, np.bool_)
        ends = np.stack([self.triple[sources], self.triple[destinations]])
        same: Bools = (ends >= 0).all(axis=0) & (self.operator[sources] == self.operator[destinations])
        if not same.any():
            return same
        while True:
            good: Bools = same.copy()
            good[same] = alive[ends[:, same]].all(axis=0)
            struck = ends[:, ~good]
            struck = struck[struck >= 0]
            if not alive[struck].any():
                return good
            alive[struck] = False


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
        """Levels, sorted, and beside them the keys of the accesses exposed there."""
        exposed = self.profile.exposed
        order = np.argsort(exposed["level"], kind="stable")
        return exposed["level"].astype(np.int64)[order], _key(exposed["instruction"], exposed["node"])[order]

    def objects(self, dependence: int) -> list[int]:
        """The objects in which a dependence happened; NONE alone if they are too many or unknown."""
        listed = self.lists[dependence]
        known: list[int] = listed[listed != NONE].tolist()
        return known if known and not self.wide[dependence] else [NONE]

    def find(self, view: LevelView, reduced: Bools) -> tuple[Bools, Indices]:
        """Which of ``view.dependences`` privatization removes, and the objects (rows) to be made private.

        Those that reductions remove (`reduced`) need no private object; as flows they still forbid one.
        """
        raw, wide = self.raw[view.dependences], self.wide[view.dependences]
        false = view.carried & ~reduced & ~raw
        flows = view.carried & raw
        if not false.any() or (flows & wide).any():  # a wide one may be on any object
            return np.zeros(false.size, np.bool_), np.zeros(0, np.int64)
        lists = self.lists[view.dependences]
        candidates = np.setdiff1d(lists[false], np.append(lists[flows], NONE))
        candidates = candidates[self.profile.objects["kind"][candidates] != ObjectKind.UNKNOWN]
        overwritten = view.dependences[view.carried & self._war[view.dependences]]
        exposed = overwritten[self._is_exposed(overwritten, view.node)]
        if self.wide[exposed].any():
            return np.zeros(false.size, np.bool_), np.zeros(0, np.int64)
        private = np.setdiff1d(candidates, self.lists[exposed])
        known = (lists == NONE) | np.isin(lists, private)
        removed: Bools = false & known.all(axis=1) & (lists[:, 0] != NONE) & ~wide
        return removed, np.setdiff1d(lists[removed], [NONE])

    def is_read_before_written(self, object_row: int, level: int) -> bool:
        """May a load at `level` read what its own iteration had not stored in an object (row)?"""
        objects, holders = self._by_object
        first, last = np.searchsorted(objects, [object_row, object_row + 1])
        return bool(self._is_exposed(np.append(holders[first:last], np.flatnonzero(self.wide)), level).any())

    def _is_exposed(self, dependences: Indices, level: int) -> Bools:
        """Per dependence (row): does it have a load that reads, at `level`, what its own iteration had not stored?"""
        levels, keys = self._exposed
        start, end = np.searchsorted(levels, [level, level + 1])
        exposed: Bools = np.isin(self._load[dependences], keys[start:end])
        return exposed


def _key(instruction: Rows, node: Rows) -> Indices:
    """One number for an (instruction, context) pair."""
    return instruction.astype(np.int64) << 32 | node.astype(np.int64)
