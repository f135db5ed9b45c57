"""What is said of a dependence that blocks a loop: its objects and contexts, how often it is carried, what removes it.

docs/advise.md says what the rows mean; the naive reference is in tests/naive/advise.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from tracekit.contexts.names import Json
from tracekit.dependence.profile import DependenceKind
from tracekit.dependence.rows import instruction_key
from tracekit.verdicts.carried import CarriedPair, CarriedPairs, PlacedBlocker
from tracekit.verdicts.names import VerdictNames, as_in_source
from tracekit.verdicts.verdicts import Blocker, Judge

LISTED_CONTEXTS = 8
"""How many pairs of contexts a dependence lists."""

KIND_NAMES = {kind.value: kind.name for kind in DependenceKind}


class BlockerDetails:
    """The details of blockers of one profile.

    `rare`: a dependence that is carried less often than that in 100 iterations counts as rare.
    """

    def __init__(self, judge: Judge, names: VerdictNames, rare: float) -> None:
        self.program = judge.program
        self.profile = judge.profile
        self.judge = judge
        self.names = names
        self.rare = rare
        self.carried = CarriedPairs(judge.profile)
        self._beside_by_node: dict[int, dict[int, set[int]]] = {}
        # Pairs of one update share their spoilers, rows their contexts.
        self._spoilers = lru_cache(maxsize=None)(self._spoilers_of)
        self._contexts = lru_cache(maxsize=None)(self._contexts_of)
        self._update_of: list[int] = self.judge.facts.updates.triple.tolist()

    def rows(self, blockers: Sequence[Sequence[PlacedBlocker]], iterations: int) -> list[Json]:
        """The dependences between two instructions that a loop carries in spite of its transformations.

        `blockers`: of each the copies of one blocker of the source, by a dependence each; `iterations`: of the loop in
        all contexts. Distances are in iterations; `executions` counts accesses at the destination.
        """
        return [
            self._row(placed, pair, iterations)
            for placed, pair in zip(blockers, self.carried.of(blockers), strict=True)
        ]

    def _row(self, placed: Sequence[PlacedBlocker], pair: CarriedPair, iterations: int) -> Json:
        return {
            "kinds": [KIND_NAMES[kind] for kind in pair.kinds],
            "objects": None if pair.objects is None else [self.names.object(number) for number in pair.objects],
            "context_pairs": len(pair.contexts),
            "contexts": [self._contexts(*pair) for pair in pair.contexts[:LISTED_CONTEXTS]],
            "distance": {"min": pair.least, "max": pair.greatest},
            "executions": pair.executions,
            "per_iteration": round(pair.executions / max(iterations, 1), 6),
            "rare": 100 * pair.executions <= self.rare * iterations,
            "remedy": self._remedy(placed, pair),
        }

    def _contexts_of(self, source: int, destination: int) -> Json:
        return {"source": self.names.context(source), "destination": self.names.context(destination)}

    def _remedy(self, placed: Sequence[PlacedBlocker], pair: CarriedPair) -> Json | None:
        """What a programmer could do about a dependence; None: nothing that the trace would show, or copies differ."""
        nodes_of: dict[Blocker, list[int]] = {}
        for blocker, node in placed:
            nodes_of.setdefault(blocker, []).append(node)
        first, *others = [self._remedy_of(blocker, pair, nodes) for blocker, nodes in nodes_of.items()]
        if others and any(as_in_source(other) != as_in_source(first) for other in others):
            return None
        return first

    def _remedy_of(self, blocker: Blocker, pair: CarriedPair, nodes: Sequence[int]) -> Json | None:
        """The same of one copy, at some nodes."""
        updates = self.judge.facts.updates
        ends = [min(op, len(self._update_of) - 1) for op in (blocker.source, blocker.destination)]
        triples = frozenset(self._update_of[op] for op in ends)
        if min(triples) >= 0 and len(set(map(updates.operator_of, ends))) == 1:
            operator = updates.operator_of(ends[0])
            return {
                "kind": "reduce",
                "operator": self.program.text(operator),
                "but": [self.names.instruction(op) for op in self._spoilers(triples, operator, tuple(nodes))],
            }
        if DependenceKind.RAW in pair.kinds or pair.objects is None or self.carried.flows(pair.objects, nodes):
            return None
        return {"kind": "copy" if DependenceKind.WAR in pair.kinds else "last-writer"}

    def _spoilers_of(self, triples: frozenset[int], operator: int, nodes: tuple[int, ...]) -> list[int]:
        """Instructions that look at the intermediate values of a would-be reduction's updates."""
        readers = {op for node in nodes for triple in triples for op in self._beside(node).get(triple, ())}
        operators = self.judge.facts.updates.operator
        alien = [op for op in readers if operators[min(op, operators.size - 1)] != operator]
        return sorted(alien, key=lambda op: instruction_key(self.names.instruction(op)))

    def _beside(self, node: int) -> dict[int, set[int]]:
        """Update -> the other ends of the dependences of its instructions at a node; made once for each node."""
        if node not in self._beside_by_node:
            triple, beside = self.judge.facts.updates.triple, defaultdict[int, set[int]](set)
            rows = self.judge.profile.dependences[self.judge.levels.view(node).dependences]
            ends = rows["source"], rows["destination"]
            for near, far in (ends, ends[::-1]):
                known = near < triple.size
                updates, others = triple[near[known]], far[known]
                for update, op in zip(updates[updates >= 0].tolist(), others[updates >= 0].tolist()):
                    beside[update].add(op)
            self._beside_by_node[node] = beside
        return self._beside_by_node[node]
