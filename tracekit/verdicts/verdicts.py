"""The verdict of every loop that ran: may its iterations run in parallel, and if not, what stands in the way.

docs/verdicts.md defines each term. A verdict is computed for each loop node of a
:class:`~tracekit.dependence.profile.DependenceProfile`: a loop in a context (camp) or a loop (lamp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracekit.containers.grouping import grouped
from tracekit.contexts.nodes import LOOPS
from tracekit.contexts.subtrees import subtree_ends
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.events import NONE
from tracekit.program.loop_graph import Indices, LoopGraph
from tracekit.verdicts.counters import Counters
from tracekit.verdicts.levels import ANY_CALL, Levels
from tracekit.verdicts.loop_facts import LoopFacts, Reason
from tracekit.verdicts.removals import Removals
from tracekit.verdicts.source_variables import SourceVariables
from tracekit.verdicts.transformations import Privates, Transformation
from tracekit.verdicts.whole_graph import Dependences, working_components

if TYPE_CHECKING:
    from tracekit.program.program import Program


class Verdict(str, Enum):
    """From best to worst; NOT_EXERCISED says nothing and ranks before all."""

    NOT_EXERCISED = "not-exercised"
    DOALL = "doall"
    DOALL_WITH = "doall-with"
    PIPELINE = "pipeline"
    SEQUENTIAL = "sequential"

    @property
    def rank(self) -> int:
        """Greater is worse."""
        return _RANK[self]


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
PARALLEL = frozenset((Verdict.DOALL, Verdict.DOALL_WITH, Verdict.PIPELINE))


class Blocker(NamedTuple):
    """One obstacle; what `source` and `destination` (NONE if unused) number depends on the reason."""

    reason: Reason
    source: int
    destination: int


@dataclass(frozen=True)
class Judgement:
    """The verdict of one loop node."""

    node: int
    verdict: Verdict
    transformations: tuple[Transformation, ...]  # sorted; empty unless DOALL_WITH
    blocked_by: tuple[Blocker, ...]  # sorted; empty unless PIPELINE or SEQUENTIAL
    carried: tuple[int, int, int]  # numbers of carried RAW, WAR and WAW dependences
    rests_on: tuple[int, ...] = ()  # sorted: loads and calls that have to return the same in all iterations, and did
    not_taken: tuple[int, ...] = ()  # sorted rows of loop_exits: errors at which this run never left the loop


def judge(
    program: Program, profile: DependenceProfile, facts: LoopFacts | None = None, windowed: bool = False
) -> list[Judgement]:
    """The judgement of every loop node of `profile`, in the order of nodes.

    `facts`: the program's, if at hand; `windowed`: is the profile of a window on the trace?
    """
    return Judge(program, profile, facts, windowed).judge()


_NOTHING: frozenset[int] = frozenset()


class StaticBlockers(NamedTuple):
    """What the program says of a loop, with what one of its contexts says of what it reads."""

    blockers: tuple[Blocker, ...]  # sorted
    rests_on: tuple[int, ...]  # as in Judgement
    not_taken: tuple[int, ...]


class Judge:
    """Judges the loop nodes of one profile, and says which parts of their graphs hold together."""

    def __init__(
        self, program: Program, profile: DependenceProfile, facts: LoopFacts | None = None, windowed: bool = False
    ) -> None:
        self.windowed = windowed
        self.program = program
        self.profile = profile
        self.facts = facts or LoopFacts(program)
        self.graphs = self.facts.graphs
        self.levels = Levels(profile, self.graphs)
        self.privates = Privates(profile)
        self.source_variables = SourceVariables(program, profile.objects)
        self.counters = Counters(program, self.graphs, self.privates, self.source_variables)
        self._loop, self._external = (profile.nodes[name].tolist() for name in ("loop", "external"))
        self._static = lru_cache(maxsize=None)(self._static_of)
        self._blocker = lru_cache(maxsize=None)(Blocker)

    def judge(self) -> list[Judgement]:
        """The judgement of every loop node, in the order of nodes."""
        nodes = self.profile.nodes
        is_loop = np.isin(nodes["kind"], LOOPS)
        is_exercised = is_loop & (nodes["most_iterations"] >= 2)
        exercised = np.flatnonzero(is_exercised).tolist()
        removals = Removals(exercised, self.profile, self.levels, self.facts, self.privates, self.counters)
        static = {node: self._static_blockers(node, removals.counting.get(node, _NOTHING)) for node in exercised}
        dependences = self._dependence_blockers(np.flatnonzero(removals.left))
        blocked = [node for node in exercised if static[node].blockers or node in dependences]
        is_pipeline = dict(zip(blocked, self._are_pipelines(blocked)))
        judgements = []
        for node in np.flatnonzero(is_loop).tolist():
            raw, war, waw = self.levels.carried_kinds[node]
            carried = raw, war, waw
            if not is_exercised[node]:
                judgements.append(Judgement(node, Verdict.NOT_EXERCISED, (), (), carried))
            elif node in is_pipeline:
                verdict = Verdict.PIPELINE if is_pipeline[node] else Verdict.SEQUENTIAL
                blocked_by = (*dependences.get(node, ()), *static[node].blockers)
                judgements.append(Judgement(node, verdict, (), blocked_by, carried))
            else:
                steps = self.source_variables.complete(self._loop[node], sorted(removals.of(node)))
                verdict = Verdict.DOALL_WITH if steps else Verdict.DOALL
                rests_on, not_taken = static[node].rests_on, static[node].not_taken
                judgements.append(Judgement(node, verdict, steps, (), carried, rests_on, not_taken))
        return judgements

    def _dependence_blockers(self, rows: Indices) -> dict[int, list[Blocker]]:
        """Rows of the levels by node, as pairs of instructions in order."""
        levels = self.levels
        pairs, _ = grouped(levels.node[rows], levels.sources[rows], levels.destinations[rows])  # NONE comes last
        blockers: dict[int, list[Blocker]] = {}
        for node, source, destination in zip(*pairs.tolist()):
            blockers.setdefault(node, []).append(self._blocker(Reason.DEPENDENCE, source, destination))
        return blockers

    # -- apart from memory dependences -------------------------------------------------------------

    def _static_blockers(self, node: int, counting: frozenset[int]) -> StaticBlockers:
        """What blocks a loop apart from memory dependences; the loads and calls, and exits, that did not.

        `counting`: loads of the loop's counter, of which it is known ahead what they return.
        """
        loop, changing = self._loop[node], self.levels.changing(node)
        relevant = self.facts.read(loop).intersection(changing)
        return self._static(loop, self._external[node], counting, relevant, ANY_CALL in changing)

    def _static_of(
        self, loop: int, external: int, counting: frozenset[int], changing: frozenset[int], any_call: bool
    ) -> StaticBlockers:
        """The same; `changing`: of what the loop reads; `any_call`: so may what any call returns."""
        calls = self.facts.calls(loop) if any_call else _NOTHING
        blockers: list[Blocker] = []
        rests_on: set[int] = set()
        not_taken = []
        for reason, row, needed in self.facts.needed(loop):
            ops = None if needed is None else needed - counting
            if ops is not None and ops.isdisjoint(changing) and ops.isdisjoint(calls):
                rests_on |= ops
            elif reason is Reason.EXIT and self._never_left(row):
                not_taken.append(row)
            else:
                blockers.append(Blocker(reason, row, NONE))
        if external != NONE:
            blockers.append(Blocker(Reason.EXTERNAL, external, NONE))
        return StaticBlockers(
            tuple(sorted(blockers, key=_blocker_key)), tuple(sorted(rests_on)), tuple(sorted(not_taken))
        )

    @cached_property
    def subtree_ends(self) -> Indices:
        """(nodes,) i8: of each node the first row behind its subtree."""
        return subtree_ends(self.profile.nodes["parent"])

    def _never_left(self, exit_row: int) -> bool:
        """Does the run show that a loop was never left at an exit? A window may begin between what it counts."""
        return not self.windowed and self._never_taken(exit_row)

    @cached_property
    def _never_taken(self) -> Callable[[int], bool]:
        """Row of loop_exits -> does the run show that the loop was never left there?"""
        accesses = self.profile.accesses
        counts = np.zeros(len(self.program.ops) + 1, np.int64)  # per operation how often it ran
        np.add.at(counts, np.minimum(accesses["instruction"], counts.size - 1), accesses["count"].astype(np.int64))
        return lru_cache(maxsize=None)(lambda exit_row: self.facts.causes.never_taken(exit_row, counts))

    # -- pipelines ---------------------------------------------------------------------------------

    def _are_pipelines(self, nodes: list[int]) -> list[bool]:
        """Have their loops two or more strongly connected components with memory accesses or calls?"""
        chosen = np.zeros(len(self.profile.nodes), np.bool_)
        chosen[nodes] = True
        of, tails, heads = self.levels.edges(chosen)
        first = np.searchsorted(of, np.arange(len(chosen) + 1)).tolist()
        numbers: dict[tuple[int, bytes, bytes, bytes], int] = {}
        graphs: list[tuple[LoopGraph, Dependences]] = []
        number_of = []
        for node in nodes:  # contexts of a loop share most graphs
            edges = slice(first[node], first[node + 1])
            found = Dependences(tails[edges], heads[edges], self.tied_calls(node))
            number = numbers.setdefault((self._loop[node], *(part.tobytes() for part in found)), len(numbers))
            if number == len(graphs):
                graphs.append((self.graphs[self._loop[node]], found))
            number_of.append(number)
        counts = working_components(graphs)
        return [counts[number] >= 2 for number in number_of]

    def tied_calls(self, node: int) -> Indices:
        """The calls of the loop whose unseen effects keep their order."""
        if self._external[node] == NONE:
            return np.zeros(0, np.int64)
        return self.graphs[self._loop[node]].unseen_calls


_REASON_RANK = {reason: rank for rank, reason in enumerate(Reason)}


def _blocker_key(blocker: Blocker) -> tuple[int, int, int]:
    return (_REASON_RANK[blocker.reason], blocker.source, blocker.destination)
