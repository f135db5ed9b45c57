"""What the module ``dependence`` needs besides its callbacks: checks of options, rows of the profile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.names import ContextNames, Json
from tracekit.contexts.nodes import NODE
from tracekit.dependence.kernels.dependence_table import DISTANCE_BITS
from tracekit.dependence.names import ProfileNames
from tracekit.dependence.reduce import Findings
from tracekit.dependence.result import profile_and_levels
from tracekit.dependence.rows import DependenceReport, instruction_key
from tracekit.formats.events import NONE
from tracekit.program.lookup import one_place

if TYPE_CHECKING:
    from tracekit.modules.contract import Module
    from tracekit.program.program import Program


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

    rows = [
        {"kind": "RAW", "source": end(int(key >> 32) - 1), "destination": end(int(key & 0xFFFF_FFFF))}
        for key in keys.tolist()
    ]
    return sorted(rows, key=lambda row: (instruction_key(row["source"]), instruction_key(row["destination"])))


def rows(module: Module, findings: Findings) -> list[Json]:
    """The rows of all dependences, with the columns that the module's options ask for."""
    options = module.options
    report = VariantReport(module, findings)
    place = one_place(module.program, place_of(options.carried_by)) if options.carried_by else None
    kinds = frozenset(options.kinds.upper().split(","))
    unwanted = [
        name
        for name, wanted in (
            ("count", options.counts),
            ("levels", options.distance),
            ("source_context", options.context),
            ("destination_context", options.context),
        )
        if not wanted
    ]
    shown = report.dependences(kinds, place)
    for row in shown:
        for name in unwanted:
            del row[name]
    return shown


def place_of(text: str) -> tuple[str, int]:
    """FILE:LINE as file and line."""
    file, _, line = text.rpartition(":")
    return file, int(line)


class VariantReport(DependenceReport):
    """The rows of a profile made of DependenceTable, with histograms of distances."""

    def __init__(self, module: Module, findings: Findings) -> None:
        self.distances = findings.distances[1:]
        contexts, instructions = getattr(module, "contexts", None), len(module.program.ops)
        profile, self.level_of = profile_and_levels(findings, contexts, instructions)
        super().__init__(ProfileNames(module.program, profile), profile, module.options.context)

    def _histograms(self, at: Indices, count: int) -> list[bytes]:
        shown = at[self.level_of[self.distances["key"] >> DISTANCE_BITS]]
        of_shown = shown >= 0
        distances = self.distances[of_shown]
        pairs, pair = grouped(shown[of_shown], distances["key"] & np.uint64((1 << DISTANCE_BITS) - 1))
        times = np.zeros(pairs.shape[1], np.int64)
        np.add.at(times, pair, distances["times"])
        table = np.stack([pairs[1], times], axis=1)
        ends = np.searchsorted(pairs[0], np.arange(count + 1)).tolist()
        return [table[first:end].tobytes() for first, end in pairwise(ends)]
