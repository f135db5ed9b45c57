"""What may be done with each hot loop: its verdict where contexts differ, the evidence, and what would free it.

Rows are made from camp's judgements (verdicts.py); nothing is judged again here. docs/advise.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.names import Json
from tracekit.dependence.profile import LISTED_OBJECTS, DependenceKind, DependenceProfile
from tracekit.dependence.rows import LoopKey, instruction_key, loop_key
from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag, OpKind
from tracekit.verdicts.names import VerdictNames
from tracekit.verdicts.openmp import Directives, NoDirective
from tracekit.verdicts.pipeline import Stage, stages
from tracekit.verdicts.verdicts import Blocker, Judge, Judgement, Reason, Verdict

if TYPE_CHECKING:
    from tracekit.program.program import Program

LISTED_CONTEXTS = 8
"""How many pairs of contexts a dependence lists."""

KIND_NAMES = {kind.value: kind.name for kind in DependenceKind}


@dataclass(frozen=True)
class Limits:
    """What is shown, and what counts as rare."""

    top: int  # loops; 0: all
    min_share: float  # of all accesses, in percent
    rare: float  # executions of a dependence in 100 iterations


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


class Advice:
    """The advice that follows from one profile."""

    def __init__(
        self, program: Program, profile: DependenceProfile, judgements: Sequence[Judgement], limits: Limits
    ) -> None:
        self.program = program
        self.profile = profile
        self.limits = limits
        self.judge = Judge(program, profile)
        self.names = VerdictNames(program, profile)
        self.directives = Directives(self.judge, self.names)
        self.total = int(profile.accesses["count"].sum())
        self._by_loop: dict[LoopKey, list[Judgement]] = {}
        for judgement in judgements:
            key = loop_key(self.names.loop(int(profile.nodes["loop"][judgement.node])))
            self._by_loop.setdefault(key, []).append(judgement)
        self._carried_by_node: dict[int, _Carried] = {}

    def _share(self, accesses: int) -> float:
        return round(100 * accesses / self.total, 2) if self.total else 0.0

    def _accesses(self, judgements: Sequence[Judgement]) -> int:
        return int(self.profile.nodes["accesses"][[each.node for each in judgements]].sum())

    @cached_property
    def _hot(self) -> list[LoopKey]:
        """The loops of which something can be said and that are hot enough, hottest first."""
        weight = {key: self._accesses(each) for key, each in self._by_loop.items()}
        exercised = [key for key, each in self._by_loop.items() if _worst(each) is not Verdict.NOT_EXERCISED]
        hot = [key for key in exercised if self._share(weight[key]) >= self.limits.min_share]
        return sorted(hot, key=lambda key: (-weight[key], key))

    def loops(self) -> list[Json]:
        """One row for each hot loop."""
        return [self._loop_row(self._by_loop[key]) for key in self._hot[: self.limits.top or None]]

    def further(self) -> list[Json]:
        """Hot loops that are parallel and not among those shown."""
        rows = []
        for key in self._hot[self.limits.top or None :] if self.limits.top else []:
            judgements = self._by_loop[key]
            if _worst(judgements).rank <= Verdict.DOALL_WITH.rank:
                accesses = self._accesses(judgements)
                rows.append(
                    {
                        "loop": self.names.loop(int(self.profile.nodes["loop"][judgements[0].node])),
                        "verdict": _worst(judgements).value,
                        "accesses": accesses,
                        "share": self._share(accesses),
                    }
                )
        return rows

    def summary(self) -> Json:
        """How many loops there are, and how many of each verdict among those that are hot."""
        verdicts = [_worst(self._by_loop[key]).value for key in self._hot]
        return {
            "loops": len(self._by_loop),
            "hot": len(self._hot),
            "not_exercised": sum(_worst(each) is Verdict.NOT_EXERCISED for each in self._by_loop.values()),
            "verdicts": {verdict.value: verdicts.count(verdict.value) for verdict in list(Verdict)[1:]},
        }

    # -- one loop ----------------------------------------------------------------------------------

    def _loop_row(self, judgements: list[Judgement]) -> Json:
        exercised = [each for each in judgements if each.verdict is not Verdict.NOT_EXERCISED]
        loop = int(self.profile.nodes["loop"][exercised[0].node])
        shown = self.names.loop(loop)
        accesses = self._accesses(judgements)
        groups: dict[str, list[Judgement]] = {}
        for judgement in exercised:
            groups.setdefault(self._signature(judgement), []).append(judgement)
        ordered = sorted(groups.values(), key=lambda group: (-self._accesses(group), self._context_key(group)))
        return {
            "loop": {**shown, "end_line": int(self.program.loops["end_line"][loop])},
            "verdict": _worst(exercised).value,
            "accesses": accesses,
            "share": self._share(accesses),
            "openmp": self._openmp(exercised, shown),
            "cases": [self._case(group) for group in ordered],
            "contexts_not_exercised": len(judgements) - len(exercised),
        }

    def _signature(self, judgement: Judgement) -> str:
        """Contexts with the same are one case."""
        transformations = [self.names.transformation(step) for step in judgement.transformations]
        return repr((judgement.verdict, transformations, [self.names.blocker(each) for each in judgement.blocked_by]))

    def _context_key(self, group: Sequence[Judgement]) -> tuple[Any, ...]:
        return min((context["root"], tuple(context["path"])) for context in self._contexts(group))

    def _contexts(self, group: Sequence[Judgement]) -> list[Json]:
        contexts = [self.names.context(each.node) for each in group]
        return sorted(contexts, key=lambda each: (each["root"], tuple(each["path"]), each["id"] is None, each["id"]))

    def _openmp(self, judgements: Sequence[Judgement], loop: Json) -> Json | None:
        """The directive, and where it goes; or why there is none; None unless the loop is parallel everywhere."""
        if _worst(judgements).rank > Verdict.DOALL_WITH.rank:
            return None
        place = {"file": loop["file"], "line": loop["line"], "rounding": self.directives.accumulates_floats(judgements)}
        try:
            return {**place, "pragma": self.directives.directive(judgements), "missing": None}
        except NoDirective as reason:
            return {**place, "pragma": None, "missing": str(reason)}

    # -- one case ----------------------------------------------------------------------------------

    def _case(self, group: list[Judgement]) -> Json:
        nodes = self.profile.nodes[[each.node for each in group]]
        iterations, invocations = int(nodes["iterations"].sum()), int(nodes["invocations"].sum())
        accesses = self._accesses(group)
        verdict = group[0].verdict
        blockers = self._blockers(group, iterations)
        shown_stages, unplaced = self._stages(group) if verdict is Verdict.PIPELINE else ([], 0.0)
        return {
            "verdict": verdict.value,
            "contexts": self._contexts(group),
            "accesses": accesses,
            "share": self._share(accesses),
            "invocations": invocations,
            "iterations": iterations,
            "trips": {
                "min": int(nodes["least_iterations"].min()),
                "mean": round(iterations / max(invocations, 1), 2),
                "max": int(nodes["most_iterations"].max()),
            },
            "recipe": self._transformations(group),
            "blocked_by": blockers,
            "rests_on": self.names.rests_on(group),
            "not_taken": self.names.not_taken(group),
            "speculation": _speculation(blockers, iterations),
            "independent_in_a_row": _independent_in_a_row(blockers),
            "stages": shown_stages,
            "unplaced_share": unplaced,
        }

    def _transformations(self, group: Sequence[Judgement]) -> list[Json]:
        return [self.names.transformation(step) for step in group[0].transformations]

    def _blockers(self, group: Sequence[Judgement], iterations: int) -> list[Json]:
        """All that stands in the way, each with its evidence and with what would remove it."""
        nodes_of: dict[Blocker, list[int]] = {}
        for judgement in group:
            for blocker in judgement.blocked_by:
                nodes_of.setdefault(blocker, []).append(judgement.node)
        rows = []
        for blocker, nodes in nodes_of.items():
            row = self.names.blocker(blocker)
            if blocker.reason is Reason.DEPENDENCE:
                row.update(self._evidence(blocker, nodes, iterations))
            elif blocker.reason is Reason.EXTERNAL:
                row["callee"] = self._callee(blocker.source)
            rows.append(row)
        return sorted(rows, key=_blocker_order)

    def _callee(self, op: int) -> str:
        return self.program.callee_name(int(self.program.ops["base"][op])) or "a function through a pointer"

    def _evidence(self, blocker: Blocker, nodes: Sequence[int], iterations: int) -> Json:
        """The dependences between two instructions that the loop carries in spite of its transformations."""
        rows, executions, least, greatest = self._carried(blocker, nodes)
        dependences = self.profile.dependences[rows]
        kinds = sorted({int(kind) for kind in dependences["kind"]})
        things = self._things(rows)
        pairs = sorted({(int(row["source_node"]), int(row["destination_node"])) for row in dependences})
        shown = [[self.names.context(node) for node in pair] for pair in pairs[:LISTED_CONTEXTS]]
        return {
            "kinds": [KIND_NAMES[kind] for kind in kinds],
            "objects": None if things is None else [self.names.object(thing) for thing in things],
            "context_pairs": len(pairs),
            "contexts": [{"source": source, "destination": destination} for source, destination in shown],
            "distance": {"min": least, "max": greatest},
            "executions": executions,
            "per_iteration": round(executions / max(iterations, 1), 6),
            "rare": 100 * executions <= self.limits.rare * iterations,
            "remedy": self._remedy(blocker, kinds, things, nodes),
        }

    def _carried(self, blocker: Blocker, nodes: Sequence[int]) -> tuple[Indices, int, int, int]:
        """The rows of dependences behind a blocker, how often they are carried, their least and greatest distance."""
        levels = np.concatenate([self._carried_at(node).of[blocker.source, blocker.destination] for node in nodes])
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

    def _things(self, rows: Indices) -> list[int] | None:
        """The objects in which dependences happened; None if they are more than the profile lists."""
        dependences = self.profile.dependences[rows]
        if (dependences["objects"] > LISTED_OBJECTS).any():
            return None
        return sorted(set(dependences["object_list"].ravel().tolist()) - {NONE})

    def _remedy(
        self, blocker: Blocker, kinds: Sequence[int], things: list[int] | None, nodes: Sequence[int]
    ) -> Json | None:
        """What a programmer could do about a dependence; None: nothing that the trace would show."""
        source, destination = blocker.source, blocker.destination
        triples = self.judge.updates.triple
        ends = [min(op, triples.size - 1) for op in (source, destination)]
        if all(triples[op] >= 0 for op in ends) and len({self.judge.updates.operator_of(op) for op in ends}) == 1:
            others = self._spoilers(ends, nodes)
            return {
                "kind": "reduce",
                "operator": self.program.text(self.judge.updates.operator_of(ends[0])),
                "but": [self.names.instruction(op) for op in others],
            }
        if DependenceKind.RAW not in kinds and things is not None and not self._flows(things, nodes):
            return {"kind": "copy" if DependenceKind.WAR in kinds else "last-writer"}
        return None

    def _spoilers(self, ends: Sequence[int], nodes: Sequence[int]) -> list[int]:
        """Instructions that look at a would-be reduction's intermediate values."""
        members = np.flatnonzero(np.isin(self.judge.updates.triple, self.judge.updates.triple[ends]))
        readers: set[int] = set()
        for node in nodes:
            valid = self.profile.dependences[self.judge.view(node).dependences]
            for near, far in (("source", "destination"), ("destination", "source")):
                readers |= set(valid[far][np.isin(valid[near], members)].tolist())
        operators = self.judge.updates.operator
        alien = [op for op in readers if operators[min(op, operators.size - 1)] != operators[ends[0]]]
        return sorted(alien, key=lambda op: instruction_key(self.names.instruction(op)))

    def _flows(self, things: Sequence[int], nodes: Sequence[int]) -> bool:
        """Does an iteration read from any of these objects what another has stored?"""
        return any(
            carried.flows_anywhere or not carried.flows.isdisjoint(things) for carried in map(self._carried_at, nodes)
        )

    # -- stages ------------------------------------------------------------------------------------

    def _stages(self, group: Sequence[Judgement]) -> tuple[list[Json], float]:
        """The stages in the context with the most accesses, and the share of those that belong to no certain one."""
        node = max((each.node for each in group), key=lambda row: (int(self.profile.nodes["accesses"][row]), -row))
        pipeline = stages(self.judge, node)
        known = sum(stage.accesses for stage in pipeline)
        total = max(known, int(self.profile.nodes["accesses"][node]), 1)
        return [self._stage(stage, total) for stage in pipeline], round(100 * (total - known) / total, 2)

    def _stage(self, stage: Stage, total: int) -> Json:
        calls = [op for op in stage.operations if self.program.ops["kind"][op] == OpKind.CALL]
        shown = [op for op in calls if not self._is_plain(op)]
        places = {(place["file"], place["line"]) for place in map(self.names.instruction, stage.operations)}
        places |= {(place["file"], place["line"]) for place in map(self.names.phi, stage.recurrences)}
        return {
            "parallel": stage.parallel,
            "lines": [{"file": file, "line": line} for file, line in sorted(places) if line],
            "calls": sorted({self._called(op) for op in shown}),
            "values": sorted({self.names.phi(phi)["name"] for phi in stage.recurrences}),
            "share": round(100 * stage.accesses / total, 2),
        }

    def _is_plain(self, op: int) -> bool:
        call = self.program.calls[self.program.ops["base"][op]]
        return bool(call["flags"] & CallFlag.PURE)

    def _called(self, op: int) -> str:
        entered = self.program.call_callees(int(self.program.ops["base"][op]))
        return self.program.function_name(int(entered[0])) if entered.size == 1 else self._callee(op)


