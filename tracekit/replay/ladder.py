"""What the module ``dependence`` needs besides its callbacks: checks of options, rows of the profile."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.replay import arena
from tracekit.replay.carried import hottest
from tracekit.replay.dependence_profile import NODE
from tracekit.replay.dependence_result import profile_and_levels
from tracekit.replay.kernels.dependence import State
from tracekit.replay.kernels.relating import DISTANCE_BITS, count_all
from tracekit.replay.keyed import used_rows
from tracekit.replay.naming import ContextNames, Json
from tracekit.replay.report import Report, instruction_key

if TYPE_CHECKING:
    from tracekit.module import Module
    from tracekit.replay.program import Program


def check_kinds(kinds: str) -> None:
    """Raise ValueError for kinds that there are not."""
    for kind in kinds.split(","):
        if kind not in ("raw", "war", "waw"):
            raise ValueError(f"kinds are raw, war and waw, separated by commas; {kind!r} is none of them.")


def check_place(place: str) -> None:
    """Raise ValueError for what is neither empty nor FILE:LINE."""
    file, _, line = place.rpartition(":")
    if place and not (file and line.isdecimal()):
        raise ValueError(f"carried-by is a FILE:LINE or `hottest`, not {place!r}.")


# -- rows ------------------------------------------------------------------------------------------


def flow_rows(program: Program, keys: NDArray[np.uint64]) -> list[Json]:
    """The rows of flow dependences; a key is (source + 1) << 32 | destination."""
    instruction = ContextNames(program, np.zeros(0, NODE)).instruction
    none = len(program.ops)

    def end(row: int) -> Json:
        return instruction(NONE if row == none else row)

    rows = [{"kind": "RAW", "source": end(int(key >> 32) - 1), "destination": end(int(key & 0xFFFF_FFFF))}
            for key in keys.tolist()]
    return sorted(rows, key=lambda row: (instruction_key(row["source"]), instruction_key(row["destination"])))


def rows(module: Module, state: State) -> list[Json]:
    """The rows of all dependences, with the columns that the module's options ask for."""
    options = module.options
    report = LadderReport(module, state)
    place = None
    if options.carried_by:
        place = report.hottest() if options.carried_by == "hottest" else place_of(options.carried_by)
        if place is None:
            return []
    kinds = frozenset(options.kinds.upper().split(","))
    unwanted = [name for name, wanted in (
        ("count", options.counts), ("levels", options.distance), ("source_context", options.context),
        ("destination_context", options.context)) if not wanted]
    found = report.dependences(kinds, place)
    for row in found:
        for name in unwanted:
            del row[name]
    return found


def place_of(text: str) -> tuple[str, int]:
    """FILE:LINE as file and line."""
    file, _, line = text.rpartition(":")
    return file, int(line)


class LadderReport(Report):
    """The rows of a profile made of Relations, with histograms of distances."""

    def __init__(self, module: Module, state: State) -> None:
        count_all(state.relations, int(state.relations.levels.control[arena.USED]))
        self.distances = used_rows(state.relations.distances)[1:]
        found, self.level_of = profile_and_levels(state, getattr(module, "contexts", None), len(module.program.ops))
        super().__init__(module.program, found, [], module.options.context)

    def hottest(self) -> tuple[str, int] | None:
        """File and line of the loop with the most accesses, callees included."""
        return hottest(self.names.program, self.profile.nodes)

    def _levels(self) -> dict[int, list[Json]]:
        """The levels of each group, outermost first, with ``histogram: [[distance, times], ...]``."""
        counted: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        groups = self.group_of[self.profile.levels["dependence"]].tolist()
        loops = [tuple(self.names.level(node).values()) for node in self.profile.levels["node"].tolist()]
        for row in self.distances:
            level = self.level_of[int(row["key"]) >> DISTANCE_BITS]
            counted[groups[level], loops[level]][int(row["key"]) & ((1 << DISTANCE_BITS) - 1)] += int(row["times"])
        levels = super()._levels()
        return {group: [self._with_histogram(level, counted.get((group, tuple(level["loop"].values()))))
                        for level in listed] for group, listed in levels.items()}

    @staticmethod
    def _with_histogram(level: Json, counted: Counter[int] | None) -> Json:
        return {**level, "histogram": [list(each) for each in sorted(counted.items())] if counted else None}
