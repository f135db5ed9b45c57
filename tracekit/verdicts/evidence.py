"""What stands behind a blocker of a loop: the dependences, how often the loop carries them, what would remove them.

docs/advise.md says what the rows mean; the naive reference is in tests/naive/advise.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.names import Json
from tracekit.dependence.profile import LISTED_OBJECTS, DependenceKind, DependenceProfile
from tracekit.dependence.rows import instruction_key
from tracekit.formats.events import NONE
from tracekit.verdicts.names import VerdictNames, as_in_source
from tracekit.verdicts.verdicts import Blocker, Judge

LISTED_CONTEXTS = 8
"""How many pairs of contexts a dependence lists."""

KIND_NAMES = {kind.value: kind.name for kind in DependenceKind}


class _Carried:
    """The dependences that the loop at one node carries."""

    def __init__(self, profile: DependenceProfile, levels: np.ndarray) -> None:
        dependences = profile.dependences[levels["dependence"]]
        pairs, group = grouped(dependences["source"], dependences["destination"])
        order = np.argsort(group, kind="stable")
        parts = np.split(levels[order], np.cumsum(np.bincount(group))[:-1])
        self.of: dict[tuple[int, int], np.ndarray] = {
            (source, destination): part for (source, destination), part in zip(pairs.T.tolist(), parts, strict=False)
        }
        """(Source, destination) -> their levels. (Of no levels at all np.split makes one part.)"""
        raw = dependences[dependences["kind"] == DependenceKind.RAW]
        self.flows = set(raw["object_list"].ravel().tolist()) - {NONE}
        """The objects in which an iteration reads what another has stored, as far as they are listed."""
        self.flows_anywhere = bool((raw["objects"] > LISTED_OBJECTS).any())


class PlacedBlocker(NamedTuple):
    """A blocker, and the node at which it blocks."""

    blocker: Blocker
    node: int


class Evidence:
    """The evidence for blockers of one profile.

    `rare`: a dependence that is carried less often than that in 100 iterations counts as rare.
    """

    def __init__(self, judge: Judge, names: VerdictNames, rare: float) -> None:
        self.program = judge.program
        self.profile = judge.profile
        self.judge = judge
        self.names = names
        self.rare = rare
        self._carried_by_node: dict[int, _Carried] = {}
        self._beside_by_node: dict[int, dict[int, set[int]]] = {}

    def row(self, placed: Sequence[PlacedBlocker], iterations: int) -> Json:
        """The dependences between two instructions that a loop carries in spite of its transformations.

        `placed`: copies of one blocker of the source, by a dependence each; `iterations`: of the loop in all contexts.
        Distances are in iterations; `executions` counts accesses at the destination.
        """
        rows, executions, least, greatest = self._carried(placed)
        dependences = self.profile.dependences[rows]
        kinds = sorted(set(dependences["kind"].tolist()))
        objects = self._objects(rows)
        pairs = sorted(set(zip(dependences["source_node"].tolist(), dependences["destination_node"].tolist())))
        shown = [[self.names.context(node) for node in pair] for pair in pairs[:LISTED_CONTEXTS]]
        nodes_of: dict[Blocker, list[int]] = {}
        for blocker, node in placed:
            nodes_of.setdefault(blocker, []).append(node)
        remedies = [self._remedy(blocker, kinds, objects, nodes) for blocker, nodes in nodes_of.items()]
        alike = all(as_in_source(remedy) == as_in_source(remedies[0]) for remedy in remedies)
        return {
            "kinds": [KIND_NAMES[kind] for kind in kinds],
            "objects": None if objects is None else [self.names.object(number) for number in objects],
            "context_pairs": len(pairs),
            "contexts": [{"source": source, "destination": destination} for source, destination in shown],
            "distance": {"min": least, "max": greatest},
            "executions": executions,
            "per_iteration": round(executions / max(iterations, 1), 6),
            "rare": 100 * executions <= self.rare * iterations,
            "remedy": remedies[0] if alike else None,
        }

    def _carried(self, placed: Sequence[PlacedBlocker]) -> tuple[Indices, int, int, int]:
        """The rows of dependences behind blockers, how often they are carried, their least and greatest distance."""
        levels = np.concatenate(
            [self._carried_at(node).of[blocker.source, blocker.destination] for blocker, node in placed]
        )
        return (
            np.unique(levels["dependence"].astype(np.int64)),
            int(levels["carried"].sum()),
            int(levels["min_distance"].min()),
            int(levels["max_distance"].max()),
        )

    def _carried_at(self, node: int) -> _Carried:
        """Made once for each node: a large program has thousands of blockers at one."""
        if node not in self._carried_by_node:
            levels = self.profile.levels
            self._carried_by_node[node] = _Carried(self.profile, levels[(levels["node"] == node) & levels["inter"]])
        return self._carried_by_node[node]

    def _objects(self, rows: Indices) -> list[int] | None:
        """The objects in which dependences happened; None if they are more than the profile lists."""
        dependences = self.profile.dependences[rows]
        if (dependences["objects"] > LISTED_OBJECTS).any():
            return None
        return sorted(set(dependences["object_list"].ravel().tolist()) - {NONE})

    def _remedy(
        self, blocker: Blocker, kinds: Sequence[int], objects: list[int] | None, nodes: Sequence[int]
    ) -> Json | None:
        """What a programmer could do about a dependence; None: nothing that the trace would show."""
        source, destination = blocker.source, blocker.destination
        updates = self.judge.facts.updates
        ends = [min(op, updates.triple.size - 1) for op in (source, destination)]
        if all(updates.triple[op] >= 0 for op in ends) and len(set(map(updates.operator_of, ends))) == 1:
            others = self._spoilers(ends, nodes)
            return {
                "kind": "reduce",
                "operator": self.program.text(updates.operator_of(ends[0])),
                "but": [self.names.instruction(op) for op in others],
            }
        if DependenceKind.RAW not in kinds and objects is not None and not self._flows(objects, nodes):
            return {"kind": "copy" if DependenceKind.WAR in kinds else "last-writer"}
        return None

    def _spoilers(self, ends: Sequence[int], nodes: Sequence[int]) -> list[int]:
        """Instructions that look at a would-be reduction's intermediate values."""
        updates = self.judge.facts.updates
        triples = set(updates.triple[ends].tolist())
        readers = {op for node in nodes for triple in triples for op in self._beside(node).get(triple, ())}
        operators = updates.operator
        alien = [op for op in readers if operators[min(op, operators.size - 1)] != operators[ends[0]]]
        return sorted(alien, key=lambda op: instruction_key(self.names.instruction(op)))

    def _beside(self, node: int) -> dict[int, set[int]]:
        """Update -> the other ends of the dependences of its instructions at a node; made once for each node."""
        if node not in self._beside_by_node:
            levels, triple = self.judge.levels, self.judge.facts.updates.triple
            rows, beside = levels.rows(node), defaultdict[int, set[int]](set)
            ends = levels.sources[rows], levels.destinations[rows]
            for near, far in (ends, ends[::-1]):
                known = near < triple.size
                updates, others = triple[near[known]], far[known]
                for update, op in zip(updates[updates >= 0].tolist(), others[updates >= 0].tolist()):
                    beside[update].add(op)
            self._beside_by_node[node] = beside
        return self._beside_by_node[node]

    def _flows(self, objects: Sequence[int], nodes: Sequence[int]) -> bool:
        """Does an iteration read from any of these objects what another has stored?"""
        return any(
            carried.flows_anywhere or not carried.flows.isdisjoint(objects) for carried in map(self._carried_at, nodes)
        )
