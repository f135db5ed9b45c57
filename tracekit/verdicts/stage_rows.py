"""The stages of a loop's pipeline as rows of advise: their lines, calls, values, and shares of the accesses."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.contexts.names import Json
from tracekit.formats.image import CallFlag, OpKind
from tracekit.verdicts.names import VerdictNames
from tracekit.verdicts.pipeline import Stage, heaviest_in_order, stages
from tracekit.verdicts.verdicts import Judge


class StageRows:
    """The stages of the loops of one profile; those of each node are found once."""

    def __init__(self, judge: Judge, names: VerdictNames) -> None:
        self.program = judge.program
        self.judge = judge
        self.names = names
        self._accesses = judge.profile.nodes["accesses"]
        self._stages_by_node: dict[int, list[Stage]] = {}

    def heaviest_in_order(self, node: int) -> int:
        """The accesses of the heaviest stage of the loop at a node whose iterations run one after another."""
        return heaviest_in_order(self._stages_at(node))

    def of_heaviest(self, nodes: Sequence[int]) -> tuple[list[Json], float]:
        """The stages at the node with the most accesses, and the percentage of those that belong to no certain one."""
        node = max(nodes, key=lambda row: (int(self._accesses[row]), -row))
        pipeline = self._stages_at(node)
        known = sum(stage.accesses for stage in pipeline)
        total = max(known, int(self._accesses[node]), 1)
        return [self._row(stage, total) for stage in pipeline], round(100 * (total - known) / total, 2)

    def _stages_at(self, node: int) -> list[Stage]:
        if node not in self._stages_by_node:
            self._stages_by_node[node] = stages(self.judge, node)
        return self._stages_by_node[node]

    def _row(self, stage: Stage, total: int) -> Json:
        """`total`: the accesses of which its share is given."""
        calls = [op for op in stage.operations if self.program.ops["kind"][op] == OpKind.CALL]
        places = {(place["file"], place["line"]) for place in map(self.names.instruction, stage.operations)}
        places |= {(place["file"], place["line"]) for place in map(self.names.phi, stage.recurrences)}
        return {
            "parallel": stage.parallel,
            "lines": [{"file": file, "line": line} for file, line in sorted(places) if line],
            "calls": sorted({self.names.entered(op) for op in calls if not self._is_pure(op)}),
            "values": sorted({self.names.phi(phi)["name"] for phi in stage.recurrences}),
            "share": round(100 * stage.accesses / total, 2),
        }

    def _is_pure(self, op: int) -> bool:
        call = self.program.calls[self.program.ops["base"][op]]
        return bool(call["flags"] & CallFlag.PURE)
