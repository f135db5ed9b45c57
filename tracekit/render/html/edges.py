"""The dependences that a page draws of each loop: those between the same two places are one edge.

A profile of an interpreter has a million dependences, of which each is valid at several of the loops shown; the page
draws some of them. So dependences are added up once for all loops that they are valid at together, and what is drawn is
made in the end. The naive reference is in tests/naive/page_edges.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Json = Mapping[str, Any]

Pair = tuple[str, int, int]
"""Kind, and the numbers of the two places."""


class LoopEdges(NamedTuple):
    """The edges of one loop."""

    edges: list[Json]
    """source and destination (instructions), kind, count, carried, min_distance, max_distance: those that the loop
    carries first, then the most frequent."""
    more: int
    """How many are left out."""
    more_carried: int
    """How many of these the loop carries."""


class _Edge:
    """What is known of an edge."""

    __slots__ = ("carried", "count", "first", "high", "low")

    def __init__(self, first: int) -> None:
        self.first = first  # the number of its first row
        self.count = 0
        self.carried = False
        self.low: Any = None
        self.high: Any = None

    def carry(self, low: Any, high: Any) -> None:
        """The loop carries a part of it, at distances from `low` to `high`."""
        self.low = min(low, self.low) if self.carried else low
        self.high = max(high, self.high) if self.carried else high
        self.carried = True

    def add(self, other: _Edge) -> None:
        """Unite it with another part of it."""
        self.first = min(self.first, other.first)
        self.count += other.count
        if other.carried:
            self.carry(other.low, other.high)

    def order(self) -> tuple[bool, int, int]:
        return (not self.carried, -self.count, self.first)


def edges_at(loops: Sequence[Json], dependences: Iterable[Json], most: int) -> list[LoopEdges]:
    """Of each row of loops the edges at it, at most `most`: of the dependences valid there, by their instructions.

    Neither contexts below the loop nor instructions of one place are told apart.
    """
    rows = list(dependences)  # what is told apart by its identity has to live
    edges_of = [dict[Pair, _Edge]() for _ in loops]
    for (among, kind, source, destination), edge in _edges_of_sets(_Loops(loops), rows).items():
        pair = kind, source, destination
        for number in _members(among):
            edges_of[number].setdefault(pair, _Edge(edge.first)).add(edge)
    return [_chosen(edges.values(), rows, most) for edges in edges_of]


def _edges_of_sets(loops: _Loops, rows: Sequence[Json]) -> dict[tuple[int, str, int, int], _Edge]:
    """(Set of loops, kind, places) -> the edge, of what is valid at exactly these of the loops with one text."""
    edges: dict[tuple[int, str, int, int], _Edge] = {}
    for (kind, source, destination, *_), alike in _alike(loops, rows).items():
        row = rows[alike.first]
        levels = loops.levels(row["levels"])
        around = (loops.around(row["levels"], row[end]) for end in ("source_context", "destination_context"))
        for (level, _), around_source, around_destination in zip(levels, *around):
            among = around_source & around_destination
            if among:
                key = among, kind, source, destination
                edge = edges.get(key)
                if edge is None:
                    edge = edges[key] = _Edge(alike.first)
                edge.count += alike.count
                if level["inter"]:
                    edge.carry(level["min_distance"], level["max_distance"])
    return edges


def _alike(loops: _Loops, rows: Sequence[Json]) -> dict[tuple[Any, ...], _Edge]:
    """Rows of one kind and two places with the same levels, in contexts that lie in the same loops, as one.

    They are few, while the contexts below a loop are many. (Kind, places, what else tells them apart) -> the first of
    them, and what they count.
    """
    sources, destinations = _places(rows)
    groups: dict[tuple[Any, ...], _Edge] = {}
    for number, (row, source, destination) in enumerate(zip(rows, sources, destinations)):
        levels = row["levels"]
        if loops.levels(levels):
            around_source = loops.around(levels, row["source_context"])
            around_destination = loops.around(levels, row["destination_context"])
            key = row["kind"], source, destination, id(levels), id(around_source), id(around_destination)
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Edge(number)
            group.count += row["count"]
    return groups


def _places(rows: Sequence[Json]) -> tuple[list[int], list[int]]:
    """The numbers of the places of both ends. Rows of a trace share instructions, rows of a file do not."""
    numbers: dict[tuple[Any, ...], int] = {}
    known: dict[int, int] = {}

    def number_of(instruction: Json) -> int:
        number = known.get(id(instruction))
        if number is None:
            place = tuple(instruction[field] for field in ("kind", "file", "line", "column", "function"))
            number = known[id(instruction)] = numbers.setdefault(place, len(numbers))
        return number

    return [number_of(row["source"]) for row in rows], [number_of(row["destination"]) for row in rows]


class _Loops:
    """The loops of a page: sets of them are bits of a number, by their place in the page.

    What is asked for is told apart by its identity, and has to live as long as this.
    """

    def __init__(self, rows: Sequence[Json]) -> None:
        self._rows = rows
        self._alike: dict[str, list[int]] = {}
        for number, row in enumerate(rows):
            self._alike.setdefault(json.dumps(row["loop"]), []).append(number)
        self._levels: dict[int, list[tuple[Json, list[int]]]] = {}
        self._around: dict[tuple[int, int], tuple[int, ...]] = {}
        self._inside: dict[tuple[int, int], int] = {}
        self._different: dict[tuple[int, ...], tuple[int, ...]] = {}

    def levels(self, levels: Sequence[Json]) -> list[tuple[Json, list[int]]]:
        """Of the levels of a dependence those of loops of the page, each with the numbers of the loops alike."""
        found = self._levels.get(id(levels))
        if found is None:
            numbers = [(level, self._alike.get(json.dumps(level["loop"]))) for level in levels]
            found = self._levels[id(levels)] = [(level, alike) for level, alike in numbers if alike]
        return found

    def around(self, levels: Sequence[Json], access: Json | None) -> tuple[int, ...]:
        """For each of ``levels(levels)``, of the loops alike those in whose contexts an access may lie, by its context.

        What is equal is one object.
        """
        key = id(levels), id(access)
        found = self._around.get(key)
        if found is None:
            sets = tuple(self._around_one(alike, access) for _, alike in self.levels(levels))
            found = self._around[key] = self._different.setdefault(sets, sets)
        return found

    def _around_one(self, alike: list[int], access: Json | None) -> int:
        """The same of one level."""
        key = id(alike), id(access)
        found = self._inside.get(key)
        if found is None:
            found = self._inside[key] = sum(1 << number for number in alike if _is_inside(self._rows[number], access))
        return found


def _is_inside(row: Json, access: Json | None) -> bool:
    """Whether an access's context may lie in that of a loop's row.

    A loop inside a recursion leaf is no part of the access's path; and in one that recursion came back to accesses are
    made whose path is another.
    """
    loop = row["context"]
    if loop is None or access is None:
        return True
    outer, path = loop["path"], access["path"]
    around = len(outer) - 1
    return bool(loop["root"] == access["root"]) and bool(
        row.get("recursive")
        or (path[:around] == outer[:around] and (len(path) <= around or path[around] == outer[around]))
    )


def _members(among: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while among:
        yield (among & -among).bit_length() - 1
        among &= among - 1


def _chosen(edges: Iterable[_Edge], rows: Sequence[Json], most: int) -> LoopEdges:
    ordered = sorted(edges, key=_Edge.order)
    left = ordered[most:]
    return LoopEdges(
        [_as_json(edge, rows[edge.first]) for edge in ordered[:most]], len(left), sum(edge.carried for edge in left)
    )


def _as_json(edge: _Edge, first: Json) -> Json:
    return {
        "kind": first["kind"],
        "source": first["source"],
        "destination": first["destination"],
        "count": edge.count,
        "carried": edge.carried,
        "min_distance": edge.low,
        "max_distance": edge.high,
    }
