"""The JSON rows of dependences: what happened, in which contexts, at which levels.

Rows are ordered by what they show (source locations, contexts, instruction ids), never by the order
in which replay found them; rows that show the same thing are one row.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.names import Json
from tracekit.contexts.nodes import ContextKind
from tracekit.dependence.names import ProfileNames
from tracekit.dependence.profile import DependenceKind, DependenceProfile
from tracekit.dependence.table import ReportedDependences
from tracekit.dependence.united_levels import Renamed, united_levels
from tracekit.formats.events import NONE

LoopKey = tuple[str, str, int, int, int]
RowKey = tuple[LoopKey, tuple[Any, ...]]


class DependenceReport:
    """Makes the rows of one profile's dependences. `contexts`: whether rows show contexts (camp) or null (lamp)."""

    def __init__(self, names: ProfileNames, profile: DependenceProfile, contexts: bool) -> None:
        self.profile = profile
        self.contexts = contexts
        self.names = names
        self.context_keys, self.context_of = self._contexts()
        keys, self.group_of = grouped(
            self.profile.dependences["kind"],
            self.profile.dependences["source"],
            self._shown("source_node"),
            self.profile.dependences["destination"],
            self._shown("destination_node"),
        )
        self.groups = keys

    def _shown(self, field: str) -> Indices:
        shown: Indices = self.context_of[self.profile.dependences[field]]
        return shown

    def _contexts(self) -> tuple[list[tuple[Any, ...]], Indices]:
        """Context keys (root, path, id) in order, each with a node that has it, and the key of each node."""
        nodes = len(self.profile.nodes)
        if not self.contexts:
            return [()], np.zeros(nodes, np.int64)
        keys = [context_key(self.names.context(node)) for node in range(nodes)]
        rank = {key: number for number, key in enumerate(sorted(set(keys)))}
        return list(rank), np.array([rank[key] for key in keys], np.int64)

    # -- dependences -------------------------------------------------------------------------------

    @property
    def dependence_count(self) -> int:
        """The number of different dependences (kind, instructions, contexts)."""
        return int(self.groups.shape[1])

    def dependences(self, kinds: Collection[str], carried_by: tuple[str, int] | None) -> list[Json]:
        """The rows of `kinds`; with `carried_by` (file, line) only what a loop at that place carries."""
        return self.table(kinds, carried_by).rows()

    def table(self, kinds: Collection[str], carried_by: tuple[str, int] | None) -> ReportedDependences:
        """The rows of `dependences`, made when they are looked at."""
        return ReportedDependences(self, kinds, carried_by)

    @cached_property
    def counts(self) -> npt.NDArray[np.uint64]:
        """How often each group happened."""
        counts = np.zeros(self.dependence_count, np.uint64)
        np.add.at(counts, self.group_of, self.profile.dependences["count"].copy())
        return counts

    def context(self, key: int) -> Json | None:
        """The context with the key of this number; nothing is told apart without contexts."""
        return self.names.context(self._context_nodes[key]) if self.contexts else None

    @cached_property
    def _context_nodes(self) -> list[int]:
        """For each context key a node that has it."""
        first = np.full(len(self.context_keys), -1, np.int64)
        first[self.context_of[::-1]] = np.arange(self.context_of.size)[::-1]
        return [int(node) for node in first]

    def ordered(self, groups: Indices) -> Indices:
        """Some groups as rows stand in the profile: by kind, then source, destination, contexts."""
        kind, source, source_context, destination, destination_context = self.groups[:, groups]
        ranks = self._instruction_ranks(np.concatenate([source, destination]))
        order = np.lexsort((destination_context, source_context, ranks[source.size :], ranks[: source.size], kind))
        return groups[order]

    def _instruction_ranks(self, instructions: Indices) -> Indices:
        """The position of each instruction in the order of source locations."""
        shown, at = np.unique(instructions, return_inverse=True)
        keys = [instruction_key(self.names.instruction(op)) for op in shown.tolist()]
        rank = np.empty(shown.size, np.int64)
        rank[sorted(range(shown.size), key=keys.__getitem__)] = np.arange(shown.size)
        positions: Indices = rank[at]
        return positions

    def levels(self, groups: Indices | None = None) -> tuple[list[list[Json]], Indices]:
        """Lists of levels, outermost first, and for each group the number of its own; levels of one loop are one.

        Most dependences share their list with others: it is made once, and written once. With `groups` only theirs are
        found; what is said of others means nothing.
        """
        group, (place, loops) = self.group_of, self._shown_loops
        if groups is not None:
            wanted = np.zeros(self.dependence_count, np.bool_)
            wanted[groups] = True
            group = np.where(wanted[group], group, -1)
        united, shown_by = united_levels([Renamed(self.profile.levels, group, place)])
        shown = np.zeros(len(united), _SHOWN)
        for name in ("intra", "inter", "min_distance", "max_distance"):
            shown[name] = united[name]
        shown["loop"] = united["node"]
        histograms = self._histograms(shown_by, len(united))
        different = dict.fromkeys(histograms)
        number = {histogram: number for number, histogram in enumerate(different)}
        if histograms:
            shown["histogram"] = [number[histogram] for histogram in histograms]
        return self._lists(united["dependence"].astype(np.int64), shown, loops, list(different))

    @cached_property
    def _shown_loops(self) -> tuple[Indices, list[Json]]:
        """The loops and recursions that are shown, outermost first, and for each node with levels the place of its."""
        depth = self._depths()
        shown: dict[tuple[Any, ...], int] = {}
        has_levels = np.zeros(len(self.profile.nodes), np.bool_)
        has_levels[self.profile.levels.sets.nodes] = True
        has_levels[self.profile.levels.carried["node"]] = True
        number_of = np.zeros(len(self.profile.nodes), np.int64)
        loops: list[Json] = []
        for node in np.flatnonzero(has_levels).tolist():
            loop = self.names.level(node)
            key = (int(depth[node]), *(part for name, part in loop.items() if name != "called_at"))
            number_of[node] = shown.setdefault(key, len(shown))
            if number_of[node] == len(loops):
                loops.append(loop)
        order = [shown[key] for key in sorted(shown, key=mixed)]
        rank = np.zeros(len(shown), np.int64)
        rank[order] = np.arange(len(shown))
        place = rank[number_of] if loops else number_of
        return place, [loops[number] for number in order]

    def _lists(
        self, groups: Indices, rows: npt.NDArray[Any], loops: list[Json], histograms: list[bytes]
    ) -> tuple[list[list[Json]], Indices]:
        """The lists of the ascending `groups`, the `rows` beside it (_SHOWN), of whose numbers are the others."""
        text, width = rows.tobytes(), rows.dtype.itemsize
        firsts = np.flatnonzero(np.diff(groups, prepend=-1)) * width
        bounds = [*firsts.tolist(), len(text)]
        numbers: dict[bytes, int] = {b"": 0}
        number_of = [numbers.setdefault(text[first:end], len(numbers)) for first, end in pairwise(bounds)]
        list_of = np.zeros(self.dependence_count, np.int64)
        list_of[groups[firsts // width]] = number_of
        lists = [[_level(row, loops, histograms) for row in np.frombuffer(key, _SHOWN).tolist()] for key in numbers]
        return lists, list_of

    def _histograms(self, at: Indices, count: int) -> list[bytes]:
        """For each of `count` levels that are shown (distance, times), ascending, as i8 in memory, if they are wanted.

        So the few that differ of a million are found without making lists of them all.
        `at`: for each level of the profile that carries a dependence the number of the one that shows it, or -1.
        """
        return []

    def _depths(self) -> npt.NDArray[np.int64]:
        """How deep each node lies: in the tree, or without contexts its loop in its function."""
        nodes = self.profile.nodes
        depths = [0] * len(nodes)
        if self.contexts:
            is_root = (nodes["kind"] == ContextKind.ROOT).tolist()
            for node, parent in enumerate(nodes["parent"].tolist()):  # nodes are in pre-order
                depths[node] = 0 if is_root[node] else depths[parent] + 1
        else:
            for node in np.flatnonzero(nodes["kind"] == ContextKind.LOOP).tolist():
                depths[node] = self.names.loop(int(nodes["loop"][node]))["depth"]
        return np.array(depths, np.int64)

    # -- summary -----------------------------------------------------------------------------------

    def context_counts(self) -> tuple[int, int]:
        """How many contexts there are, and how many of them have no CAMP id."""
        # A loop inside a recursion is no context of any access: they have the leaf's. What runs outside all
        # instrumented functions has a root without a function, which is no node of the program's tree.
        rows = self.profile.nodes
        outside = (rows["kind"] == ContextKind.ROOT) & (rows["function"] == NONE)
        nodes = np.flatnonzero((rows["kind"] != ContextKind.RECURSION_LOOP) & ~outside)
        keys = [self.context_keys[number] for number in np.unique(self.context_of[nodes]).tolist()]
        return len(keys), sum(key[2] == _NO_ID for key in keys)

    def false_positive_share(self, lamp: DependenceReport) -> float:
        """The share of the dependences that `lamp` implies, between all contexts, which did not happen (Fig. 11)."""
        accesses = self.profile.accesses
        pairs, _ = grouped(accesses["instruction"], self.context_of[accesses["node"]])
        contexts = dict(zip(*(column.tolist() for column in np.unique(pairs[0], return_counts=True))))
        implied = sum(
            contexts[source] * contexts[destination]
            for source, destination in zip(lamp.groups[1].tolist(), lamp.groups[3].tolist())
        )
        return 1 - self.dependence_count / implied if implied else 0.0


_SHOWN = np.dtype(
    [
        ("loop", "<i8"),  # place of the loop in the order of those that are shown
        ("intra", "?"),
        ("inter", "?"),
        ("min_distance", "<u8"),
        ("max_distance", "<u8"),
        ("histogram", "<i8"),  # number of its histogram, if there are any
    ]
)
"""A level as it is shown: equal levels have equal bytes."""


def _level(row: tuple[Any, ...], loops: list[Json], histograms: list[bytes]) -> Json:
    """A row of _SHOWN as JSON."""
    position, intra, inter, least, greatest, histogram = row
    shown: Json = {
        "loop": loops[position],
        "intra": intra,
        "inter": inter,
        "min_distance": least if inter else None,
        "max_distance": greatest if inter else None,
    }
    if histograms:
        times = np.frombuffer(histograms[histogram], np.int64).reshape(-1, 2).tolist()
        shown["histogram"] = times or None
    return shown


_NO_ID = 1 << 63


def context_key(context: Json) -> tuple[Any, ...]:
    """Orders contexts: root, path, then id; those without one are last."""
    return (context["root"], tuple(context["path"]), _NO_ID if context["id"] is None else context["id"])


def loop_key(loop: Json) -> LoopKey:
    """What makes two loops one: the source location, and the depth (a function inlined into itself)."""
    return (loop["file"], loop["function"], loop["line"], loop["column"], loop["depth"])


def instruction_key(instruction: Json) -> tuple[Any, ...]:
    """Orders instructions by source location, then by id."""
    unit, _, index = (instruction["id"] or "").partition(":")
    return (instruction["file"], instruction["line"], instruction["column"], unit, int(index or -1))


KIND_RANK = {kind.name: kind.value for kind in DependenceKind}
"""The order of kinds in a profile."""


def place_key(place: Json | None) -> tuple[Any, ...]:
    """Orders the ends of dependences and what else blocks a loop."""
    if place is None:
        return ()
    if "id" in place:
        return instruction_key(place)
    return (place["file"], place["line"], place["column"], place.get("name", ""), 0)


def mixed(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Makes tuples of numbers and strings comparable with each other."""
    return tuple((isinstance(part, str), part) for part in key)


def without_repetitions(rows: list[Json]) -> list[Json]:
    """The rows without repetitions, in one fixed order."""
    by_content = {_frozen(row): row for row in rows}
    return [by_content[key] for key in sorted(by_content)]


def _frozen(value: Any) -> Any:
    """A hashable, ordered copy of a JSON value."""
    if isinstance(value, dict):
        return (3, tuple((key, _frozen(part)) for key, part in value.items()))
    if isinstance(value, list):
        return (2, tuple(_frozen(part) for part in value))
    if isinstance(value, str):
        return (1, value)
    return (0, -1 if value is None else value)
