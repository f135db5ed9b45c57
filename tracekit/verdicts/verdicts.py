"""The verdict of every loop that ran: may its iterations run in parallel, and if not, what stands in the way.

docs/verdicts.md defines each term. A verdict is computed for each loop node of a
:class:`~tracekit.dependence.profile.DependenceProfile`: a loop in a context (camp) or a loop (lamp).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import grouped
from tracekit.contexts.nodes import CALLS, LOOPS, ContextKind
from tracekit.dependence.profile import DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag, PhiKind
from tracekit.program.causes import Causes
from tracekit.program.components import components
from tracekit.program.loop_graph import Indices, LoopGraph, LoopGraphs, Rows
from tracekit.verdicts.source_variables import SourceVariables
from tracekit.verdicts.transformations import LevelView, Privates, Transformation, Updates

if TYPE_CHECKING:
    from tracekit.program.program import Program

ANY_CALL = -1
"""In place of a node of a loop's graph: some call of the loop, it is not known which."""


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
        return list(Verdict).index(self)


PARALLEL = frozenset((Verdict.DOALL, Verdict.DOALL_WITH, Verdict.PIPELINE))


class Reason(str, Enum):
    """Why a loop is not doall."""

    DEPENDENCE = "dependence"  # source, destination: instructions
    RECURRENCE = "recurrence"  # source: row of phis
    EXIT = "exit"  # source: row of loop_exits
    EXTERNAL = "external"  # source: instruction of the call


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
    program: Program, profile: DependenceProfile, graphs: LoopGraphs | None = None, windowed: bool = False
) -> list[Judgement]:
    """The judgement of every loop node of `profile`, in the order of nodes.

    `graphs`: the program's, if at hand; `windowed`: is the profile of a window on the trace?
    """
    loops = np.flatnonzero(np.isin(profile.nodes["kind"], LOOPS))
    bench = Judge(program, profile, graphs, windowed)
    return [bench.judge(int(node)) for node in loops]


