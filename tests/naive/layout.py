"""Visits of structures, what groups consist of, and lines of a layout, as slow as they are obvious."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from types import MappingProxyType
from typing import Any

GOLDEN = 0x9E3779B97F4A7C15
WORD = 1 << 64
WAYS = 8

Row = tuple[str, int, int, int, int, int, int]
"""Event, instruction, address, size, group, object, offset."""
Types = dict[int, tuple[int, int]]
"""Instruction -> its structure, and the offset in it that it accesses."""


@dataclass
class Element:
    """What a group's objects consist of; no stride: of one structure, and what is behind it is no part of it."""

    mode: str  # lines, uniform, by access
    structure: int = 0
    size: int = 0
    start: int = 0
    stride: int = 0
    low: int = 0
    """Elements are from here on, in the object, and, where there are several, before `high`."""
    high: int = 0


def elements(
    rows: list[Row],
    types: Types,
    sizes: dict[int, int],
    kinds: dict[int, str],
    holders: Mapping[tuple[int, int], Sequence[int]] = MappingProxyType({}),
) -> dict[int, Element]:
    """By group: the largest structure that all its objects have room for and that enough accesses speak of.

    Where many accesses speak of others, that have nothing to do with it, each access says which it is made to.
    `holders`: of a structure and one that it is a part of, the bytes at which it lies in it.
    """
    ends: dict[int, list[int]] = defaultdict(list)
    votes: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    greatest: dict[int, int] = defaultdict(int)
    for event, instruction, _, size, group, _, offset in rows:
        if event not in ("load", "store"):
            greatest[group] = max(greatest[group], offset + size)
            if offset == 0:
                ends[group].append(size)
        elif group and types.get(instruction, (0, 0))[0]:
            structure, place = types[instruction]
            votes[group][structure].append(offset - place)
    found = {}
    for group in {row[4] for row in rows} - {0}:
        found[group] = Element("lines")
        least = min((size for size in ends[group] if size), default=0)
        total = sum(map(len, votes[group].values()))
        fits, too_large = [], 0
        for structure, starts in votes[group].items():
            size = sizes[structure]
            if len(starts) < 0.02 * total or min(starts) < 0:
                continue
            if size + min(starts) > least:
                too_large += len(starts)
            elif sum((start - starts[0]) % size == 0 for start in starts) >= 0.95 * len(starts):
                fits.append((size, len(starts), structure))
        size, _, structure = max(fits, default=(0, 0, 0))
        others = sum(
            len(starts)
            for other, starts in votes[group].items()
            if structure and other != structure and (structure, other) not in holders
            if sizes[other] != size or (starts[0] - votes[group][structure][0]) % size
        )
        if too_large + others > 0.1 * total:
            found[group] = Element("by access")
        elif fits:
            starts = votes[group][structure]
            several = max(starts) > min(starts)
            period = gcd(*(start - starts[0] for start in starts))
            around = {
                (outer, min(starts) - place)
                for outer, speaking in votes[group].items()
                for place in holders.get((structure, outer), ())
                if period > size and period % sizes[outer] == 0 and min(speaking) >= 0
                if 0 <= min(starts) - place <= least - sizes[outer]
                if (speaking[0] - (min(starts) - place)) % sizes[outer] == 0
            }
            stride = max(size, period if period % size == 0 else 0)
            start = min(starts)
            if len(around) == 1:
                structure, start = around.pop()
                size = stride = sizes[structure]
            found[group] = Element("uniform", structure, size, start, 0, start)
            if several:
                places = range(start % stride, max(starts) + 1, stride)
                low = max(at for at in places if at <= min(starts))
                found[group] = Element("uniform", structure, size, start % stride, stride, low, places[-1] + stride)
        elif not votes[group] and 0 < greatest[group] <= 512 and least == greatest[group] and kinds[group] == "heap":
            found[group] = Element("uniform", 0, greatest[group], 0, 0)
    return found


