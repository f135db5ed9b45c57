"""The slow, obvious reference of object-relative translation, and a machine that plays with memory at random.

The reference is told what was done (a realloc as a realloc); the machine also writes down the events by which replay
says the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.naive.dependence import Event
from tracekit.formats.events import CODE, NONE

Group = tuple[str, int, tuple[int, ...]]
"""Kind, instruction or global, and the calls around it."""
MEMORY = 0x5000_0000_0FC0
BIG = 1 << 16


@dataclass(eq=False)
class Thing:
    """An object."""

    group: Group
    number: int
    start: int
    end: int


@dataclass
class NaiveTranslation:
    """Every byte knows its object."""

    bytes: dict[int, Thing] = field(default_factory=dict)
    counts: Counter[Group] = field(default_factory=Counter)
    all: list[Thing] = field(default_factory=list)
    """In the order of their beginning."""

    def begin(self, group: Group, address: int, size: int) -> None:
        before = self.bytes.get(address)
        if before is not None and before.start == address:
            same_kind = group[0] != "heap" and before.group[0] == group[0]
            if same_kind and before.number == self.counts[before.group] - 1:
                self.counts[before.group] -= 1
            self.end(address)
        self.all.append(Thing(group, self.counts[group], address, address + size))
        self._paint(self.all[-1])
        self.counts[group] += 1

    def _paint(self, thing: Thing) -> None:
        for byte in range(thing.start, max(thing.end, thing.start + 1)):
            self.bytes[byte] = thing

    def end(self, address: int, only: str = "") -> None:
        old = self.bytes.get(address)
        if old is not None and old.start == address and old.group[0].startswith(only):
            for byte in range(old.start, max(old.end, old.start + 1)):
                self.bytes.pop(byte, None)

    def cut(self, address: int, size: int) -> None:
        """The last bytes of a block end."""
        old = self.bytes.get(address)
        if old is not None and old.group[0] == "heap" and old.end == address + size:
            old.end = address
            for byte in range(address, address + size):
                self.bytes.pop(byte, None)

    def grow(self, start: int, size: int) -> None:
        self.bytes[start].end += size
        self._paint(self.bytes[start])

    def move(self, group: Group, old: int, address: int, size: int) -> None:
        """What `old` begins is at `address` now; if nothing is known of `old` it is new."""
        before = self.bytes.get(old)
        known = before is not None and before.start == old and before.group[0] == "heap"
        self.begin(group, address, size)
        if before is not None and known and self.bytes.get(old) is before:
            self.counts[group] -= 1
            self.bytes[address].group, self.bytes[address].number = before.group, before.number
        self.end(old, "heap")

    def is_whole(self, thing: Thing) -> bool:
        """Whether no byte of it has ever been another's since it began."""
        later = self.all[self.all.index(thing) + 1 :]
        return not any(
            other.start < max(thing.end, thing.start + 1) and thing.start < max(other.end, other.start + 1)
            for other in later
        )

    def at(self, address: int) -> tuple[Group | None, int, int]:
        """Group, object, offset; group None: unknown memory."""
        thing = self.bytes.get(address)
        return (None, 0, address) if thing is None else (thing.group, thing.number, address - thing.start)


@dataclass
class Sites:
    """Instructions: calls of these functions, a local variable; functions to be in, and the calls that enter them."""

    malloc: list[int]
    realloc: list[int]
    other: int
    munmap: int
    variable: list[int]
    access: list[int]
    functions: dict[int, int] = field(default_factory=dict)
    in_wrapper: set[int] = field(default_factory=set)
    """Calls of which the functions that they stand in return what is allocated."""


