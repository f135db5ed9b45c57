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
import numpy.typing as npt

from tracekit.contexts.nodes import LOOPS
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag
from tracekit.program.components import components
from tracekit.program.loop_graph import Indices, LoopGraph
from tracekit.verdicts.counters import Counters
from tracekit.verdicts.levels import ANY_CALL, Levels, LevelView
from tracekit.verdicts.loop_facts import LoopFacts, Reason
from tracekit.verdicts.source_variables import SourceVariables
from tracekit.verdicts.transformations import Privates, Transformation

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
    loops = np.flatnonzero(np.isin(profile.nodes["kind"], LOOPS))
    bench = Judge(program, profile, facts, windowed)
    return [bench.judge(node) for node in loops.tolist()]


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
        self._pipelines: dict[tuple[int, bytes, bytes], bool] = {}
        self._source, self._destination = (
            profile.dependences[end].astype(np.int64) for end in ("source", "destination")
        )
        self._loop, self._external = (profile.nodes[name].tolist() for name in ("loop", "external"))
        self._is_exercised = (profile.nodes["most_iterations"] >= 2).tolist()

    def judge(self, node: int) -> Judgement:
        """The verdict of one loop node."""
        carried = self.levels.carried(node)
        if not self._is_exercised[node]:
            return Judgement(node, Verdict.NOT_EXERCISED, (), (), carried)
        view, loop = self.levels.view(node), self._loop[node]
        counter = self.counters.explained(loop, view)
        transformations, left = self._transform(loop, view._replace(carried=view.carried & ~counter.dependences))
        blockers, rests_on, not_taken = self._static_blockers(node, counter.loads)
        if not blockers and not left.any():
            transformations = self.source_variables.complete(loop, transformations)
            verdict = Verdict.DOALL_WITH if transformations else Verdict.DOALL
            return Judgement(node, verdict, transformations, (), carried, rests_on, not_taken)
        blocked_by = (*self._dependence_blockers(view.dependences[left]), *sorted(blockers, key=_blocker_key))
        verdict = Verdict.PIPELINE if self._is_pipeline(node) else Verdict.SEQUENTIAL
        return Judgement(node, verdict, (), blocked_by, carried)

    def _transform(self, loop: int, view: LevelView) -> tuple[tuple[Transformation, ...], npt.NDArray[np.bool_]]:
        """The transformations for the loop, and which of the view's dependences are carried in spite of it."""
        transformations = set(self.facts.reductions(loop))
        if not view.carried.any():
            return tuple(sorted(transformations)), view.carried
        sources, destinations = self._source[view.dependences], self._destination[view.dependences]
        reduced = self.facts.updates.reductions(sources, destinations) & view.carried
        for row in np.flatnonzero(reduced):
            operator = self.facts.updates.operator_of(sources[row])
            objects = self.privates.objects(int(view.dependences[row]))
            transformations |= {Transformation("reduction", NONE, object_row, operator) for object_row in objects}
        removed, private = self.privates.find(view, reduced)
        if private.size:
            same = self._stores_the_same(loop, sources, destinations)
            lists = self.privates.lists[view.dependences]
            for object_row in private.tolist():
                on_it = view.carried & ~reduced & (lists == object_row).any(axis=1)
                kind = "same value" if same[on_it].all() else "private"
                transformations.add(Transformation(kind, NONE, object_row, 0))
        return tuple(sorted(transformations)), view.carried & ~reduced & ~removed

    def _stores_the_same(self, loop: int, sources: Indices, destinations: Indices) -> npt.NDArray[np.bool_]:
        """Per dependence: does one store in the loop's own text only repeat itself, with a value from outside?"""
        ops = np.minimum(sources, len(self.program.ops) - 1)
        same: npt.NDArray[np.bool_] = (sources == destinations) & (
            self.program.ops["flags"][ops] & OpFlag.SAME_VALUE != 0
        )
        return same & self.graphs.op_inside(ops, np.full(ops.size, loop, np.int64))

    def _static_blockers(
        self, node: int, counting: frozenset[int]
    ) -> tuple[list[Blocker], tuple[int, ...], tuple[int, ...]]:
        """What blocks a loop apart from memory dependences; the loads and calls, and exits, that did not.

        `counting`: loads of the loop's counter, of which it is known ahead what they return.
        """
        loop, external = self._loop[node], self._external[node]
        changing = self.levels.changing(node)
        calls = self.facts.calls(loop) if ANY_CALL in changing else ()
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
        return blockers, tuple(sorted(rests_on)), tuple(sorted(not_taken))

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

    def _dependence_blockers(self, rows: Indices) -> list[Blocker]:
        """Dependences, rows of the profile's, as pairs of instructions in order."""
        pairs = np.unique((self._source[rows] << 32 | self._destination[rows]).view(np.uint64))  # NONE comes last
        ends = zip((pairs >> np.uint64(32)).tolist(), (pairs & np.uint64(0xFFFF_FFFF)).tolist())
        return [Blocker(Reason.DEPENDENCE, source, destination) for source, destination in ends]

    # -- pipelines ---------------------------------------------------------------------------------

    def _is_pipeline(self, node: int) -> bool:
        """Are there two or more strongly connected components with memory accesses or calls?"""
        loop = self._loop[node]
        tails, heads = self.levels.ends(node)
        edges = np.unique((tails - ANY_CALL) << 32 | (heads - ANY_CALL))
        tied = self.tied_calls(node)
        key = (loop, edges.tobytes(), tied.tobytes())
        if key not in self._pipelines:
            graph = self.graphs[loop]
            whole = whole_graph(graph, (edges >> 32) + ANY_CALL, (edges & 0xFFFF_FFFF) + ANY_CALL, tied)
            self._pipelines[key] = whole is not None and working_components(graph, whole) >= 2
        return self._pipelines[key]

    def tied_calls(self, node: int) -> Indices:
        """The calls of the loop whose unseen effects keep their order."""
        if self._external[node] == NONE:
            return np.zeros(0, np.int64)
        return self.graphs[self._loop[node]].unseen_calls