def _worst(judgements: Sequence[Judgement]) -> Verdict:
    return max((each.verdict for each in judgements), key=lambda verdict: verdict.rank)


def _speculation(blockers: Sequence[Json], iterations: int) -> Json | None:
    """What it takes to run the loop's iterations as if they were independent: all that blocks it is rare."""
    if not blockers or not all(row.get("rare", False) for row in blockers):
        return None
    executions = sum(row["executions"] for row in blockers)
    return {
        "dependences": len(blockers),
        "executions": executions,
        "per_iteration": round(executions / max(iterations, 1), 6),
    }


def _independent_in_a_row(blockers: Sequence[Json]) -> int | None:
    """So many consecutive iterations never depend on each other; None if that is one, or not known."""
    if not blockers or not all(row["reason"] == Reason.DEPENDENCE.value for row in blockers):
        return None
    least = min(row["distance"]["min"] for row in blockers)
    return int(least) if least > 1 else None


_REASONS = [reason.value for reason in Reason]


def _blocker_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Dependences first, the most frequent before the others, then by place."""
    ends = [row[end] for end in ("source", "destination") if row[end]]
    places = [
        (end.get("file", ""), end.get("line", 0), end.get("column", 0), end.get("id") or end.get("name") or "")
        for end in ends
    ]
    return (_REASONS.index(row["reason"]), -row.get("executions", 0), places)
