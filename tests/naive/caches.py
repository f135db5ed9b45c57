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

    def __init__(
        self, sets: int, ways: int, policy: str, inclusive: bool, random: Random, exclusive: bool = False
    ) -> None:
        self.exclusive = exclusive
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
        if self.exclusive:
            self.write_backs += gone.dirty
            if isinstance(self.below, Memory):
                self.below.written += gone.dirty
            elif self.below.holds(gone.number):
                self.below.use(gone.number, gone.dirty)
            else:
                self.below.fill(gone.number, gone.dirty)
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

    def give(self, number: int) -> bool:
        """Give a line up to another level; whether it was dirty."""
        chosen = self.set_of(number)
        way = chosen.way_of(number)
        assert way is not None
        line = chosen.ways[way]
        assert line is not None
        chosen.ways[way] = None
        return line.dirty

    def line(self, number: int) -> Line | None:
        """The line, if it is here."""
        return next((line for line in self.set_of(number).ways if line is not None and line.number == number), None)

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
    if caches[0].exclusive:
        found = next((place for place, cache in enumerate(caches) if cache.holds(number)), len(caches))
        moved = found < len(caches) and caches[found].give(number)
        caches[0].fill(number, dirty or moved)
        return found
    missed = 1 + bring(caches[1:], number, False)
    caches[0].fill(number, dirty)
    return missed


class Strides:
    """What an instruction's addresses advance by: two times in a row the same is a stride."""

    def __init__(self) -> None:
        self.addresses: list[int] = [0]

    def after(self, address: int, line: int) -> int | None:
        """The line to prefetch after this address."""
        self.addresses.append(address)
        if len(self.addresses) < 4:
            steps = [0] * (4 - len(self.addresses)) + [b - a for a, b in zip(self.addresses, self.addresses[1:])]
        else:
            steps = [b - a for a, b in zip(self.addresses[-4:], self.addresses[-3:])]
        steps = [(step + 2**63) % 2**64 - 2**63 for step in steps]
        if len(set(steps)) > 1 or steps[0] == 0:
            return None
        if abs(steps[0]) >= line:
            return (address + steps[0]) % 2**64 // line
        return (address // line + (1 if steps[0] > 0 else -1)) % (2**64 // line)


class Machine:
    """Cores with private levels, and the levels that they share. Without private levels there is one core."""

    def __init__(self, shape: Sequence[tuple[int, int]], rules: dict[str, Any]) -> None:
        self.rules = rules
        self.random = Random(rules["seed"])
        self.private = rules.get("private", 0)
        make = [
            lambda sets=sets, ways=ways: Cache(
                sets, ways, rules["replacement"], rules["inclusive"], self.random, rules.get("exclusive", False)
            )
            for sets, ways in shape
        ]
        self.shared = [each() for each in make[self.private :]]
        self.cores = [
            [each() for each in make[: self.private]] + self.shared
            for _ in range(rules["cores"] if self.private else 1)
        ]
        self.memory = Memory()
        self.invalidations = self.transfers = 0
        for caches in self.cores:
            for place, cache in enumerate(caches):
                cache.below = caches[place + 1] if place + 1 < len(caches) else self.memory
                if place < self.private:
                    cache.above = caches[:place]
        for place, cache in enumerate(self.shared):
            cache.above = [each for caches in self.cores for each in caches[: self.private]] + self.shared[:place]

    def own(self, core: int) -> list[Cache]:
        return self.cores[core][: self.private]

    def snoop(self, core: int, number: int, store: bool) -> None:
        """Other cores write back what they have changed, and for a store give up what they have."""
        held = [line for cache in self.own(core) if (line := cache.line(number)) is not None]
        if any(line.dirty for line in held) or (held and not store):
            return
        dirty = False
        for other in range(len(self.cores)):
            lines = [(cache, line) for cache in self.own(other) if (line := cache.line(number)) is not None]
            if other == core or not lines:
                continue
            dirty = dirty or any(line.dirty for _, line in lines)
            self.invalidations += store
            for cache, line in lines:
                line.dirty = False
                if store:
                    cache.give(number)
        if dirty:
            self.transfers += 1
            self.own(core)[-1].write_backs += 1
            self.own(core)[-1].below.write_back(number)

    def prefetch(self, core: int, number: int) -> int:
        """Returns how many lines memory gave."""
        caches = self.cores[core]
        if caches[0].holds(number):
            return 0
        self.snoop(core, number, False)
        fetched = bring(caches, number, False)
        for cache in caches[: min(fetched, 1) if self.rules.get("exclusive") else fetched]:
            cache.prefetches += 1
        return int(fetched == len(caches))

    def touch(self, core: int, number: int, store: bool, line: int) -> tuple[int, int, int]:
        """The level where it was, how many lines memory gave, and how many copies other cores lost."""
        caches, reads, before = self.cores[core], 0, self.invalidations
        self.snoop(core, number, store)
        taken = self.invalidations - before
        if store and self.rules["write"] == "through":
            holders = [place for place, cache in enumerate(caches) if cache.holds(number)]
            for place in holders:
                caches[place].use(number)
            self.memory.written += 1
            level = holders[0] if holders else len(caches)
        else:
            level = bring(caches, number, store)
            reads += level == len(caches)
            if level > 0 and self.rules["prefetch"] == "next-line":
                reads += self.prefetch(core, (number + 1) % (2**64 // line))
        for cache in caches[:level]:
            cache.misses += 1
        for cache in caches[level : level + 1]:
            cache.hits += 1
        return level, reads, taken

    def counts(self) -> list[tuple[int, int, int, int]]:
        """Of each level, all cores together."""
        found = []
        for place in range(len(self.cores[0])):
            level = list({id(caches[place]): caches[place] for caches in self.cores}.values())
            names = ("hits", "misses", "write_backs", "prefetches")
            found.append(tuple(sum(getattr(cache, name) for cache in level) for name in names))
        return found  # type: ignore[return-value]


def simulate(events: Sequence[Event], shape: Sequence[tuple[int, int]], line: int, **rules: Any) -> dict[str, Any]:
    """`shape` has sets and ways; `rules` are replacement, write, inclusive, prefetch and seed.

    They may be exclusive, private and cores, too. Returns for each level its counts, the lines that memory was written,
    each touch: instruction, level, copies that other cores lost; of each load and store how many lines memory gave and
    got; and what cores did to one another.
    """
    machine = Machine(shape, rules)
    touches = []
    traffic = []
    strides: dict[tuple[int, int], Strides] = {}
    for stream, name, subject, address, size, _ in events:
        if name not in ("load", "store"):
            continue
        core = stream % len(machine.cores)
        written, reads = machine.memory.written, 0
        for number in range(address // line, (address + size - 1) // line + 1 if size else 0):
            number %= 2**64 // line  # behind the last address comes the first
            level, given, taken = machine.touch(core, number, name == "store", line)
            reads += given
            touches.append((subject, level, taken))
        if size and rules["prefetch"] == "stride":
            following = strides.setdefault((core, subject), Strides()).after(address, line)
            if following is not None:
                machine.prefetch(core, following)
        traffic.append((reads, machine.memory.written - written))
    return {
        "levels": machine.counts(),
        "memory_writes": machine.memory.written,
        "touches": touches,
        "traffic": traffic,
        "coherence": (machine.invalidations, machine.transfers),
    }
