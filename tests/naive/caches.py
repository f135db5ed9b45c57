"""A hierarchy of caches as objects, one for each level, which call one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Event = tuple[int, str, int, int, int, int]


class Random:
    """The generator of random replacement."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, most: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % most


class Line:
    """A line that a cache holds, and what the policies know of it."""

    def __init__(self, number: int, time: int, dirty: bool) -> None:
        self.number, self.dirty, self.used, self.prediction = number, dirty, time, 2


class Set:
    """Ways, each a line or None, and for tree-PLRU the half of each node, as (low, high), where the victim is."""

    def __init__(self, ways: int) -> None:
        self.ways: list[Line | None] = [None] * ways
        self.upper: dict[tuple[int, int], bool] = {}

    def way_of(self, number: int) -> int | None:
        return next((way for way, line in enumerate(self.ways) if line is not None and line.number == number), None)


class Memory:
    def __init__(self) -> None:
        self.written = 0

    def write_back(self, number: int) -> None:
        self.written += 1


class Cache:
    """A level; `below` is the next one or memory, `above` the ones nearer to the processor."""

    def __init__(self, sets: int, ways: int, policy: str, inclusive: bool, random: Random) -> None:
        self.sets = [Set(ways) for _ in range(sets)]
        self.policy, self.inclusive, self.random = policy, inclusive, random
        self.below: Cache | Memory = Memory()
        self.above: list[Cache] = []
        self.hits = self.misses = self.write_backs = self.prefetches = self.time = 0

    def set_of(self, number: int) -> Set:
        return self.sets[number % len(self.sets)]

    def holds(self, number: int) -> bool:
        return self.set_of(number).way_of(number) is not None

    def use(self, number: int, dirty: bool = False) -> None:
        chosen = self.set_of(number)
        way = chosen.way_of(number)
        assert way is not None
        line = chosen.ways[way]
        assert line is not None
        self.time += 1
        line.used, line.prediction, line.dirty = self.time, 0, line.dirty or dirty
        self.protect(chosen, way)

    def protect(self, chosen: Set, way: int) -> None:
        """Tree-PLRU: the victim is in the other half, of all halves."""
        low, high = 0, len(chosen.ways)
        while high - low > 1:
            middle = (low + high) // 2
            chosen.upper[low, high] = way < middle
            low, high = (low, middle) if way < middle else (middle, high)

    def victim(self, chosen: Set) -> int:
        lines = [line for line in chosen.ways if line is not None]
        if self.policy == "lru":
            return min(range(len(lines)), key=lambda way: lines[way].used)
        if self.policy == "random":
            return self.random.below(len(lines))
        if self.policy == "srrip":
            older = 3 - max(line.prediction for line in lines)
            for line in lines:
                line.prediction += older
            return [line.prediction for line in lines].index(3)
        low, high = 0, len(lines)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if chosen.upper.get((low, high), False) else (low, middle)
        return low

    def fill(self, number: int, dirty: bool) -> None:
        chosen = self.set_of(number)
        self.time += 1
        empty = [way for way, line in enumerate(chosen.ways) if line is None]
        way = empty[0] if empty else self.victim(chosen)
        gone = chosen.ways[way]
        chosen.ways[way] = Line(number, self.time, dirty)
        self.protect(chosen, way)
        if gone is None:
            return
        if self.inclusive:
            for cache in self.above:
                gone.dirty = cache.lose(gone.number) or gone.dirty
        if gone.dirty:
            self.write_backs += 1
            self.below.write_back(gone.number)

    def lose(self, number: int) -> bool:
        """Give a line up; whether it was dirty, and so written back."""
        chosen = self.set_of(number)
        way = chosen.way_of(number)
        if way is None:
            return False
        line = chosen.ways[way]
        assert line is not None
        chosen.ways[way] = None
        self.write_backs += line.dirty
        return line.dirty

    def write_back(self, number: int) -> None:
        if self.holds(number):
            self.use(number, dirty=True)
        else:
            self.fill(number, dirty=True)


def bring(caches: Sequence[Cache], number: int, dirty: bool) -> int:
    """The line to the first of the caches; how many of them did not hold it."""
    if not caches:
        return 0
    if caches[0].holds(number):
        caches[0].use(number, dirty)
        return 0
    missed = 1 + bring(caches[1:], number, False)
    caches[0].fill(number, dirty)
    return missed


def simulate(events: Sequence[Event], shape: Sequence[tuple[int, int]], line: int, **rules: Any) -> dict[str, Any]:
    """`shape` has sets and ways; `rules` are replacement, write, inclusive, prefetch and seed.

    Returns for each level its counts, the lines that memory was written, each touch: instruction, level; and of each
    load and store how many lines memory gave and got.
    """
    random = Random(rules["seed"])
    caches = [Cache(sets, ways, rules["replacement"], rules["inclusive"], random) for sets, ways in shape]
    for place, cache in enumerate(caches):
        cache.above = caches[:place]
        if place + 1 < len(caches):
            cache.below = caches[place + 1]
    memory = caches[-1].below
    assert isinstance(memory, Memory)
    touches = []
    traffic = []
    for _, name, subject, address, size, _ in events:
        if name not in ("load", "store"):
            continue
        written, reads = memory.written, 0
        for number in range(address // line, (address + size - 1) // line + 1 if size else 0):
            if name == "store" and rules["write"] == "through":
                holders = [place for place, cache in enumerate(caches) if cache.holds(number)]
                for place in holders:
                    caches[place].use(number)
                memory.written += 1
                level = holders[0] if holders else len(caches)
            else:
                level = bring(caches, number, name == "store")
                reads += level == len(caches)
                following = (number + 1) % (2**64 // line)
                if level > 0 and rules["prefetch"] == "next-line" and not caches[0].holds(following):
                    fetched = bring(caches, following, False)
                    reads += fetched == len(caches)
                    for cache in caches[:fetched]:
                        cache.prefetches += 1
            touches.append((subject, level))
            for cache in caches[:level]:
                cache.misses += 1
            for cache in caches[level : level + 1]:
                cache.hits += 1
        traffic.append((reads, memory.written - written))
    return {
        "levels": [(cache.hits, cache.misses, cache.write_backs, cache.prefetches) for cache in caches],
        "memory_writes": memory.written,
        "touches": touches,
        "traffic": traffic,
    }
