"""The module ``races`` against all pairs of accesses with full vector clocks, on random events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches, program
from tests.naive import races as naive
from tracekit.analyzers.races import RaceOptions, Races
from tracekit.containers.hash_table import used_rows
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.races.kernels.order import ROUNDS
from tracekit.races.kernels.state import ATOMIC, DIRECT, RECENT, RECENT_WAYS, State

MOST_EVENTS = 400
LOCKS, BARRIERS, ATOMICS, MEMORY, FILES = 0x100, 0x200, 0x300, 0x1000, 1 << 62


class RawRaces(Races):
    """Says which events race; each event has an instruction of its own, by its number."""

    atomic: frozenset[int] = frozenset()

    def state(self) -> State:
        flags = np.full(MOST_EVENTS + 1, DIRECT, np.uint16)
        flags[list(self.atomic)] |= ATOMIC
        return super().state()._replace(kinds=flags, recent=np.zeros(2 * RECENT_WAYS * (MOST_EVENTS + 1), RECENT))

    def result(self, state: State) -> dict[str, Any]:
        sites = state.sites.rows["instruction"]
        found = used_rows(state.races)[1:]
        return {
            "pairs": [
                (int(sites[int(row["key"]) >> 32]), int(sites[int(row["key"]) & 0xFFFF_FFFF]), int(row["address"]))
                for row in found
            ]
        }


class Schedule:
    """Events of a few threads, one of which runs at a time, as any replay could deliver them."""

    def __init__(self, rng: random.Random, count: int, bytes_: int) -> None:
        self.rng, self.bytes = rng, bytes_
        self.events: list[naive.Event] = [(0, "program_start", 0, 0, 7)]
        self.atomic: set[int] = set()
        self.threads, self.next = [0], 1
        self.held: dict[int, list[int]] = {0: []}
        self.inside: dict[int, int] = {}
        self.entered: list[tuple[int, int]] = []  # barrier, stream, in the order of arrivals
        for barrier in range(2):
            self.add(0, "barrier_init", address=BARRIERS + barrier, size=rng.choice((1, 2, 3)))
        while len(self.events) < count:
            self.step(rng.choice(self.threads))

    def add(self, stream: int, name: str, subject: int = 0, address: int = 0, size: int = 0) -> None:
        self.events.append((stream, name, subject, address, size))

    def step(self, stream: int) -> None:
        rng = self.rng
        if stream in self.inside:
            self.add(stream, "barrier_leave", address=self.inside.pop(stream))
            return
        what = rng.choices(
            ("access", "lock", "object", "barrier", "operation", "thread", "memory", "resource"),
            (12, 5, 2, 2, 4, 1, 1, 5),
        )[0]
        getattr(self, what)(stream)

    def access(self, stream: int) -> None:
        rng, number = self.rng, len(self.events)
        size = rng.choice((1, 1, 2, 4, 8, 8, 8, 16, 40))
        address = MEMORY + rng.randrange(self.bytes)
        if rng.random() < 0.3:
            self.atomic.add(number)
        self.add(
            stream,
            rng.choice(("load", "load", "store")),
            number,
            address & -min(size, 8) | rng.choice((0, 0, 0, 1)),
            size,
        )

    def lock(self, stream: int) -> None:
        held = self.held[stream]
        if held and self.rng.random() < 0.6:
            self.add(stream, "unlock", address=held.pop(self.rng.randrange(len(held))))
            return
        held.append(LOCKS + self.rng.randrange(3))
        self.add(stream, self.rng.choice(("lock", "lock", "lock_shared")), address=held[-1])

    def resource(self, stream: int) -> None:
        """Of a lock, a barrier, bytes that are accessed otherwise, too, or a descriptor."""
        places = (LOCKS, LOCKS + 1, BARRIERS, MEMORY, MEMORY + 4, FILES, FILES + 1)
        name = self.rng.choice(("begin", "use", "use", "use", "use", "end"))
        self.add(stream, f"resource_{name}", len(self.events), self.rng.choice(places))

    def object(self, stream: int) -> None:
        name = self.rng.choice(("release", "acquire"))
        self.add(stream, name, 1, LOCKS + 8 + self.rng.randrange(2), stream)

    def barrier(self, stream: int) -> None:
        at = BARRIERS + self.rng.randrange(2)
        waiting = [place for place, (_, other) in enumerate(self.entered) if other in self.inside]
        if len(self.entered) - min(waiting, default=len(self.entered)) < 7:  # the module keeps eight rounds apart
            self.inside[stream] = at
            self.entered = [(barrier, other) for barrier, other in self.entered if other != stream]
            self.entered.append((at, stream))
            self.add(stream, "barrier_enter", address=at)

    def operation(self, stream: int) -> None:
        if self.rng.random() < 0.3:
            self.add(stream, "fence", self.rng.choice((4, 8, 12)))
        else:
            order, size = self.rng.choice((1, 5, 2, 10, 3, 7, 11, 15)), self.rng.choice((0, 1, 2, 2, 3, 4))
            self.add(stream, "atomic", order + 16 * size, ATOMICS + self.rng.randrange(8) * (1 << max(size - 1, 0)))

    def thread(self, stream: int) -> None:
        if len(self.threads) < 5 and (len(self.threads) < 3 or self.rng.random() < 0.5):
            self.add(stream, "thread_create", self.next)
            self.add(self.next, "thread_start", self.next)
            self.held[self.next] = []
            self.threads.append(self.next)
            self.next += 1
            return
        others = [other for other in self.threads if other not in (0, stream)]
        if self.rng.random() < 0.05:
            self.add(stream, "program_start", 0, 0, 8)
            self.threads = [stream]
        elif others:
            over = self.rng.choice(others)
            if over in self.inside:
                self.add(over, "barrier_leave", address=self.inside.pop(over))
            self.add(over, "thread_exit", over)
            self.add(stream, "thread_join", over)
            self.threads.remove(over)

    def memory(self, stream: int) -> None:
        rng = self.rng
        name = rng.choice(("heap_alloc", "heap_free", "stack_alloc", "thread_memory"))
        address, size = MEMORY + 8 * rng.randrange(self.bytes // 8), rng.choice((8, 16, 24))
        self.add(stream, name, len(self.events) if name == "heap_free" else 0, address, size)


def found_by_module(
    events: Sequence[naive.Event], atomic: frozenset[int], length: int, by_number: bool = False
) -> list[tuple[int, int, int]]:
    """Pairs of events, and the address at which they were first found to race."""
    module = RawRaces(program(2), RaceOptions(descriptor_order=by_number))
    module.atomic = atomic
    runner = CallbackRunner(module, "races", 1)
    run(batches([(*event, 0) for event in events], length), [runner], 1)
    pairs: list[tuple[int, int, int]] = runner.result()[0]["pairs"]
    return pairs


@settings(max_examples=400, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((5, 20, 60, 200, MOST_EVENTS - 20)),
    bytes_=st.sampled_from((8, 16, 64, 200)),
    length=st.sampled_from((1, 7, 100)),
    by_number=st.booleans(),
)
def test_every_byte_has_its_first_race_and_no_pair_is_ordered(
    seed: int, count: int, bytes_: int, length: int, by_number: bool
) -> None:
    schedule = Schedule(random.Random(seed), count, bytes_)
    atomic = frozenset(number for number in schedule.atomic if number < MOST_EVENTS)
    process = naive.run(schedule.events, atomic, by_number)
    wanted, begun = naive.races(process), process.begun
    places = {(begun.get(earlier, earlier), begun.get(later, later)) for earlier, later in wanted}
    found = found_by_module(schedule.events, atomic, length, by_number)
    for earlier, later, address in found:
        assert (earlier, later) in places
        assert earlier < later or later in begun.values()
        assert schedule.events[later][3] <= address
    reported = {(earlier, later) for earlier, later, _ in found}
    assert naive.has_first_races(reported, wanted, begun)


def test_a_round_of_a_barrier_says_nothing_of_older_ones() -> None:
    """Threads 1 and 2 meet in as many rounds as are kept apart; the next one, of 3 and 4, takes a place used before."""
    events: list[naive.Event] = [(0, "program_start", 0, 0, 7), (0, "barrier_init", 0, BARRIERS, 2)]
    for thread in (1, 2, 3, 4):
        events += [(0, "thread_create", thread, 0, 0), (thread, "thread_start", thread, 0, 0)]
    store = len(events)
    events.append((1, "store", store, MEMORY, 8))
    for first, second in [(1, 2)] * ROUNDS + [(3, 4)]:
        events += [(stream, "barrier_enter", 0, BARRIERS, 0) for stream in (first, second)]
        events += [(stream, "barrier_leave", 0, BARRIERS, 0) for stream in (first, second)]
    load = len(events)
    events += [(3, "load", load, MEMORY, 8), (2, "load", load + 1, MEMORY, 8)]
    assert set(naive.races(naive.run(events))) == {(store, load)}
    assert found_by_module(events, frozenset(), 100) == [(store, load, MEMORY)]


NONSENSE = (
    "program_start", "thread_create", "thread_start", "thread_exit", "thread_join", "lock", "lock_shared", "unlock",
    "release", "acquire", "barrier", "barrier_init", "barrier_enter", "barrier_leave", "atomic", "fence",
    "resource_begin", "resource_use", "resource_end",
    "thread_memory", "heap_alloc", "heap_free", "stack_alloc", "load", "store", "function_entry", "function_exit",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from((5, 60, 300)))
def test_events_that_make_no_sense_do_no_harm(seed: int, count: int) -> None:
    rng = random.Random(seed)
    numbers = (0, 1, 2, 3, 7, 2**31, 2**32 - 1)
    events = [
        (
            rng.randrange(5),
            rng.choice(NONSENSE),
            rng.choice(numbers),
            rng.choice((*numbers, MEMORY, MEMORY + 5, FILES, 2**64 - 3, rng.getrandbits(64))),
            rng.choice((0, 1, 8, 30, 5000, 2 << 20)),
        )
        for _ in range(count)
    ]
    for name in ("function_entry", "function_exit"):  # the program has one function
        events = [event if event[1] != name else (event[0], name, 0, 0, 0) for event in events]
    for earlier, later, _ in found_by_module(events, frozenset({1, 3}), 13):
        assert {earlier, later} <= set(numbers)
