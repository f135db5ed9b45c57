"""The JSON rows of the dependence family's profiles: dependences, loops and summary.

Rows are ordered by what they show (source locations, contexts, instruction ids), never by the order
in which replay found them; rows that show the same thing are one row.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from tracekit.contexts.names import Json
from tracekit.contexts.nodes import ContextKind
from tracekit.dependence.profile import DependenceProfile
from tracekit.dependence.rows import (
    DependenceReport,
    LoopKey,
    RowKey,
    context_key,
    loop_key,
    place_key,
    without_repetitions,
)
from tracekit.modules.table import Table
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.names import VerdictNames
from tracekit.verdicts.verdicts import PARALLEL, Blocker, Judgement, Verdict

if TYPE_CHECKING:
    from tracekit.program.program import Program


class LoopReport(DependenceReport):
    """The rows of a profile's loops, too."""

    names: VerdictNames

    def __init__(
        self, program: Program, profile: DependenceProfile, judgements: list[Judgement], contexts: bool
    ) -> None:
        super().__init__(VerdictNames(program, profile), profile, contexts)
        self.judgements = judgements
        self._place_keys: dict[int, tuple[Any, ...]] = {}
        self._keyed = lru_cache(maxsize=None)(self._keyed_blocker)  # contexts of a loop share most obstacles

    # -- loops -------------------------------------------------------------------------------------

    def loops(self) -> LoopTable:
        """One row for each loop in a context (camp) or loop (lamp), by source location."""
        return LoopTable(self)

    def loop_groups(self) -> list[list[Judgement]]:
        """For each of these rows the judgements that it shows, in order."""
        loops = self.profile.nodes["loop"].tolist()
        merged: dict[RowKey, list[Judgement]] = {}
        for judgement in self.judgements:
            loop = self.names.loop(loops[judgement.node])
            context = context_key(self.names.context(judgement.node))[:2] if self.contexts else ()
            merged.setdefault((loop_key(loop), context), []).append(judgement)
        return [merged[key] for key in sorted(merged)]

    def loop_row(self, judgements: list[Judgement]) -> Json:
        """The row that shows judgements of one loop."""
        nodes = [judgement.node for judgement in judgements]
        verdict = max((judgement.verdict for judgement in judgements), key=lambda verdict: verdict.rank)
        raw, war, waw = (sum(judgement.carried[kind] for judgement in judgements) for kind in range(3))
        transformations = [
            self.names.transformation(step) for judgement in judgements for step in judgement.transformations
        ]
        blockers = dict(self._keyed(blocker) for judgement in judgements for blocker in judgement.blocked_by)
        return {
            "loop": self.names.loop(self._node_columns["loop"][nodes[0]]),
            "context": self._loop_context(judgements) if self.contexts else None,
            **({"recursive": True} if ContextKind.RECURSIVE_LOOP in self._of_nodes("kind", nodes) else {}),
            "invocations": sum(self._of_nodes("invocations", nodes)),
            "iterations": sum(self._of_nodes("iterations", nodes)),
            "accesses": sum(self._of_nodes("accesses", nodes)),
            "carried": {"raw": raw, "war": war, "waw": waw},
            "verdict": verdict.value,
            "recipe": without_repetitions(transformations) if verdict is Verdict.DOALL_WITH else [],
            "blocked_by": [blockers[key] for key in sorted(blockers)],
            "rests_on": self.names.rests_on(judgements if verdict.rank <= Verdict.DOALL_WITH.rank else ()),
            "not_taken": self.names.not_taken(judgements if verdict.rank <= Verdict.DOALL_WITH.rank else ()),
        }

    def _of_nodes(self, field: str, nodes: list[int]) -> list[int]:
        """A field of some nodes."""
        column = self._node_columns[field]
        return [column[node] for node in nodes]

    @cached_property
    def _node_columns(self) -> dict[str, list[int]]:
        """Fields of all nodes: most rows ask for one node, for which an array would take longer."""
        fields = ("loop", "kind", "invocations", "iterations", "accesses")
        return {field: self.profile.nodes[field].tolist() for field in fields}

    def _keyed_blocker(self, blocker: Blocker) -> tuple[tuple[Any, ...], Json]:
        """An obstacle, and the key that orders and tells apart those of a row."""
        shown = self.names.blocker(blocker)
        return (
            _REASON_RANK[blocker.reason],
            *(self._place_key(shown[end]) for end in ("source", "destination")),
        ), shown

    def _place_key(self, place: Json | None) -> tuple[Any, ...]:
        """:func:`place_key`, kept by identity: most obstacles share their instructions, which the names keep."""
        key = self._place_keys.get(id(place))
        if key is None:
            key = self._place_keys[id(place)] = place_key(place)
        return key

    def _loop_context(self, judgements: list[Judgement]) -> Json:
        """The context of copies of one loop: they share root and path, and the least of their ids stands for all."""
        contexts = [self.names.context(judgement.node) for judgement in judgements]
        return min(contexts, key=lambda context: context_key(context)[2])

    # -- summary -----------------------------------------------------------------------------------

    def parallel_loops(self) -> int:
        """How many loops (source locations) have a parallel verdict: the worst of all their rows."""
        worst: dict[LoopKey, Verdict] = {}
        for judgement in self.judgements:
            key = loop_key(self.names.loop(int(self.profile.nodes["loop"][judgement.node])))
            before = worst.get(key, Verdict.NOT_EXERCISED)
            worst[key] = max(before, judgement.verdict, key=lambda verdict: verdict.rank)
        return sum(verdict in PARALLEL for verdict in worst.values())


_REASON_RANK = {reason: rank for rank, reason in enumerate(Reason)}


class LoopTable(Table):
    """The loops of a report, made when they are looked at; their weight is ``accesses``."""

    def __init__(self, report: LoopReport) -> None:
        self._report = report
        self._groups = report.loop_groups()

    def __len__(self) -> int:
        return len(self._groups)

    def rows(self) -> list[Json]:
        """See :class:`Table`."""
        return [self._report.loop_row(group) for group in self._groups]

    def heaviest(self, limit: int) -> list[Json]:
        """See :class:`Table`."""
        accesses = self._report.profile.nodes["accesses"].tolist()
        weights = [sum(accesses[judgement.node] for judgement in group) for group in self._groups]
        hottest = sorted(range(len(weights)), key=lambda number: -weights[number])[: limit or None]
        return [self._report.loop_row(self._groups[number]) for number in hottest]

    def column(self, name: str) -> list[Any]:
        """See :class:`Table`; of ``loop`` without the rows."""
        if name != "loop":
            return super().column(name)
        loops, names = self._report.profile.nodes["loop"].tolist(), self._report.names
        return [names.loop(loops[group[0].node]) for group in self._groups]