@dataclass
class NaiveVisits:
    """Fed with accesses in order."""

    groups: dict[int, Element]
    types: Types
    sizes: dict[int, int]
    window: int
    sets: dict[int, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    visits: Counter[Any] = field(default_factory=Counter)  # (structure, cells)
    counts: Counter[Any] = field(default_factory=Counter)  # (structure, "load" or "store", cell)
    in_bulk: Counter[Any] = field(default_factory=Counter)  # (structure, cell): accesses of more than 16 bytes
    in_order: Counter[Any] = field(default_factory=Counter)
    near: Counter[Any] = field(default_factory=Counter)
    last: dict[Any, Any] = field(default_factory=dict)
    begun: Counter[int] = field(default_factory=Counter)  # by instruction
    follow: Counter[Any] = field(default_factory=Counter)
    before: Any = None
    strides: Counter[Any] = field(default_factory=Counter)
    last_load: dict[int, Any] = field(default_factory=dict)

    def place(self, row: Row) -> tuple[Any, int, frozenset[int], int]:
        """Structure (None: a line), index, cells, bytes from the element's start."""
        _, instruction, _, size, group, _, offset = row
        line = None, offset // 64, frozenset([0]), offset % 64
        element = self.groups.get(group, Element("lines"))
        structure, start, extent, stride = element.structure, element.start, element.size, element.stride
        if element.mode == "by access":
            structure, place = self.types.get(instruction, (0, 0))
            if not structure:
                return line
            extent = stride = self.sizes[structure]
            start = (offset - place) % stride
        if element.mode == "lines" or size > 16 or offset < start:
            return line
        if element.mode == "uniform" and not self.is_inside(element, offset):
            return line
        index, at = divmod(offset - start, stride) if stride else (0, offset - start)
        if at >= extent:
            return line
        cell = 1
        while extent > 64 * cell:
            cell *= 2
        cells = {byte // cell for byte in range(at, max(min(at + size, extent), at + 1))}
        return (group, structure if element.mode == "by access" else 0), index, frozenset(cells), at

    def is_inside(self, element: Element, offset: int) -> bool:
        return offset >= element.low and not (element.stride and offset >= element.high)

    def copy(self, row: Row) -> None:
        """An access of more than 16 bytes, byte by byte, or of any size that may be to any of many structures."""
        _, instruction, _, size, group, _, offset = row
        element = self.groups.get(group, Element("lines"))
        if element.mode == "by access" and not self.types.get(instruction, (0, 0))[0]:
            self.in_bulk[(group, 0), 0] += 1
            return
        if size <= 16 or element.mode == "lines":
            return
        structure, start, extent, stride = element.structure, element.start, element.size, element.stride
        if element.mode == "by access":
            structure, place = self.types[instruction]
            extent = stride = self.sizes[structure]
            start = (offset - place) % stride
        covered = list(range(max(offset, start), offset + size))
        if element.mode == "uniform":
            covered = [at for at in covered if self.is_inside(element, at)]
        bytes_ = {(at - start) % stride if stride else at - start for at in covered}
        cell = 1
        while extent > 64 * cell:
            cell *= 2
        for touched in {byte // cell for byte in bytes_ if byte < extent}:
            self.in_bulk[(group, structure if element.mode == "by access" else 0), touched] += 1

    def access(self, row: Row) -> None:
        event, instruction, address, _, group, number, offset = row
        structure, index, cells, at = self.place(row)
        if structure:
            self.counts[structure, event, min(cells)] += 1
        self.copy(row)
        key = structure, group, number, index
        ways = self.sets[self._set(key)]
        known = next((way for way in ways if way[0] == key), None)
        if known is not None:
            ways.remove(known)
            ways.append([key, known[1] | cells])
        else:
            if len(ways) == WAYS:
                self._end(ways.pop(0))
            ways.append([key, cells])
            self.begun[instruction] += 1
            if structure:
                self._begin(structure, number, index, address - at)
        if event == "load":
            old = self.last_load.get(instruction)
            if old is not None and group and old[:2] == (group, number):
                self.strides[instruction, offset - old[2]] += 1
            self.last_load[instruction] = group, number, offset

    def _begin(self, structure: Any, number: int, index: int, address: int) -> None:
        if structure in self.last:
            old_number, old_index, old_address = self.last[structure]
            same = number == old_number
            if (same and abs(index - old_index) == 1) or (abs(number - old_number) == 1 and index == old_index):
                self.in_order[structure] += 1
                self.near[structure] += abs(address - old_address) <= 128
        self.last[structure] = number, index, address
        if self.before is not None and self.before[0] != structure:
            self.follow[self.before[0], structure, "visits"] += 1
            self.follow[self.before[0], structure, "paired"] += self.before[1] == number
        self.before = structure, number

    def _end(self, way: list[Any]) -> None:
        if way[0][0]:
            self.visits[way[0][0], way[1]] += 1

    def _set(self, key: Any) -> int:
        """The kernel's hash; with one set nothing depends on it."""
        structure, group, number, index = key
        row = 0 if structure is None else self.row(structure)
        mixed = (index % WORD ^ number << 20 ^ group << 44) * GOLDEN % WORD
        return ((mixed ^ row) * GOLDEN % WORD >> 40) % (self.window // WAYS)

    rows: dict[Any, int] = field(default_factory=dict)

    def row(self, structure: Any) -> int:
        return self.rows.setdefault(structure, len(self.rows) + 1)

    def finish(self) -> None:
        for ways in self.sets.values():
            for way in ways:
                self._end(way)


def lines(places: list[tuple[int, int]], touched: list[bool], starts: list[int]) -> int:
    """Lines that the touched parts of all structures that begin at `starts` have bytes in."""
    return len(
        {
            (start + byte) // 64
            for start in starts
            for (offset, size), is_touched in zip(places, touched)
            if is_touched
            for byte in range(offset, offset + max(size, 1))
        }
    )
