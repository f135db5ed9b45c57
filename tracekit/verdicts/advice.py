"""What may be done with each hot loop: its verdict where contexts differ, the evidence, and what would free it.

Rows are made from camp's judgements (verdicts.py); nothing is judged again here. docs/advise.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from tracekit.contexts.names import Json
from tracekit.dependence.profile import DependenceProfile
from tracekit.dependence.rows import LoopKey, loop_key
from tracekit.formats.image import CallFlag, EdgeKind, NodeKind, OpKind
from tracekit.program.fates import fates
from tracekit.verdicts.behind import PlacedBlocker
from tracekit.verdicts.clauses import NoDirective
from tracekit.verdicts.clocks import ClockCalls
from tracekit.verdicts.evidence import Evidence
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.names import VerdictNames, as_in_source
from tracekit.verdicts.obstacles import in_order
from tracekit.verdicts.openmp import Directives
from tracekit.verdicts.pipeline import Stage, heaviest_in_order, stages
from tracekit.verdicts.verdicts import Blocker, Judge, Judgement, Verdict

if TYPE_CHECKING:
    from tracekit.program.program import Program
    from tracekit.verdicts.loop_facts import LoopFacts

HOPELESS = 0.9
"""A pipeline of which one stage in order makes so much of the accesses is called sequential: it gains a tenth."""

NOWHERE = ("", -1)
"""A place that no loop has."""


@dataclass(frozen=True)
class Limits:
    """What is shown, and what counts as rare."""

    top: int  # loops; 0: all
    min_share: float  # of all accesses, in percent
    rare: float  # executions of a dependence in 100 iterations
    at: tuple[str, int] | None = None  # file and line of the loops that are asked for, whatever their share


class Advice:
    """The advice that follows from one profile."""

    def __init__(
        self,
        program: Program,
        profile: DependenceProfile,
        judgements: Sequence[Judgement],
        limits: Limits,
        facts: LoopFacts | None = None,
    ) -> None:
        self.program = program
        self.profile = profile
        self.limits = limits
        self.judge = Judge(program, profile, facts)
        self.names = VerdictNames(program, profile)
        self.directives = Directives(self.judge, self.names)
        self.evidence = Evidence(self.judge, self.names, limits.rare)
        self.clocks = ClockCalls(program, profile)
        self.total = int(profile.accesses["count"].sum())
        self._by_loop: dict[LoopKey, list[Judgement]] = {}
        for judgement in judgements:
            self._by_loop.setdefault(loop_key(self._source_loop(judgement)), []).append(judgement)
        self._stages_by_node: dict[int, list[Stage]] = {}
        # Contexts of a loop share most obstacles, and obstacles their instructions.
        self._source_text = lru_cache(maxsize=None)(self._source_text_of)
        self._instruction_text = lru_cache(maxsize=None)(self._instruction_text_of)

    def _source_loop(self, judgement: Judgement) -> Json:
        """The loop as it stands in the source, wherever its function was inlined."""
        return self.names.source_loop(int(self.profile.nodes["loop"][judgement.node]))

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
        """One row for each hot loop; if a place is asked for, for each loop there."""
        if self.limits.at is not None:
            return [self._loop_row(self._by_loop[key]) for key in sorted(self._by_loop) if self._is_asked_for(key)]
        return [self._loop_row(self._by_loop[key]) for key in self._hot[: self.limits.top or None]]

    def _is_asked_for(self, key: LoopKey) -> bool:
        return (key[0], key[2]) == self.limits.at

    def further(self) -> list[Json]:
        """Hot loops that are parallel and not among those shown."""
        rows: list[Json] = []
        if self.limits.at is not None:
            return rows
        for key in self._hot[self.limits.top or None :] if self.limits.top else []:
            judgements = self._by_loop[key]
            if _worst(judgements).rank <= Verdict.DOALL_WITH.rank:
                accesses = self._accesses(judgements)
                rows.append(
                    {
                        "loop": self._source_loop(judgements[0]) | {"inlined_at": []},
                        "verdict": _worst(judgements).value,
                        "accesses": accesses,
                        "share": self._share(accesses),
                    }
                )
        return rows

    def summary(self) -> Json:
        """How many loops there are, and how many of each verdict among those that are hot."""
        verdicts = [self._worst_shown(self._by_loop[key]).value for key in self._hot]
        return {
            "loops": len(self._by_loop),
            "hot": len(self._hot),
            "not_exercised": sum(_worst(each) is Verdict.NOT_EXERCISED for each in self._by_loop.values()),
            "verdicts": {verdict.value: verdicts.count(verdict.value) for verdict in list(Verdict)[1:]},
        }

    # -- one loop ----------------------------------------------------------------------------------

    def _loop_row(self, judgements: list[Judgement]) -> Json:
        exercised = [each for each in judgements if each.verdict is not Verdict.NOT_EXERCISED]
        loop = int(self.profile.nodes["loop"][judgements[0].node])
        accesses = self._accesses(judgements)
        groups: dict[tuple[Any, ...], list[Judgement]] = {}
        for judgement in exercised:
            groups.setdefault(self._signature(judgement), []).append(judgement)
        ordered = sorted(groups.values(), key=lambda group: (-self._accesses(group), self._context_key(group)))
        shown = self._shown_loop(judgements)
        return {
            "loop": shown | {"end_line": int(self.program.loops["end_line"][loop])},
            "verdict": self._worst_shown(judgements).value,
            "accesses": accesses,
            "share": self._share(accesses),
            "openmp": self._openmp(exercised),
            "cases": [self._case(group) for group in ordered],
            "contexts_not_exercised": len(judgements) - len(exercised),
            "holds": self._held.get((shown["file"], shown["line"], shown["column"]), []),
        }

    @cached_property
    def _held(self) -> dict[tuple[str, int, int], list[Json]]:
        """Place of a loop -> the loops of the source that the optimiser has made a part of it."""
        held: dict[tuple[str, int, int], list[Json]] = {}
        for fate in fates(self.program):
            if into := fate["into"]:
                row = {"loop": fate["loop"], "fate": fate["fate"]}
                held.setdefault((into["file"], into["line"], into["column"]), []).append(row)
        return held

    def _shown_loop(self, judgements: Sequence[Judgement]) -> Json:
        """A loop of the source; of one in the system's headers, with all places in the user's code."""
        copies = [self._source_loop(each) for each in judgements]
        shown = {name: part for name, part in copies[0].items() if name not in ("inlined_at", "called_at")}
        places = {
            (place["file"], place["line"], place["column"], place["function"]): place
            for copy in copies
            for place in copy.get("called_at", ())
        }
        return {**shown, "called_at": [places[key] for key in sorted(places)]} if places else shown

    def _signature(self, judgement: Judgement) -> tuple[Any, ...]:
        """Contexts with the same are one case: also copies of a loop that inlining made."""
        transformations = [self.names.transformation(step) for step in judgement.transformations]
        blockers = tuple(map(self._source_text, judgement.blocked_by))
        return self._verdict(judgement), repr(as_in_source(transformations)), blockers

    def _source_text_of(self, blocker: Blocker) -> str:
        """The same for the copies that inlining made of an obstacle."""
        if blocker.reason is Reason.DEPENDENCE:
            return f"{self._instruction_text(blocker.source)} -> {self._instruction_text(blocker.destination)}"
        return repr(as_in_source(self.names.blocker(blocker)))

    def _instruction_text_of(self, op: int) -> str:
        return repr(as_in_source(self.names.instruction(op)))

    def _context_key(self, group: Sequence[Judgement]) -> tuple[Any, ...]:
        return min((context["root"], tuple(context["path"])) for context in self._contexts(group))

    def _contexts(self, group: Sequence[Judgement]) -> list[Json]:
        contexts = [
            {**self.names.context(each.node), "inlined_at": self._source_loop(each)["inlined_at"]} for each in group
        ]
        return sorted(contexts, key=lambda each: (each["root"], tuple(each["path"]), each["id"] is None, each["id"]))

    def _verdict(self, judgement: Judgement) -> Verdict:
        """camp's verdict, but that a pipeline with nothing to overlap is sequential."""
        if judgement.verdict is not Verdict.PIPELINE:
            return judgement.verdict
        heaviest = heaviest_in_order(self._stages_at(judgement.node))
        hopeless = heaviest >= HOPELESS * max(int(self.profile.nodes["accesses"][judgement.node]), 1)
        return Verdict.SEQUENTIAL if hopeless else Verdict.PIPELINE

    def _worst_shown(self, judgements: Sequence[Judgement]) -> Verdict:
        return max(map(self._verdict, judgements), key=lambda verdict: verdict.rank)

    def _stages_at(self, node: int) -> list[Stage]:
        if node not in self._stages_by_node:
            self._stages_by_node[node] = stages(self.judge, node)
        return self._stages_by_node[node]

    def _openmp(self, judgements: Sequence[Judgement]) -> Json | None:
        """The directive, and where it goes; or why there is none; None unless the loop is parallel everywhere."""
        if not judgements or _worst(judgements).rank > Verdict.DOALL_WITH.rank:
            return None
        loop = self._source_loop(judgements[0])
        place = {"file": loop["file"], "line": loop["line"], "rounding": self.directives.accumulates_floats(judgements)}
        try:
            pragma = self.directives.directive(judgements)
            self._check_alone(loop, pragma)
            return {**place, "pragma": pragma, "missing": None}
        except NoDirective as reason:
            return {**place, "pragma": None, "missing": str(reason)}

    def _check_alone(self, loop: Json, pragma: str) -> None:
        """A directive before a line is about one loop, and about all functions that have the line's text.

        Raises NoDirective if another loop begins there, or the same one of another instance needs another directive.
        """
        for key, others in self._by_loop.items():
            if (key[0], key[2]) != (loop["file"], loop["line"]) or key == loop_key(loop):
                continue
            if key[3] < loop["column"]:
                raise NoDirective("another loop begins before it in its line; give each a line of its own")
            exercised = [each for each in others if each.verdict is not Verdict.NOT_EXERCISED]
            if key[3] != loop["column"] or not exercised:
                continue
            if _worst(exercised).rank > Verdict.DOALL_WITH.rank:
                raise NoDirective(f"the same loop of {key[1]} is not parallel")
            if self.directives.directive(exercised) != pragma:
                raise NoDirective(f"the same loop of {key[1]} needs other clauses")

    # -- one case ----------------------------------------------------------------------------------

    def _case(self, group: list[Judgement]) -> Json:
        nodes = self.profile.nodes[[each.node for each in group]]
        iterations, invocations = int(nodes["iterations"].sum()), int(nodes["invocations"].sum())
        accesses = self._accesses(group)
        verdict = self._verdict(group[0])
        blockers = self._blockers(group, iterations)
        shown_stages, unplaced = self._stages(group) if group[0].verdict is Verdict.PIPELINE else ([], 0.0)
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
            "clocks": self._clocks(group, verdict),
            "speculation": _speculation(blockers, iterations),
            "independent_in_a_row": _independent_in_a_row(blockers),
            "stages": shown_stages,
            "unplaced_share": unplaced,
        }

    def _clocks(self, group: Sequence[Judgement], verdict: Verdict) -> list[Json]:
        """The calls of a parallel loop that read a clock: they do not keep its iterations apart."""
        if verdict not in (Verdict.DOALL, Verdict.DOALL_WITH):
            return []
        may = self.judge.facts.clocks(int(self.profile.nodes["loop"][group[0].node]))
        ops = self.clocks.among(may, [each.node for each in group])
        return [{**self.names.instruction(op), "callee": self._called(op)} for op in ops]

    def _transformations(self, group: Sequence[Judgement]) -> list[Json]:
        return [self.names.transformation(step) for step in group[0].transformations]

    def _blockers(self, group: Sequence[Judgement], iterations: int) -> list[Json]:
        """All that stands in the way, each with its evidence and with what would remove it.

        What inlining made several of is one.
        """
        copies: dict[str, list[PlacedBlocker]] = {}
        for judgement in group:
            for blocker in judgement.blocked_by:
                copies.setdefault(self._source_text(blocker), []).append(PlacedBlocker(blocker, judgement.node))
        blockers = [placed[0].blocker for placed in copies.values()]
        depending = [placed for placed in copies.values() if placed[0].blocker.reason is Reason.DEPENDENCE]
        evidence = iter(self.evidence.rows(depending, iterations))
        rows = []
        for blocker in blockers:
            row = self.names.blocker(blocker)
            if blocker.reason is Reason.DEPENDENCE:
                row.update(next(evidence))
            elif blocker.reason is Reason.EXTERNAL:
                row["callee"] = self._callee(blocker.source)
            rows.append(row)
        return in_order(rows, iterations, self._follows(blockers))

    def _follows(self, blockers: Sequence[Blocker]) -> Callable[[int], set[int]]:
        """Of an exit among `blockers`, by its number: those of the variables and stores that the decision follows from.

        The loop of an interpreter has hundreds of exits beside thousands of dependences.
        """
        of_op: dict[int, list[int]] = {}
        of_phi: dict[int, list[int]] = {}
        for number, blocker in enumerate(blockers):
            if blocker.reason is Reason.DEPENDENCE:
                of_op.setdefault(blocker.destination, []).append(number)
            elif blocker.reason is Reason.RECURRENCE:
                of_phi.setdefault(blocker.source, []).append(number)
                for op in self._fed_by_phi.get(blocker.source, ()):
                    of_op.setdefault(op, []).append(number)

        def follows(number: int) -> set[int]:
            ops, phis = self.judge.facts.causes.behind(blockers[number].source)
            from_ops = {number for op in ops for number in of_op.get(op, ())}
            return from_ops.union(*(of_phi.get(phi, ()) for phi in phis))

        return follows

    @cached_property
    def _fed_by_phi(self) -> dict[int, set[int]]:
        """Row of phis -> the operations that it reaches through registers."""
        edges = self.program.edges
        fed: dict[int, set[int]] = {}
        chosen = (edges["kind"] == EdgeKind.REGISTER) & (edges["from_kind"] == NodeKind.PHI)
        for row in edges[chosen & (edges["to_kind"] == NodeKind.OP)]:
            fed.setdefault(int(row["from"]), set()).add(int(row["to"]))
        return fed

    def _callee(self, op: int) -> str:
        return self.program.callee_name(int(self.program.ops["base"][op])) or "a function through a pointer"

    # -- stages ------------------------------------------------------------------------------------

    def _stages(self, group: Sequence[Judgement]) -> tuple[list[Json], float]:
        """The stages in the context with the most accesses, and the share of those that belong to no certain one."""
        node = max((each.node for each in group), key=lambda row: (int(self.profile.nodes["accesses"][row]), -row))
        pipeline = self._stages_at(node)
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
