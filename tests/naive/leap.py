"""The slow, obvious reference of the module ``leap``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd
from typing import Any

Vector = tuple[int, ...]
Descriptor = tuple[Vector, Vector, int]
"""Start, stride, count."""


def described(stream: Sequence[Vector], most: int) -> tuple[list[Descriptor], int]:
    """The linear descriptors of a stream, and how many of its members they have."""
    made: list[list[Vector]] = []
    for number, point in enumerate(stream):
        members = made[-1] if made else None
        fits = members is not None and (
            len(members) == 1
            or all(
                new - last == last - before for new, last, before in zip(point, members[-1], members[-2], strict=True)
            )
        )
        if members is not None and fits:
            members.append(point)
        elif len(made) == most:
            return [descriptor(each) for each in made], number
        else:
            made.append([point])
    return [descriptor(each) for each in made], len(stream)


def descriptor(members: list[Vector]) -> Descriptor:
    strides = [second - first for first, second in zip(*members[:2], strict=True)] if len(members) > 1 else []
    return members[0], tuple(strides or [0] * len(members[0])), len(members)


def members(each: Descriptor) -> list[Vector]:
    """The points of a descriptor, one by one."""
    return [tuple(a + k * b for a, b in zip(each[0], each[1], strict=True)) for k in range(each[2])]


def beyond(points: Sequence[Vector]) -> list[int]:
    """Least and greatest object and offset, granularity of points (object, offset, time)."""
    objects, offsets = [point[0] for point in points], [point[1] for point in points]
    return [min(objects), max(objects), min(offsets), max(offsets), gcd(*(each - offsets[0] for each in offsets))]


def conflicting(stores: Sequence[Descriptor], load: Descriptor) -> list[int]:
    """The members of a load that conflict with a member of one of the stores."""
    stored = [point for store in stores for point in members(store)]
    return [
        m for m, (*place, time) in enumerate(members(load)) if any([*at] == place and t < time for *at, t in stored)
    ]


@dataclass
class NaiveLeap:
    """Fed with accesses in order."""

    window: int
    streams: defaultdict[tuple[Any, Hashable], list[Vector]] = field(default_factory=lambda: defaultdict(list))
    """(Instruction, is it a store), group -> its points."""
    stored: dict[Any, dict[int, int]] = field(default_factory=dict)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    last_pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Of them those with the last store to the place."""
    near: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Of them those with one of the last `window` stores of all."""
    strides: Counter[tuple[Any, int]] = field(default_factory=Counter)
    last: dict[Any, Any] = field(default_factory=dict)
    executions: Counter[Any] = field(default_factory=Counter)
    time: int = 0
    stores: int = 0

    def access(self, instruction: int, is_store: bool, group: Hashable, object: int, offset: int) -> None:
        name = instruction, is_store
        self.streams[name, group].append((object, offset, self.time))
        self.executions[name] += 1
        before = self.last.get(name)
        if before is not None and before[:2] == (group, object):
            self.strides[name, offset - before[2]] += 1
        self.last[name] = (group, object, offset)
        here = self.stored.setdefault((group, object, offset), {})
        if is_store:
            self.stores += 1
            here[instruction] = self.stores
        else:
            for store, number in here.items():
                self.pairs[store, instruction] += 1
                self.near[store, instruction] += self.stores - number < self.window
            if here:
                self.last_pairs[max(here, key=lambda store: here[store]), instruction] += 1
        self.time += 1

    def strong(self) -> dict[Any, int]:
        """Strongly strided ones -> their stride."""
        return {
            name: stride
            for (name, stride), count in self.strides.items()
            if stride and 10 * count >= 7 * self.executions[name]
        }

    def frequencies(self, pairs: Counter[tuple[int, int]]) -> dict[tuple[int, int], Fraction]:
        """(Store, load), which part of the load's executions conflicts, where any does."""
        return {pair: Fraction(count, self.executions[pair[1], False]) for pair, count in pairs.items() if count}


def error_shares(
    exact: dict[tuple[int, int], Fraction], estimated: dict[tuple[int, int], Fraction]
) -> dict[str, Fraction]:
    """Of all pairs that one of the two has, which part is how far off (Fig. 6 to 8 of the paper)."""
    pairs = set(exact) | set(estimated)
    distances = [estimated.get(pair, Fraction(0)) - exact.get(pair, Fraction(0)) for pair in pairs]
    shares = {"0 %": Fraction(sum(distance == 0 for distance in distances), max(len(pairs), 1))}
    for ten in range(10):
        low, high = Fraction(ten, 10), Fraction(ten + 1, 10)
        above = sum(low < distance <= high for distance in distances)
        below = sum(low < -distance <= high for distance in distances)
        shares[f"{10 * ten} to {10 * ten + 10} %"] = Fraction(above, max(len(pairs), 1))
        shares[f"{-10 * ten - 10} to {-10 * ten} %"] = Fraction(below, max(len(pairs), 1))
    return shares
