"""What may be done with each hot loop: its verdict, the cases in which contexts differ, the OpenMP directive.

Rows are made from camp's judgements (verdicts.py); nothing is judged again here. docs/advise.md says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tracekit.contexts.names import Json
from tracekit.dependence.profile import DependenceProfile
from tracekit.dependence.rows import LoopKey, loop_key
from tracekit.program.fates import Fate, fates
from tracekit.verdicts.cases import Cases
from tracekit.verdicts.clauses import NoDirective
from tracekit.verdicts.names import VerdictNames
from tracekit.verdicts.openmp import Directives
from tracekit.verdicts.verdicts import Judge, Judgement, Verdict

if TYPE_CHECKING:
    from tracekit.program.program import Program
    from tracekit.verdicts.loop_facts import LoopFacts

NOWHERE = ("", -1)
"""A place that no loop has."""


@dataclass(frozen=True)
class LoopSelection:
    """Which loops have a row."""

    top: int
    """So many, those with most accesses; 0: all."""
    min_share: float
    """Those with so much of all accesses, in percent."""
    at: tuple[str, int] | None = None
    """File and line of the loops that are asked for, whatever their share."""


class Advice:
    """The advice that follows from one profile.

    `rare`: a dependence that is carried less often than that in 100 iterations counts as rare.
    """

    def __init__(
        self,
        program: Program,
        profile: DependenceProfile,
        judgements: Sequence[Judgement],
        selection: LoopSelection,
        rare: float,
        facts: LoopFacts | None = None,
    ) -> None:
        self.program = program
        self.profile = profile
        self.selection = selection
        judge = Judge(program, profile, facts)
        self.names = VerdictNames(program, profile)
        self.directives = Directives(judge, self.names)
        self.cases = Cases(judge, self.names, rare)
        self._shares = self.cases.shares
        self._by_loop: dict[LoopKey, list[Judgement]] = {}
        for judgement in judgements:
            self._by_loop.setdefault(loop_key(self._source_loop(judgement)), []).append(judgement)

    def _source_loop(self, judgement: Judgement) -> Json:
        """The loop as it stands in the source, wherever its function was inlined."""
        return self.names.source_loop(int(self.profile.nodes["loop"][judgement.node]))

    @cached_property
    def _hot(self) -> list[LoopKey]:
        """The loops of which something can be said and that are hot enough, hottest first."""
        weight = {key: self._shares.accesses(each) for key, each in self._by_loop.items()}
        exercised = [key for key, each in self._by_loop.items() if _worst(each) is not Verdict.NOT_EXERCISED]
        hot = [key for key in exercised if self._shares.percent(weight[key]) >= self.selection.min_share]
        return sorted(hot, key=lambda key: (-weight[key], key))

    def loops(self) -> list[Json]:
        """One row for each hot loop; if a place is asked for, for each loop there."""
        if self.selection.at is not None:
            return [self._loop_row(self._by_loop[key]) for key in sorted(self._by_loop) if self._is_asked_for(key)]
        return [self._loop_row(self._by_loop[key]) for key in self._hot[: self.selection.top or None]]

    def _is_asked_for(self, key: LoopKey) -> bool:
        return (key[0], key[2]) == self.selection.at

    def further(self) -> list[Json]:
        """Hot loops that are parallel and not among those shown."""
        rows: list[Json] = []
        if self.selection.at is not None:
            return rows
        for key in self._hot[self.selection.top or None :] if self.selection.top else []:
            judgements = self._by_loop[key]
            if _worst(judgements).rank <= Verdict.DOALL_WITH.rank:
                accesses = self._shares.accesses(judgements)
                rows.append(
                    {
                        "loop": self._source_loop(judgements[0]) | {"inlined_at": []},
                        "verdict": _worst(judgements).value,
                        "accesses": accesses,
                        "share": self._shares.percent(accesses),
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

    def _loop_row(self, judgements: Sequence[Judgement]) -> Json:
        exercised = _exercised(judgements)
        loop = int(self.profile.nodes["loop"][judgements[0].node])
        accesses = self._shares.accesses(judgements)
        shown = self._shown_loop(judgements)
        return {
            "loop": shown | {"end_line": int(self.program.loops["end_line"][loop])},
            "verdict": self._worst_shown(judgements).value,
            "accesses": accesses,
            "share": self._shares.percent(accesses),
            "openmp": self._openmp(exercised),
            "cases": self.cases.rows(exercised),
            "contexts_not_exercised": len(judgements) - len(exercised),
            "holds": self._held.get((shown["file"], shown["line"], shown["column"]), []),
        }

    @cached_property
    def _fates(self) -> list[Fate]:
        return fates(self.program)

    @cached_property
    def _held(self) -> dict[tuple[str, int, int], list[Json]]:
        """Place of a loop -> the loops of the source that the optimiser has made a part of it."""
        held: dict[tuple[str, int, int], list[Json]] = {}
        for fate in self._fates:
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

    def _worst_shown(self, judgements: Sequence[Judgement]) -> Verdict:
        return max(map(self.cases.verdict, judgements), key=lambda verdict: verdict.rank)

    # -- its directive -----------------------------------------------------------------------------

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
        in_line = [key for key in self._by_loop if (key[0], key[2]) == (loop["file"], loop["line"])]
        replaced = [fate["loop"] for fate in self._fates]  # an optimiser may have left nothing of the one before it
        columns = [each["column"] for each in replaced if (each["file"], each["line"]) == (loop["file"], loop["line"])]
        if any(column < loop["column"] for column in (*columns, *(key[3] for key in in_line))):
            raise NoDirective("another loop begins before it in its line; give each a line of its own")
        for key in in_line:
            others = self._by_loop[key]
            if key == loop_key(loop):
                continue
            exercised = _exercised(others)
            if key[3] != loop["column"] or not exercised:
                continue
            if _worst(exercised).rank > Verdict.DOALL_WITH.rank:
                raise NoDirective(f"the same loop of {key[1]} is not parallel")
            if self.directives.directive(exercised) != pragma:
                raise NoDirective(f"the same loop of {key[1]} needs other clauses")


def _exercised(judgements: Sequence[Judgement]) -> list[Judgement]:
    return [each for each in judgements if each.verdict is not Verdict.NOT_EXERCISED]


def _worst(judgements: Sequence[Judgement]) -> Verdict:
    return max((each.verdict for each in judgements), key=lambda verdict: verdict.rank)
