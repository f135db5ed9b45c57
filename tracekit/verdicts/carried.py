"""What loops carry between two instructions: kinds, objects, contexts, distances; of many blockers at once.

The loop of an interpreter is blocked by tens of thousands of pairs of instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.dependence.profile import LISTED_OBJECTS, DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.verdicts.verdicts import Blocker


class PlacedBlocker(NamedTuple):
    """A blocker, and the node at which it blocks."""

    blocker: Blocker
    node: int


class CarriedPair(NamedTuple):
    """What a loop carries between the two instructions of a blocker."""

    kinds: list[int]
    objects: list[int] | None
    """The rows of those in which dependences happened; None if they are more than the profile lists."""
    contexts: list[tuple[int, int]]
    """The different pairs of nodes of source and destination, in order."""
    executions: int
    """How often the loop carries it."""
    least: int
    """Distance, in iterations."""
    greatest: int


class _AtNode:
    """The dependences that the loop at one node carries."""

    def __init__(self, profile: DependenceProfile, node: int) -> None:
        levels = np.flatnonzero(profile.levels.carried["node"] == node)
        dependences = profile.dependences[profile.levels.carried["dependence"][levels]]
        pairs, group = grouped(dependences["source"], dependences["destination"])
        self.levels: Indices = levels[np.argsort(group, kind="stable")]
        """Rows of what levels carry, those of one pair of instructions one after another."""
        ends = np.cumsum(np.bincount(group, minlength=pairs.shape[1])).tolist()
        self.of: dict[tuple[int, int], tuple[int, int]] = {
            (source, destination): part
            for source, destination, part in zip(*pairs.tolist(), pairwise([0, *ends]), strict=True)
        }
        """(Source, destination) -> the first of its `levels`, and the first behind these."""
        raw = dependences[dependences["kind"] == DependenceKind.RAW]
        self.flows = set(raw["object_list"].ravel().tolist()) - {NONE}
        """The objects in which an iteration reads what another has stored, as far as they are listed."""
        self.flows_anywhere = bool((raw["objects"] > LISTED_OBJECTS).any())


class CarriedPairs:
    """What the loops of a profile carry. Of each node it is found once."""

    def __init__(self, profile: DependenceProfile) -> None:
        self._profile = profile
        self._at: dict[int, _AtNode] = {}

    def at(self, node: int) -> _AtNode:
        """What the loop at a node carries."""
        if node not in self._at:
            self._at[node] = _AtNode(self._profile, node)
        return self._at[node]

    def flows(self, objects: Sequence[int], nodes: Sequence[int]) -> bool:
        """Does an iteration at one of the nodes read from any of these objects what another has stored?"""
        return any(found.flows_anywhere or not found.flows.isdisjoint(objects) for found in map(self.at, nodes))

    def of(self, blockers: Sequence[Sequence[PlacedBlocker]]) -> list[CarriedPair]:
        """What is carried for each of `blockers`, dependences all: each stands for the copies of one of the source."""
        if not blockers:
            return []
        parts, lengths = [], []
        for placed in blockers:
            mine = [self._levels_of(each) for each in placed]
            parts += mine
            lengths.append(sum(map(len, mine)))
        levels = self._profile.levels.carried[np.concatenate(parts)]
        first = np.cumsum([0, *lengths[:-1]])
        owner = np.repeat(np.arange(len(blockers)), lengths)
        (owner, rows), _ = grouped(owner, levels["dependence"])
        dependences = self._profile.dependences[rows]
        in_many = np.zeros(len(blockers), np.bool_)
        in_many[owner[dependences["objects"] > LISTED_OBJECTS]] = True
        listed = dependences["object_list"].astype(np.int64)
        is_there = listed != NONE
        objects = _lists(len(blockers), np.repeat(owner, is_there.sum(axis=1)), listed[is_there])
        return [
            CarriedPair([kind for (kind,) in kinds], None if many else [row for (row,) in known], contexts, *counted)
            for kinds, many, known, contexts, *counted in zip(
                _lists(len(blockers), owner, dependences["kind"]),
                in_many.tolist(),
                objects,
                _lists(len(blockers), owner, dependences["source_node"], dependences["destination_node"]),
                np.add.reduceat(levels["carried"], first).tolist(),
                np.minimum.reduceat(levels["min_distance"], first).tolist(),
                np.maximum.reduceat(levels["max_distance"], first).tolist(),
                strict=True,
            )
        ]

    def _levels_of(self, placed: PlacedBlocker) -> Indices:
        at = self.at(placed.node)
        first, end = at.of[placed.blocker.source, placed.blocker.destination]
        return at.levels[first:end]


def _lists(owners: int, owner: Indices, *columns: npt.NDArray[np.integer]) -> list[list[tuple[int, ...]]]:
    """For each owner the different rows of `columns` that are its, in order."""
    (owner, *columns_of), _ = grouped(owner, *columns)
    rows = list(zip(*(column.tolist() for column in columns_of), strict=True))
    ends = np.cumsum(np.bincount(owner, minlength=owners)).tolist()
    return [rows[first:end] for first, end in pairwise(chain([0], ends))]