class Judge:
    """Judges the loop nodes of one profile, and says which parts of their graphs hold together."""

    def __init__(
        self, program: Program, profile: DependenceProfile, graphs: LoopGraphs | None = None, windowed: bool = False
    ) -> None:
        self.windowed = windowed
        self.program = program
        self.profile = profile
        self.graphs = graphs or LoopGraphs(program)
        self.causes = Causes(program)
        self.updates = Updates(program)
        self.privates = Privates(profile)
        self.source_variables = SourceVariables(program, profile.objects)
        self._order = np.argsort(profile.levels["node"], kind="stable")
        self._first = np.searchsorted(profile.levels["node"][self._order], np.arange(len(profile.nodes) + 1))
        self._pipelines: dict[tuple[int, bytes, bytes], bool] = {}
        self._needed = lru_cache(maxsize=None)(self._find_needed)  # a loop may stand in thousands of contexts
        nodes = profile.nodes
        self._parent, self._call = nodes["parent"].astype(np.int64), nodes["call"].astype(np.int64)
        self._is_call = np.isin(nodes["kind"], CALLS)

    def view(self, node: int) -> LevelView:
        """The dependences valid at `node`."""
        rows = self.profile.levels[self._order[self._first[node] : self._first[node + 1]]]
        rows = rows[rows["intra"] | rows["inter"]]
        return LevelView(node, rows["dependence"].astype(np.int64), rows["inter"].astype(np.bool_))

    def judge(self, node: int) -> Judgement:
        """The verdict of one loop node."""
        row = self.profile.nodes[node]
        view = self.view(node)
        kinds = self.profile.dependences["kind"][view.dependences[view.carried]]
        raw, war, waw = np.bincount(kinds, minlength=3).tolist()
        carried = (raw, war, waw)
        if row["most_iterations"] < 2:
            return Judgement(node, Verdict.NOT_EXERCISED, (), (), carried)
        transformations, left = self._transform(int(row["loop"]), view)
        blockers, rests_on, not_taken = self._static_blockers(view, int(row["external"]))
        blockers += self._dependence_blockers(view.dependences[left])
        if not blockers:
            transformations = self.source_variables.complete(int(row["loop"]), transformations)
            verdict = Verdict.DOALL_WITH if transformations else Verdict.DOALL
            return Judgement(node, verdict, transformations, (), carried, rests_on, not_taken)
        pipeline = self._is_pipeline(view)
        verdict = Verdict.PIPELINE if pipeline else Verdict.SEQUENTIAL
        return Judgement(node, verdict, (), tuple(sorted(blockers, key=_blocker_key)), carried)

    def _transform(self, loop: int, view: LevelView) -> tuple[tuple[Transformation, ...], npt.NDArray[np.bool_]]:
        """The transformations for the loop, and which of the view's dependences are carried in spite of it."""
        phis = self.graphs.header_phis(loop, PhiKind.REDUCTION)
        transformations = {
            Transformation("reduction", int(phi), NONE, int(self.program.phis["operator"][phi])) for phi in phis
        }
        if not view.carried.any():
            return tuple(sorted(transformations)), view.carried
        dependences = self.profile.dependences[view.dependences]
        sources = dependences["source"].astype(np.int64)
        reduced = self.updates.reductions(sources, dependences["destination"].astype(np.int64)) & view.carried
        for row in np.flatnonzero(reduced):
            operator = self.updates.operator_of(sources[row])
            objects = self.privates.objects(int(view.dependences[row]))
            transformations |= {Transformation("reduction", NONE, thing, operator) for thing in objects}
        removed, private = self.privates.find(view, reduced)
        same = self._stores_the_same(loop, dependences)
        for thing in private.tolist():
            on_it = view.carried & ~reduced & (dependences["object_list"] == thing).any(axis=1)
            kind = "same value" if same[on_it].all() else "private"
            transformations.add(Transformation(kind, NONE, thing, 0))
        return tuple(sorted(transformations)), view.carried & ~reduced & ~removed

    def _stores_the_same(self, loop: int, dependences: Rows) -> npt.NDArray[np.bool_]:
        """Per dependence: does one store in the loop's own text only repeat itself, with a value from outside?"""
        ops = np.minimum(dependences["source"].astype(np.int64), len(self.program.ops) - 1)
        same: npt.NDArray[np.bool_] = (dependences["source"] == dependences["destination"]) & (
            self.program.ops["flags"][ops] & OpFlag.SAME_VALUE != 0
        )
        return same & self.graphs.op_inside(ops, np.full(ops.size, loop, np.int64))

    def _static_blockers(
        self, view: LevelView, external: int
    ) -> tuple[list[Blocker], tuple[int, ...], tuple[int, ...]]:
        """What blocks the loop apart from memory dependences; the loads and calls, and exits, that did not."""
        loop = int(self.profile.nodes["loop"][view.node])
        changing = self._changing(view)
        calls = self.graphs[loop].calls if (changing == ANY_CALL).any() else np.zeros(0, np.int64)
        blockers, rests_on, not_taken = [], set(), []
        for (reason, row), ops in self._needed(loop).items():
            if ops is not None and not np.isin(ops, changing).any() and not np.isin(ops, calls).any():
                rests_on |= set(ops.tolist())
            elif reason is Reason.EXIT and self._never_left(row):
                not_taken.append(row)
            else:
                blockers.append(Blocker(reason, row, NONE))
        if external != NONE:
            blockers.append(Blocker(Reason.EXTERNAL, external, NONE))
        return blockers, tuple(sorted(rests_on)), tuple(sorted(not_taken))

    def _find_needed(self, loop: int) -> dict[tuple[Reason, int], Indices | None]:
        """What has to return the same in all iterations, for each recurrence and exit; None: nothing helps."""
        recurrences: list[int] = self.graphs.header_phis(loop, PhiKind.RECURRENCE).tolist()
        needed = {(Reason.RECURRENCE, phi): self.causes.advances(phi) for phi in recurrences}
        if self.causes.known(loop):
            exits = range(*self.graphs.exit_range(loop))
            return needed | {(Reason.EXIT, row): self.causes.leaving(row) for row in exits}
        return needed | {(Reason.EXIT, row): None for row in self.graphs.blocking_exits(loop).tolist()}

    def _never_left(self, exit_row: int) -> bool:
        """Does the run show that a loop was never left at an exit? A window may begin between what it counts."""
        return not self.windowed and self.causes.never_taken(exit_row, self._counts)

    @cached_property
    def _counts(self) -> Indices:
        """Per operation how often it ran."""
        accesses = self.profile.accesses
        counts = np.zeros(len(self.program.ops) + 1, np.int64)
        np.add.at(counts, np.minimum(accesses["instruction"], counts.size - 1), accesses["count"].astype(np.int64))
        return counts

    def _changing(self, view: LevelView) -> Indices:
        """The loop's own loads, and its calls (or ANY_CALL), that read what the same invocation had stored."""
        rows = self.profile.dependences[view.dependences]
        flows = rows[rows["kind"] == DependenceKind.RAW]
        return np.unique(self.graph_node(flows["destination"], flows["destination_node"], view.node))

    def _dependence_blockers(self, rows: Indices) -> list[Blocker]:
        dependences = self.profile.dependences[rows]
        pairs, _ = grouped(dependences["source"], dependences["destination"])
        return [Blocker(Reason.DEPENDENCE, source, destination) for source, destination in zip(*pairs.tolist())]

    # -- pipelines ---------------------------------------------------------------------------------

    def _is_pipeline(self, view: LevelView) -> bool:
        """Are there two or more strongly connected components with memory accesses or calls?"""
        loop = int(self.profile.nodes["loop"][view.node])
        edges, _ = grouped(*self.ends(view))
        tied = self.tied_calls(view.node)
        key = (loop, edges.tobytes(), tied.tobytes())
        if key not in self._pipelines:
            graph = self.graphs[loop]
            whole = whole_graph(graph, edges[0], edges[1], tied)
            self._pipelines[key] = whole is not None and working_components(graph, whole) >= 2
        return self._pipelines[key]

    def ends(self, view: LevelView) -> tuple[Indices, Indices]:
        """The nodes of the loop's graph, or ANY_CALL, at the two ends of each dependence of `view`."""
        dependences = self.profile.dependences[view.dependences]
        return (
            self.graph_node(dependences["source"], dependences["source_node"], view.node),
            self.graph_node(dependences["destination"], dependences["destination_node"], view.node),
        )

    def tied_calls(self, node: int) -> Indices:
        """The calls of the loop whose unseen effects keep their order."""
        graph = self.graphs[int(self.profile.nodes["loop"][node])]
        return graph.unseen_calls if self.profile.nodes["external"][node] != NONE else np.zeros(0, np.int64)

    def graph_node(self, instructions: Rows, contexts: Rows, level: int) -> Indices:
        """The node of the loop's graph in which each access (instruction, context) happens.

        That is the outermost call site between the loop and the access, or the instruction itself; ANY_CALL
        if the profile does not know the context below the loop and the instruction stands elsewhere.
        """
        result = instructions.astype(np.int64)
        at = contexts.astype(np.int64)
        below = np.ones(at.size, np.bool_)  # still on the way up to the level
        arrived = np.zeros(at.size, np.bool_)
        while below.any():
            arrived |= below & (at == level)
            below &= at != level
            through = below & self._is_call[at]
            result[through] = self._call[at[through]]
            parents = self._parent[at]
            below &= parents != NONE
            at = np.where(below, parents, at)
        result[~arrived] = instructions[~arrived]
        inside = self.graphs.op_inside(result, np.full(result.size, self.profile.nodes["loop"][level], np.int64))
        if self.profile.nodes["kind"][level] == ContextKind.RECURSIVE_LOOP:
            # What is below the loop may have been called by it when recursion had come back to it, inside another call.
            inside &= result == instructions
        return np.where(inside, result, ANY_CALL)


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