class WholeGraph(NamedTuple):
    """A loop's graph with its memory dependences: nodes by position in ``LoopGraph.nodes``, then helpers."""

    tails: Indices
    heads: Indices
    labels: Indices  # per node the strongly connected component; a component's successors have smaller numbers
    some_call: int  # the helper that stands for "some call": it is in the component of all calls, if it has edges


def whole_graph(graph: LoopGraph, tails: Indices, heads: Indices, tied: Indices) -> WholeGraph | None:
    """Add the memory dependences `tails` -> `heads`; None if one of them can be placed nowhere."""
    if not graph.calls.size and ((tails == ANY_CALL) | (heads == ANY_CALL)).any():
        return None  # an access of this loop that the graph cannot place
    some_call, may_go_on = graph.nodes.size, graph.nodes.size + 1
    everything = np.arange(graph.nodes.size)
    calls = np.searchsorted(graph.nodes, graph.calls)
    edges = [
        (graph.tails, graph.heads),
        # Every node of the next iteration waits for the decision not to leave.
        (graph.exits, np.full(graph.exits.size, may_go_on)),
        (np.full(everything.size, may_go_on), everything),
        _place(graph, tails, heads, some_call),
    ]
    if ((tails == ANY_CALL) | (heads == ANY_CALL)).any():
        edges += _both_ways(some_call, calls)
    # What unseen effects do to each other is unknown: they stay together, in order.
    edges += _both_ways(graph.nodes.size + 2, np.searchsorted(graph.nodes, tied))
    all_tails = np.concatenate([tail for tail, _ in edges])
    all_heads = np.concatenate([head for _, head in edges])
    labels = components(graph.nodes.size + 3, all_tails, all_heads)
    return WholeGraph(all_tails, all_heads, labels, some_call)


def working_components(graph: LoopGraph, whole: WholeGraph) -> int:
    """How many strongly connected components contain a memory access or a call."""
    return int(np.unique(whole.labels[: graph.nodes.size][graph.works]).size)


def _place(graph: LoopGraph, tails: Indices, heads: Indices, some_call: int) -> tuple[Indices, Indices]:
    """Node numbers -> positions in the graph."""

    def place(ends: Indices) -> Indices:
        return np.where(ends == ANY_CALL, some_call, np.searchsorted(graph.nodes, ends))

    return place(tails), place(heads)


def _both_ways(hub: int, spokes: Indices) -> list[tuple[Indices, Indices]]:
    """Edges that put all spokes into one component."""
    centre = np.full(spokes.size, hub)
    return [(centre, spokes), (spokes, centre)]


_REASON_RANK = {reason: rank for rank, reason in enumerate(Reason)}


def _blocker_key(blocker: Blocker) -> tuple[int, int, int]:
    return (_REASON_RANK[blocker.reason], blocker.source, blocker.destination)
