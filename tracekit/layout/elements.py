"""Of what the objects of each group consist: a structure, an array of them, or nothing that is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.hash_table import used_rows
from tracekit.layout.kernels.visits import BY_ACCESS, CELLS, ELEMENT, LINES, UNIFORM
from tracekit.layout.kernels.votes import Votes
from tracekit.layout.structures import Structures
from tracekit.translation.kernels.translation import GLOBAL, HEAP, STACK

SMALL = 512
"""Bytes up to which objects without a type are looked at as structures."""
FEW = 0.02
"""Share of a group's votes below which a structure is none of its objects'."""
MANY = 0.1
"""Share of a group's votes for other structures from which on each access says which it is made to."""
ALIGNED = 0.95
ENDLESS = 1 << 40


class Elements(NamedTuple):
    """What a first pass says of groups."""

    rows: NDArray[Any]  # ELEMENT, by group
    structures: NDArray[np.int64]  # group: the structure that its elements are, or 0
    sizes: NDArray[np.int64]  # group: greatest size of an object


def shift_of(size: int) -> int:
    """Log2 of the bytes in a cell, of which a structure has at most CELLS."""
    return max((size - 1) // CELLS, 0).bit_length() if size > CELLS else 0


def chosen(state: Votes, groups: Any, known: Structures) -> Elements:
    """Choose an element for each group."""
    votes: dict[int, list[Any]] = {}
    for row in used_rows(state.votes)[1:]:
        votes.setdefault(int(row["key"]) >> 32, []).append(row)
    rows = np.zeros(len(groups), ELEMENT)
    structures = np.zeros(len(groups), np.int64)
    sizes = np.zeros(len(groups), np.int64)
    for row in used_rows(state.groups)[1:]:
        group = int(row["key"])
        if group == 0:
            continue
        sizes[group] = int(row["greatest"])
        rows[group], structures[group] = _element(group, row, votes.get(group, []), groups, known)
    return Elements(rows, structures, sizes)


def _element(group: int, objects: Any, votes: list[Any], groups: Any, known: Structures) -> tuple[Any, int]:
    """One row of ELEMENT, and the structure."""
    kind, greatest, least = groups.kind(group), int(objects["greatest"]), int(objects["least"])
    declared = 0
    if kind == GLOBAL:
        declared = known.of_global.get(groups.site(group), 0)
    elif kind == STACK:
        declared = known.of_variable.get(groups.site(group), 0)
    if declared:
        size = int(known.sizes[declared])
        return (UNIFORM, size, 0, 0, ENDLESS, size, shift_of(size)), declared
    total = sum(int(vote["accesses"]) for vote in votes)
    fitting = []
    too_large = 0
    for vote in votes:
        structure = int(vote["key"]) & 0xFFFF_FFFF
        size = int(known.sizes[structure])
        if vote["accesses"] < FEW * total or vote["least"] < 0:
            continue
        if size + int(vote["least"]) > least:
            too_large += int(vote["accesses"])
        elif vote["aligned"] >= ALIGNED * vote["accesses"]:
            fitting.append((size, int(vote["accesses"]), structure, vote))
    best = max(fitting, key=lambda each: each[:3], default=None)
    if too_large + _others(best, votes, known) > MANY * total:
        return (BY_ACCESS, 0, 0, 0, ENDLESS, 0, 0), 0
    if best:
        size, _, structure, vote = best
        start, period = int(vote["least"]), int(vote["period"])
        if period > size:
            structure, start = _around(structure, start, period, least, votes, known) or (structure, start)
            size = int(known.sizes[structure])
        is_known = int(vote["key"]) & 0xFFFF_FFFF != structure
        stride = size if is_known or period % size else max(size, period)
        if not period:
            return (UNIFORM, ENDLESS, start, start, ENDLESS, size, shift_of(size)), structure
        first, last = ((int(vote[name]) - start) // stride for name in ("least", "greatest"))
        low, high = start + first * stride, start + (last + 1) * stride
        return (UNIFORM, stride, start % stride, low, high, size, shift_of(size)), structure
    if not votes and 0 < greatest <= SMALL and least == greatest and kind == HEAP:
        return (UNIFORM, ENDLESS, 0, 0, ENDLESS, greatest, shift_of(greatest)), 0
    return (LINES, 0, 0, 0, 0, 0, 0), 0


def _others(best: Any, votes: list[Any], known: Structures) -> int:
    """How many votes are for structures that the best one neither has as parts, nor is a part of, nor looks like.

    A block that a program divides itself holds a structure and arrays of others.
    """
    if best is None:
        return 0
    size, _, structure, vote = best
    found = 0
    for other in votes:
        number = int(other["key"]) & 0xFFFF_FFFF
        is_alike = known.sizes[number] == size and (int(other["first"]) - int(vote["first"])) % size == 0
        if number != structure and not is_alike and not known.may_overlap(structure, number):
            found += int(other["accesses"])
    return found


def _around(
    part: int, start: int, period: int, least: int, votes: list[Any], known: Structures
) -> tuple[int, int] | None:
    """The structure that an array consists of if most accesses are made to a part of it, and where it starts.

    The part begins at `start` and multiples of `period` bytes from there, so elements may be larger. They are a
    structure that has this part, if at least one access says so.
    """
    found = set()
    for vote in votes:
        outer = int(vote["key"]) & 0xFFFF_FFFF
        size = int(known.sizes[outer])
        for place in known.places_in(part, outer):
            begins = start - place
            fits = 0 <= begins <= least - size and vote["least"] >= 0
            if fits and period % size == 0 and (int(vote["first"]) - begins) % size == 0:
                found.add((outer, begins))
    return found.pop() if len(found) == 1 else None
