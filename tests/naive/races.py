"""Happens-before with a vector clock for every access, and all pairs of accesses: nothing is left out or thrown away.

An event is (stream, name, subject, address, size). What each means is formats/SPEC.md, "The order of threads".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

Event = tuple[int, str, int, int, int]
Clock = dict[int, int]
LOAD, STORE, ACQUIRE, RELEASE, SIZE = 1, 2, 4, 8, 16


@dataclass
class Access:
    """`number`: the event's place in the list; `life`: how often each byte had become new before."""

    number: int
    stream: int
    store: bool
    atomic: bool
    bytes: dict[int, int]
    time: int
    clock: Clock


@dataclass
class Process:
    """Vector clocks of threads, and of what they share."""

    clocks: dict[int, Clock] = field(default_factory=dict)
    released: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))
    read: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))
    atomics: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))
    fences: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))
    met: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))
    held: defaultdict[int, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))
    barriers: dict[int, list[int]] = field(default_factory=dict)  # count, arrivals
    rounds: defaultdict[tuple[int, int], Clock] = field(default_factory=lambda: defaultdict(dict))
    entered: dict[tuple[int, int], int] = field(default_factory=dict)
    lives: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    used: dict[tuple[int, int], int] = field(default_factory=dict)  # stream, address: the use that still lasts
    begun: dict[int, int] = field(default_factory=dict)  # event that ends a use: the one that begins it
    accesses: list[Access] = field(default_factory=list)
    by_number: bool = False  # who closes a descriptor comes before who opens one with its number

    def begin(self, stream: int) -> Clock:
        return self.clocks.setdefault(stream, {stream: 1})

    def tick(self, stream: int) -> None:
        self.clocks[stream][stream] += 1

    def event(self, number: int, event: Event, atomic: Collection[int]) -> None:
        stream, name, subject, address, size = event
        own = self.clocks.get(stream)
        if name == "unlock":
            self.end_use(number, stream, address)
        if name == "thread_create":
            join(self.begin(subject), own)
            self.tick(stream)
        elif name == "thread_start":
            self.begin(stream)
        elif name == "program_start":
            for other in list(self.clocks.values()):
                join(self.begin(stream), other)
            self.begin(stream)
            self.tick(stream)
        elif name == "thread_exit":
            for lock, _ in self.held.pop(stream, []):
                join(self.released[lock], own)
        elif name == "thread_join":
            join(own, self.clocks[subject])
        elif name in ("lock", "lock_shared"):
            shared = name == "lock_shared"
            join(own, self.released[address])
            if not shared:
                join(own, self.read[address])
            # a lock that is held already is held as it was
            before = [each for each in self.held[stream] if each[0] == address]
            self.held[stream].append(before[0] if before else (address, shared))
        elif name == "unlock":
            before = [each for each in self.held[stream] if each[0] == address]
            if before:
                self.held[stream].remove(before[0])
            join(self.read[address] if before and before[0][1] else self.released[address], own)
            self.tick(stream)
        elif name == "release":
            join(self.released[address], own)
            self.tick(stream)
        elif name == "acquire":
            join(own, self.released[address])
        elif name == "barrier_init":
            self.barriers[address] = [size, 0]
        elif name == "barrier_enter":
            count, arrivals = self.barriers.setdefault(address, [0, 0])
            round_number = arrivals // count if count else 0
            self.barriers[address][1] += 1
            if (arrivals % count if count else arrivals) == 0:
                self.rounds[address, round_number] = {}
            join(self.rounds[address, round_number], own)
            self.entered[stream, address] = round_number
            self.tick(stream)
        elif name == "barrier_leave":
            join(own, self.rounds[address, self.entered.get((stream, address), 0)])
            self.end_use(number, stream, address)  # it lasts until all have come
        elif name == "atomic":
            self.atomic(stream, address, subject)
        elif name == "fence":
            if subject & ACQUIRE:
                join(own, self.met[stream])
            if subject & RELEASE:
                self.fences[stream] = dict(own)
                self.tick(stream)
        elif name in ("heap_alloc", "stack_alloc", "thread_memory", "global_init"):
            for byte in range(address, address + size):
                self.lives[byte] += 1
        elif name in ("load", "store", "heap_free"):
            is_atomic = name != "heap_free" and subject in atomic
            self.access(number, stream, name != "load", is_atomic, address, size)
        elif name.startswith("resource_"):
            is_descriptor = address >> 62 == 1
            if is_descriptor and name == "resource_begin":
                if self.by_number:
                    join(own, self.released[address])
                self.lives[address] += 1
            self.access(number, stream, name != "resource_use", name == "resource_use", address, 1)
            if is_descriptor and name == "resource_end":
                self.lives[address] += 1
                if self.by_number:
                    join(self.released[address], own)
                    self.tick(stream)
            if name == "resource_use":
                self.used[stream, address] = number

    def end_use(self, number: int, stream: int, address: int) -> None:
        """A use that still lasts ends with an event."""
        if (stream, address) in self.used:
            self.begun[number] = self.used.pop((stream, address))
            self.access(number, stream, False, True, address, 1)

    def access(self, number: int, stream: int, store: bool, atomic: bool, address: int, size: int) -> None:
        own = self.clocks[stream]
        lives = {byte: self.lives[byte] for byte in range(address, address + size)}
        self.accesses.append(Access(number, stream, store, atomic, lives, own[stream], dict(own)))

    def atomic(self, stream: int, address: int, order: int) -> None:
        own = self.clocks[stream]
        operated = range(address, address + (1 << max(order // SIZE - 1, 0)))
        if order & LOAD:
            for byte in operated:
                join(own if order & ACQUIRE else self.met[stream], self.atomics[byte])
        if order & STORE:
            for byte in operated:
                if not order & LOAD:
                    self.atomics[byte] = {}
                join(self.atomics[byte], own if order & RELEASE else self.fences[stream])
            if order & RELEASE:
                self.tick(stream)


def join(clock: Clock, other: Clock) -> None:
    for stream, time in other.items():
        clock[stream] = max(clock.get(stream, 0), time)


def run(events: Sequence[Event], atomic: Collection[int] = (), by_number: bool = False) -> Process:
    """All of it. `atomic`: instructions."""
    process = Process(by_number=by_number)
    for number, event in enumerate(events):
        process.event(number, event, atomic)
    return process


def races(process: Process) -> dict[tuple[int, int], set[int]]:
    """Pairs of places of events that race -> the bytes on which they do."""
    found = {}
    for place, later in enumerate(process.accesses):
        for earlier in process.accesses[:place]:
            common = {byte for byte, life in earlier.bytes.items() if later.bytes.get(byte) == life}
            conflict = (earlier.store or later.store) and not (earlier.atomic and later.atomic)
            ordered = earlier.time <= later.clock.get(earlier.stream, 0)
            if common and conflict and not ordered:
                found[earlier.number, later.number] = common
    return found


def has_first_races(
    reported: Collection[tuple[int, int]],
    races: dict[tuple[int, int], set[int]],
    begun: Mapping[int, int] = MappingProxyType({}),
) -> bool:
    """Whether for each byte that is in any of the `races` one of those that end first is reported, a use by the event
    that begins it."""
    first: dict[int, int] = {}
    for (_, later), common in sorted(races.items(), key=lambda item: item[0][1]):
        for byte in common:
            first.setdefault(byte, later)
    return all(
        any(
            tuple(begun.get(end, end) for end in pair) in reported and byte in common
            for pair, common in races.items()
            if pair[1] == later
        )
        for byte, later in first.items()
    )
