"""What the module ``dependence`` needs besides its callbacks: empty tables, checks of options, rows of the profile."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.replay import arena
from tracekit.replay.carried import hottest
from tracekit.replay.contextstate import empty_stream
from tracekit.replay.dependence_profile import (
    ACCESS,
    DEPENDENCE,
    EXPOSED,
    LEVEL,
    NODE,
    OBJECT,
    DependenceKind,
    DependenceProfile,
)
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.readers import COLLECT_AT, FIRST_COLLECTION, READER, SEEN, Readers
from tracekit.replay.kernels.readers import CONTROL as READERS_CONTROL
from tracekit.replay.kernels.relating import (
    ACCESS_FIELDS,
    DEPENDENCE_FIELDS,
    DISTANCE_BITS,
    LEVEL_FIELDS,
    RECENT,
    Relations,
    count_all,
)
from tracekit.replay.kernels.runs import CONTROL as RUNS_CONTROL
from tracekit.replay.kernels.runs import STREAM, WAITING, Runs
from tracekit.replay.keyed import keyed, used_rows
from tracekit.replay.naming import ContextNames, Json
from tracekit.replay.report import Report, instruction_key

if TYPE_CHECKING:
    from tracekit.module import Module
    from tracekit.replay.program import Program

MOST_ACCESSES = 1 << 28
UPDATING = (OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.CALL)


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


# -- tables ----------------------------------------------------------------------------------------


def tables(program: Program) -> tuple[Readers, Relations, Runs]:
    """Empty tables for the loads since stores, the dependences, and executions of more than one access."""
    entries = arena.arena(READER, 1 << 32, spare=1)
    control = np.zeros(READERS_CONTROL, np.int64)
    control[arena.USED], control[COLLECT_AT] = 1, FIRST_COLLECTION
    readers = Readers(entries.rows, control, arena.reserve(SEEN, MOST_ACCESSES, 1 << 20))
    relations = Relations(
        accesses=keyed(ACCESS_FIELDS, MOST_ACCESSES), dependences=keyed(DEPENDENCE_FIELDS),
        levels=keyed(LEVEL_FIELDS, 1 << 24), distances=keyed([("times", "<i8")]),
        recent=arena.reserve("u8", MOST_ACCESSES * RECENT, 1 << 22),
    )
    updating = np.ones(len(program.ops) + 1, np.uint8)  # the last row: an unknown call
    updating[:-1] = np.isin(program.ops["kind"], UPDATING)
    runs = Runs(updating, arena.arena(WAITING, 1 << 28, spare=1), np.zeros(RUNS_CONTROL, np.int64))
    runs.control[STREAM] = -1
    return readers, relations, runs


def idle() -> Stream:
    """The levels of a stream in which no loop is ever open."""
    return empty_stream(0, 1)


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


def rows(module: Module, relations: Relations) -> list[Json]:
    """The rows of all dependences, with the columns that the module's options ask for."""
    options = module.options
    report = LadderReport(module, relations)
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

    def __init__(self, module: Module, relations: Relations) -> None:
        count_all(relations, int(relations.levels.control[arena.USED]))
        self.relations = relations
        self.level_rows = used_rows(relations.levels)[1:]
        super().__init__(module.program, tables_of(module, relations), [], module.options.context)

    def hottest(self) -> tuple[str, int] | None:
        """File and line of the loop with the most accesses, callees included."""
        return hottest(self.names.program, self.profile.nodes)

    def _levels(self) -> dict[int, list[Json]]:
        """The levels of each group, outermost first, with ``histogram: [[distance, times], ...]``."""
        counted: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        groups = self.group_of[self.profile.levels["dependence"]].tolist()
        loops = [tuple(self.names.level(node).values()) for node in self.profile.levels["node"].tolist()]
        for row in used_rows(self.relations.distances)[1:]:
            level = (int(row["key"]) >> DISTANCE_BITS) - 1
            counted[groups[level], loops[level]][int(row["key"]) & ((1 << DISTANCE_BITS) - 1)] += int(row["times"])
        levels = super()._levels()
        return {group: [self._with_histogram(level, counted.get((group, tuple(level["loop"].values()))))
                        for level in listed] for group, listed in levels.items()}

    @staticmethod
    def _with_histogram(level: Json, counted: Counter[int] | None) -> Json:
        return {**level, "histogram": [list(each) for each in sorted(counted.items())] if counted else None}


def tables_of(module: Module, relations: Relations) -> DependenceProfile:
    """The tables of a profile; what this module does not find out is empty."""
    accesses, found = used_rows(relations.accesses), used_rows(relations.dependences)[1:]
    levels = used_rows(relations.levels)[1:]
    nodes = np.zeros(1, NODE)
    nodes["parent"] = nodes["function"] = nodes["loop"] = nodes["call"] = NONE
    node_of = np.zeros(len(accesses), np.int64)
    if hasattr(module, "contexts"):
        nodes = module.contexts.nodes
        node_of = module.contexts.rows((accesses["key"] & 0xFFFF_FFFF).astype(np.int64))
    instruction = (accesses["key"] >> np.uint64(32)).astype(np.uint32)
    instruction[instruction == len(module.program.ops)] = NONE
    rows = np.zeros(len(found), DEPENDENCE)
    rows["kind"] = found["key"] >> np.uint64(60)
    for name, shift in (("source", 30), ("destination", 0)):
        end = (found["key"] >> np.uint64(shift) & np.uint64(MOST_ACCESSES * 4 - 1)).astype(np.int64)
        rows[name], rows[name + "_node"] = instruction[end], node_of[end]
    rows["count"] = found["count"]
    rows["first_object"] = rows["object_list"] = NONE
    at = np.zeros(len(levels), LEVEL)
    at["dependence"] = (levels["key"] >> np.uint64(32)).astype(np.int64) - 1
    if len(levels):
        at["node"] = module.contexts.rows((levels["key"] & np.uint64(0xFFFF_FFFF)).astype(np.int64))
    at["intra"], at["inter"] = levels["intra"] != 0, levels["inter"] != 0
    at["min_distance"], at["max_distance"] = levels["least"], levels["greatest"]
    return DependenceProfile(nodes, rows, at, np.zeros(0, EXPOSED), np.zeros(0, ACCESS), np.zeros(0, OBJECT), 0)


assert [kind.name for kind in DependenceKind] == ["RAW", "WAR", "WAW"]
