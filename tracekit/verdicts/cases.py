"""The contexts of a hot loop that are judged alike, as one case: its trips, transformations, blockers and stages.

docs/advise.md says what the rows mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tracekit.contexts.names import Json
from tracekit.dependence.profile import DependenceProfile
from tracekit.verdicts.blocker_details import BlockerDetails
from tracekit.verdicts.carried import PlacedBlocker
from tracekit.verdicts.clocks import ClockCalls
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.names import VerdictNames, as_in_source
from tracekit.verdicts.obstacles import ExitDecisions, in_order
from tracekit.verdicts.stage_rows import StageRows
from tracekit.verdicts.verdicts import Blocker, Judge, Judgement, Verdict

HOPELESS = 0.9
"""A pipeline of which one stage in order makes so much of the accesses is called sequential: it gains a tenth."""


class AccessShares:
    """Of how many accesses contexts are, and which part of the run's that is."""

    def __init__(self, profile: DependenceProfile) -> None:
        self._nodes = profile.nodes
        self._total = int(profile.accesses["count"].sum())

    def accesses(self, judgements: Sequence[Judgement]) -> int:
        """Accesses made in these contexts of a loop, callees included."""
        return int(self._nodes["accesses"][[each.node for each in judgements]].sum())

    def percent(self, accesses: int) -> float:
        """So many accesses, in percent of all."""
        return round(100 * accesses / self._total, 2) if self._total else 0.0


class Cases:
    """The cases of the loops of one profile.

    `rare`: a dependence that is carried less often than that in 100 iterations counts as rare.
    """

    def __init__(self, judge: Judge, names: VerdictNames, rare: float) -> None:
        self.profile = judge.profile
        self.judge = judge
        self.names = names
        self.shares = AccessShares(judge.profile)
        self._details = BlockerDetails(judge, names, rare)
        self._clocks = ClockCalls(judge)
        self._decisions = ExitDecisions(judge.program, judge.facts.causes)
        self._stages = StageRows(judge, names)
        # Contexts of a loop share most obstacles, and obstacles their instructions.
        self._source_text = lru_cache(maxsize=None)(self._source_text_of)
        self._instruction_text = lru_cache(maxsize=None)(self._instruction_text_of)

    def rows(self, judgements: Sequence[Judgement]) -> list[Json]:
        """One row for each case of a loop, that with most accesses first; `judgements`: of its contexts."""
        groups: dict[tuple[Any, ...], list[Judgement]] = {}
        for judgement in judgements:
            groups.setdefault(self._signature(judgement), []).append(judgement)
        ordered = sorted(groups.values(), key=lambda group: (-self.shares.accesses(group), self._context_key(group)))
        return [self._row(group) for group in ordered]

    def verdict(self, judgement: Judgement) -> Verdict:
        """camp's verdict, but that a pipeline with nothing to overlap is sequential."""
        if judgement.verdict is not Verdict.PIPELINE:
            return judgement.verdict
        heaviest = self._stages.heaviest_in_order(judgement.node)
        hopeless = heaviest >= HOPELESS * max(int(self.profile.nodes["accesses"][judgement.node]), 1)
        return Verdict.SEQUENTIAL if hopeless else Verdict.PIPELINE

    # -- which contexts are one case ---------------------------------------------------------------

    def _signature(self, judgement: Judgement) -> tuple[Any, ...]:
        """Contexts with the same are one case: also copies of a loop that inlining made."""
        transformations = [self.names.transformation(step) for step in judgement.transformations]
        blockers = tuple(map(self._source_text, judgement.blocked_by))
        return self.verdict(judgement), repr(as_in_source(transformations)), blockers

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
        loops = self.profile.nodes["loop"]
        contexts = [
            {
                **self.names.context(each.node),
                "inlined_at": self.names.source_loop(int(loops[each.node]))["inlined_at"],
            }
            for each in group
        ]
        return sorted(contexts, key=lambda each: (each["root"], tuple(each["path"]), each["id"] is None, each["id"]))

    # -- one case ----------------------------------------------------------------------------------

    def _row(self, group: Sequence[Judgement]) -> Json:
        nodes = self.profile.nodes[[each.node for each in group]]
        iterations, invocations = int(nodes["iterations"].sum()), int(nodes["invocations"].sum())
        accesses = self.shares.accesses(group)
        verdict = self.verdict(group[0])
        blockers = self._blockers(group, iterations)
        is_pipeline = group[0].verdict is Verdict.PIPELINE
        stages, unplaced = self._stages.of_heaviest([each.node for each in group]) if is_pipeline else ([], 0.0)
        return {
            "verdict": verdict.value,
            "contexts": self._contexts(group),
            "accesses": accesses,
            "share": self.shares.percent(accesses),
            "invocations": invocations,
            "iterations": iterations,
            "trips": {
                "min": int(nodes["least_iterations"].min()),
                "mean": round(iterations / max(invocations, 1), 2),
                "max": int(nodes["most_iterations"].max()),
            },
            "recipe": [self.names.transformation(step) for step in group[0].transformations],
            "blocked_by": blockers,
            "rests_on": self.names.rests_on(group),
            "not_taken": self.names.not_taken(group),
            "clocks": self._clock_rows(group, verdict),
            "speculation": _speculation(blockers, iterations),
            "independent_in_a_row": _independent_in_a_row(blockers),
            "stages": stages,
            "unplaced_share": unplaced,
        }

    def _clock_rows(self, group: Sequence[Judgement], verdict: Verdict) -> list[Json]:
        """The calls of a parallel loop that read a clock: they do not keep its iterations apart."""
        if verdict not in (Verdict.DOALL, Verdict.DOALL_WITH):
            return []
        may = self.judge.facts.clocks(int(self.profile.nodes["loop"][group[0].node]))
        ops = self._clocks.among(may, [each.node for each in group])
        return [{**self.names.instruction(op), "callee": self.names.entered(op)} for op in ops]

    def _blockers(self, group: Sequence[Judgement], iterations: int) -> list[Json]:
        """All that stands in the way; dependences with what is behind them, and with what would remove them.

        What inlining made several of is one.
        """
        copies: dict[str, list[PlacedBlocker]] = {}
        for judgement in group:
            for blocker in judgement.blocked_by:
                copies.setdefault(self._source_text(blocker), []).append(PlacedBlocker(blocker, judgement.node))
        blockers = [placed[0].blocker for placed in copies.values()]
        depending = [placed for placed in copies.values() if placed[0].blocker.reason is Reason.DEPENDENCE]
        details = iter(self._details.rows(depending, iterations))
        rows = []
        for blocker in blockers:
            row = self.names.blocker(blocker)
            if blocker.reason is Reason.DEPENDENCE:
                row.update(next(details))
            elif blocker.reason is Reason.EXTERNAL:
                row["callee"] = self.names.callee(blocker.source)
            rows.append(row)
        return in_order(rows, iterations, self._decisions.among(blockers))


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