class MemoryMachine:
    """Plays; ``events`` and what each load and store among them is to be translated to, ``expected``."""

    def __init__(self, random: Random, sites: Sites, stack: bool, by: str = "site") -> None:
        self.random, self.sites = random, sites
        self.stack, self.by = stack, by
        self.naive = NaiveTranslation()
        self.events: list[Event] = []
        self.expected: list[tuple[Group | None, int, int]] = []
        self.heap: dict[int, int] = {}
        self.locals: list[tuple[int, int]] = []
        self.calls: dict[int, list[int]] = {}
        self.stream = 0

    def run(self, steps: int) -> None:
        """Do so many random things on a few streams."""
        some = [self._malloc, self._malloc, self._free, self._realloc, self._realloc, self._local, self._call]
        for _ in range(steps):
            self.stream = self.random.choice([0, 0, 0, 1, 2])
            if self.random.random() < 0.5:
                for _ in range(self.random.choice([1, 4])):
                    self._access(self.random.choice(["load", "store"]), self._address())
            else:
                self.random.choice([*some, self._unmap, self._global])()

    def _add(self, name: str, subject: int, address: int, size: int) -> None:
        self.events.append((self.stream, CODE[name], subject, address, size))

    def _add_new(self, site: int, address: int, size: int) -> None:
        """A new block, or one that begins without bytes and grows, as those of a program's own allocators do."""
        if size and self.random.random() < 0.3:
            self._add("heap_alloc", site, address, 0)
        self._add("heap_alloc", site, address, size)

    def _group(self, kind: str, site: int) -> Group:
        calls = list(self.calls.get(self.stream, []))
        if self.by == "context" and kind != "global":
            return kind, site, tuple(calls)
        if self.by == "caller" and kind == "heap":
            while site in self.sites.in_wrapper and calls:
                site = calls.pop()
        return kind, site, ()

    def _access(self, name: str, address: int, subject: int | None = None) -> None:
        self._add(name, self.random.choice(self.sites.access) if subject is None else subject, address, 4)
        self.expected.append(self.naive.at(address))

    def _address(self) -> int:
        if self.heap and self.random.random() < 0.8:
            start = self.random.choice(sorted(self.heap))
            size = self.heap[start]
            return start + self.random.choice([0, 0, 1, size - 1, size, size // 2, size + 4096, 4100, -1])
        return self._place() + self.random.randrange(40)

    def _place(self) -> int:
        if self.random.random() < 0.2:
            return MEMORY + BIG * self.random.randrange(1, 6) - self.random.choice([0, 8])
        return MEMORY + self.random.randrange(0, 160, self.random.choice([4, 16, 16]))

    def _size(self) -> int:
        return self.random.choice([0, 1, 8, 12, 16, 16, 32, 100, 5000, BIG - 1, BIG, 2 * BIG + 5])

    def _is_empty(self, place: int) -> bool:
        """Whether a block without bytes lives there, which seems to grow with what is allocated there."""
        here = self.naive.bytes.get(place)
        return here is not None and here.group[0] == "heap" and here.start == here.end == place

    def _place_without_empty(self) -> int:
        while self._is_empty(place := self._place()):
            pass
        return place

    def _free_place(self) -> int:
        """Where no heap block ends, so that nothing seems to grow."""
        while True:
            place = self._place()
            ends = self.naive.bytes.get(place - 1)
            here = self.naive.bytes.get(place)
            if (ends is None or ends.end != place or ends.group[0] != "heap") and (
                here is None or here.end != place or here.group[0] != "heap"
            ):
                return place

    def _malloc(self) -> None:
        fresh = self.random.random() < 0.7
        site = self.random.choice(self.sites.malloc) if fresh else self.sites.other
        address, size = self._place_without_empty() if fresh else self._free_place(), self._size()
        self._add_new(site, address, size)
        self.naive.begin(self._group("heap", site), address, size)
        self.heap[address] = size

    def _known(self) -> list[int]:
        """Heap blocks that still are what they were."""
        found: list[int] = []
        for start, size in sorted(self.heap.items()):
            thing = self.naive.bytes.get(start)
            same = thing and (thing.group[0], thing.start, thing.end) == ("heap", start, start + size)
            if thing and same and self.naive.is_whole(thing):
                found.append(start)
        return found

    def _free(self) -> None:
        address = self.random.choice([*self.heap, self._place()])
        size, thing = self.heap.pop(address, 0), self.naive.bytes.get(address)
        if thing is not None and thing.start != address and thing.end == address + size:
            return  # it would be the tail of what began over it unseen
        self._add("heap_free", self.sites.other, address, size)
        self.naive.end(address, "heap")

    def _realloc(self) -> None:
        site, size, known = self.random.choice(self.sites.realloc), self._size(), self._known()
        if not known or self.random.random() < 0.2:
            address = self._free_place()
            self._add("heap_alloc", site, address, size)
            self.naive.begin(self._group("heap", site), address, size)
            self.heap[address] = size
            return
        old = self.random.choice(known)
        before = self.heap[old]
        if self.random.random() < 0.5:
            self._in_place(site, old, before, size)
            return
        address = self._free_place()
        there = self.naive.bytes.get(address)
        if old - size - 1 <= address <= old + before + 1 or (there is not None and there.start == address):
            return  # no allocator moves a block onto itself; what ends unseen may take a part of it along
        del self.heap[old]
        group = self._group("heap", site)
        self._add_new(site, address, size)
        copied = min(before, size)
        new = self.naive.bytes[old]
        if copied:
            for name, start in (("load", old), ("store", address)):
                self._add(name, site, start, copied)
                self.expected.append((new.group, new.number, 0))
        self._add("heap_free", site, old, before)
        self.naive.move(group, old, address, size)
        self.heap[address] = size

    def _in_place(self, site: int, old: int, before: int, size: int) -> None:
        if before and self._is_empty(old + before):
            return  # no allocator lets a block grow over another
        if size > before:
            self._add("heap_alloc", site, old + before, size - before)
            self.naive.grow(old, size - before)
        elif 0 < size < before:
            self._add("heap_free", site, old + size, before - size)
            self.naive.cut(old + size, before - size)
        else:
            return
        self.heap[old] = size

    def _unmap(self) -> None:
        """The middle of a mapping goes: its first part stays what it is, the last one is new."""
        large = [start for start in self._known() if self.heap[start] >= BIG]
        if large:
            start = self.random.choice(large)
            size = self.heap[start]
            self._add("heap_free", self.sites.munmap, start + 4096, size - 4096)
            self.naive.cut(start + 4096, size - 4096)
            self.heap[start] = 4096
            self._add("heap_alloc", self.sites.munmap, start + 8192, size - 8192)
            self.naive.begin(self._group("heap", self.sites.munmap), start + 8192, size - 8192)
            self.heap[start + 8192] = size - 8192

    def _local(self) -> None:
        if self.locals and self.random.random() < 0.5:
            address, size = self.locals.pop()
            self._add("stack_free", self.sites.variable[0], address, size)
            if self.stack:
                self.naive.end(address, "stack")
            return
        address, size = 0x7000_0000 + self.random.randrange(0, 64, 8), self.random.choice([4, 8, 24])
        site = self.random.choice(self.sites.variable)
        self._add("stack_alloc", site, address, size)
        self.locals.append((address, size))
        if self.stack:
            self.naive.begin(self._group("stack", site), address, size)
        self._access("load", address + self.random.choice([0, size - 1, size]))

    def _global(self) -> None:
        number = self.random.choice([0, 1])
        address = self._free_place()
        self._add("global_init", number, address, 8)
        self.naive.begin(self._group("global", number), address, 8)

    def _call(self) -> None:
        """Calls of one stream, none of them recursive."""
        calls = self.calls.setdefault(self.stream, [])
        depth = len(calls)
        deeper = [(op, function) for op, function in self.sites.functions.items() if function == depth + 1]
        if deeper and self.random.random() < 0.6:
            op, function = deeper[0] if len(deeper) == 1 else self.random.choice(deeper)
            self._add("function_entry", function, 0, op)
            calls.append(op)
        elif calls:
            self._add("function_exit", depth, 0, 0)
            calls.pop()

    def begin_threads(self) -> None:
        """Each stream is in function 0."""
        for stream in range(3):
            self.stream = stream
            self._add("function_entry", 0, 0, NONE)


def named(groups: Any, group: int) -> tuple[str, int]:
    """Kind and site of a group's number."""
    site = groups.site(group)
    return groups.describe(group)["kind"], site
