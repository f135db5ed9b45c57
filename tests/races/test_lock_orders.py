"""Races that another order of locks has: none but what an interleaving has, on random events, and those of programs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches, program
from tests.naive import lock_orders as naive
from tests.naive.races import Event
from tracekit.analyzers.races import RaceOptions, Races
from tracekit.containers.hash_table import used_rows
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.races.kernels.state import (
    ATOMIC,
    CALLS_BACK,
    DIRECT,
    OUTSIDE,
    RECENT,
    RECENT_WAYS,
    REORDERS,
    TAKES,
    TRIES_LOCK,
    WAITS,
    State,
)

MOST_EVENTS = 200
LOCKS, OBJECTS, MEMORY = 0x100, 0x200, 0x1000
A, B = LOCKS, LOCKS + 0x10
X, Y, Z, LAST = MEMORY, MEMORY + 8, MEMORY + 16, MEMORY + 64
WAIT, OUTSIDE_CALL, TRY, COUNT = range(MOST_EVENTS - 4, MOST_EVENTS)
"""Instructions that wait for a condition, call a library, try a lock, and count atomically; the others take locks."""


class Reordered(Races):
    """Says which events race in another order; each event has an instruction of its own, by its number."""

    def state(self) -> State:
        kinds = np.full(MOST_EVENTS + 1, DIRECT | TAKES, np.uint16)
        kinds[WAIT], kinds[OUTSIDE_CALL] = DIRECT | WAITS, OUTSIDE | CALLS_BACK
        kinds[TRY], kinds[COUNT] = DIRECT | TAKES | TRIES_LOCK, ATOMIC
        return super().state()._replace(kinds=kinds, recent=np.zeros(2 * RECENT_WAYS * (MOST_EVENTS + 1), RECENT))

    def result(self, state: State) -> dict[str, Any]:
        sites = state.sites.rows["instruction"]
        keys = [int(row["key"]) for row in used_rows(state.reordered)[1:]]
        return {
            "pairs": {(int(sites[key >> 32]), int(sites[key & 0xFFFF_FFFF])) for key in keys},
            "raced": len(used_rows(state.races)) > 1,
            "reorders": int(state.now[REORDERS]),
        }


def delivered(events: Sequence[Event]) -> list[tuple[int, str, int, int, int, int]]:
    """The events as the module gets them: whoever takes a lock says so before, and accesses have numbers."""
    all_of_them = []
    for number, (stream, name, subject, address, size) in enumerate(events):
        if name == "lock":
            all_of_them.append((stream, "resource_use", number, address, 0, 0))
        if name in ("load", "store"):
            subject = number
        all_of_them.append((stream, name, subject, address, size, 0))
    return all_of_them


def found_by_module(events: Sequence[tuple[int, str, int, int, int, int]]) -> dict[str, Any]:
    """What the module says of them."""
    runner = CallbackRunner(Reordered(program(2), RaceOptions()), "races", 1)
    run(batches(list(events), 50), [runner], 1)
    found: dict[str, Any] = runner.result()[0]
    return found


def beginning(threads: int) -> list[Event]:
    """The process, and threads beside its first one."""
    events: list[Event] = [(0, "program_start", 0, 0, 7)]
    for thread in range(1, threads + 1):
        events += [(0, "thread_create", thread, 0, 0), (thread, "thread_start", thread, 0, 0)]
    return events


def schedule(rng: random.Random, threads: int, steps: int) -> list[Event]:
    """A run of threads that mostly hold locks where they access memory; the first and the last store to one word."""
    events = beginning(threads)
    held: dict[int, list[int]] = {thread: [] for thread in range(1, threads + 1)}
    early = rng.randrange(steps // 2)
    for step in range(steps):
        if step == early:
            events.append((1, "store", 0, LAST, 8))
        thread = rng.randrange(1, threads + 1)
        own, taken = held[thread], {lock for locks in held.values() for lock in locks}
        free = [lock for lock in (A, B) if lock not in taken]
        what = rng.choices(("access", "take", "give", "object"), (4, 4 if free else 0, 5 if own else 0, 1))[0]
        if what == "take":
            own.append(rng.choice(free))
            events.append((thread, "lock", 0, own[-1], 0))
        elif what == "give":
            events.append((thread, "unlock", 0, own.pop(rng.randrange(len(own))), 0))
        elif what == "object":
            events.append((thread, rng.choice(("release", "acquire")), 1, OBJECTS, thread))
        elif own or rng.random() < 0.25:
            address = MEMORY + 8 * rng.randrange(6)
            events.append((thread, rng.choice(("load", "store")), 0, address, rng.choice((4, 8))))
    return [*events, (2, "store", 0, LAST, 8)]


@settings(max_examples=600, deadline=None)
@given(seed=st.integers(0, 2**32), threads=st.sampled_from((2, 2, 3)), steps=st.sampled_from((6, 10, 14, 18, 22)))
def test_no_race_is_invented(seed: int, threads: int, steps: int) -> None:
    events = schedule(random.Random(seed), threads, steps)
    assert found_by_module(delivered(events))["pairs"] <= naive.races(events)


def run_of(*steps: str) -> list[Event]:
    """`1 lock A`, `2 store X`, ...: of three threads."""
    places = {"A": A, "B": B, "X": X, "Y": Y, "Z": Z, "O": OBJECTS}
    events = beginning(3)
    for step in steps:
        thread, name, place = step.split()
        size = 8 if name in ("load", "store") else int(thread)
        events.append((int(thread), name, 1 if place == "O" else 0, places[place], size))
    return events


EMPTY = ["1 store X", "1 lock A", "1 unlock A", "2 lock A", "2 unlock A", "2 store X"]
HELD = ["1 lock A", "1 store X", "1 unlock A", "2 lock A", "2 unlock A", "2 store X"]
OTHERS = [
    "1 store X", "1 lock A", "1 store Y", "1 unlock A",
    "3 lock A", "3 unlock A", "2 lock A", "2 store Z", "2 unlock A", "2 store X",
]  # fmt: skip
NESTED = [
    "1 lock A", "1 lock B", "1 store X", "1 unlock B", "1 unlock A",
    "2 lock B", "2 unlock B", "2 lock A", "2 unlock A", "2 store X",
]  # fmt: skip


@pytest.mark.parametrize("steps", [EMPTY, HELD, OTHERS, NESTED])
def test_found(steps: list[str]) -> None:
    events = run_of(*steps)
    first, last = [number for number, event in enumerate(events) if event[1] == "store" and event[3] == X]
    found = found_by_module(delivered(events))
    assert found["pairs"] == {(first, last)} and not found["raced"]
    assert (first, last) in naive.races(events)


VALUE = ["1 store X", "1 lock A", "1 store Y", "1 unlock A", "2 lock A", "2 load Y", "2 unlock A", "2 store X"]
GUARDED = ["1 lock A", "1 store X", "1 unlock A", "2 lock A", "2 store X", "2 unlock A"]
POSTED = ["1 store X", "1 lock A", "1 release O", "1 unlock A", "2 acquire O", "2 lock A", "2 unlock A", "2 store X"]
THROUGH = [
    "1 store X", "1 lock A", "1 store Y", "1 unlock A",
    "3 lock A", "3 load Y", "3 store Z", "3 unlock A", "2 lock A", "2 load Z", "2 unlock A", "2 store X",
]  # fmt: skip
CIRCLE = [
    "1 lock A", "1 store Y", "1 lock B", "1 store X", "1 unlock B", "1 unlock A",
    "2 lock B", "2 unlock B", "2 lock A", "2 load Y", "2 unlock A", "2 store X",
]  # fmt: skip


@pytest.mark.parametrize("steps", [VALUE, GUARDED, POSTED, THROUGH, CIRCLE])
def test_not_found(steps: list[str]) -> None:
    events = run_of(*steps)
    found = found_by_module(delivered(events))
    assert found["pairs"] == set() and not found["raced"]
    pair = tuple(number for number, event in enumerate(events) if event[1] == "store" and event[3] == X)
    assert pair not in naive.races(events)


def test_who_waits_for_a_condition_comes_behind_the_signal() -> None:
    """The lock's order is kept if one of those who take it does so behind a wait."""
    events = delivered(run_of(*EMPTY))
    waits = [(3, "resource_use", WAIT, OBJECTS, 0, 0), (3, "unlock", 0, A, 0, 0)]
    begun = len(beginning(3))
    own = [(3, "resource_use", 0, A, 0, 0), (3, "lock", 0, A, 0, 0)]
    assert found_by_module([*events[:begun], *own, *waits, *events[begun:]])["pairs"] == set()


def test_who_gives_up_what_another_one_took() -> None:
    """A lock that is no lock orders as it did."""
    events = run_of("1 store X", "1 lock A", "2 unlock A", "2 lock A", "2 unlock A", "2 store X")
    assert found_by_module(delivered(events))["pairs"] == set()


@pytest.mark.parametrize("seen", ["external_call", "function_entry"])
@pytest.mark.parametrize("under", [True, False])
def test_what_is_called_under_a_lock_may_hand_on_values(seen: str, under: bool) -> None:
    """And behind it not: who calls it then may have been first."""
    events = delivered(run_of(*EMPTY))
    place = next(row for row, event in enumerate(events) if event[1] == "unlock") + (not under)
    call = (1, seen, OUTSIDE_CALL, 0, 0, 0) if seen == "external_call" else (1, seen, 0, 0, OUTSIDE_CALL, 0)
    found = found_by_module([*events[:place], call, *events[place:]])["pairs"]
    assert bool(found) == (not under)


def with_tries(events: Sequence[Event], refused: bool) -> list[tuple[int, str, int, int, int, int]]:
    """All locks are tried; before the last one is got somebody has tried another one, in vain if `refused`."""
    made = []
    for event in delivered(events):
        if event[1] == "resource_use":
            event = (*event[:2], TRY, *event[3:])
        made.append(event)
        if event[1] == "lock":
            made.append((event[0], "external_call", TRY, 0, 0, 0))
    if refused:
        place = max(row for row, event in enumerate(made) if event[1] == "resource_use")
        made[place:place] = [(3, "resource_use", TRY, B, 0, 0), (3, "external_call", TRY, 0, 0, 0)]
    return made


@pytest.mark.parametrize("steps", [EMPTY, HELD, OTHERS, NESTED, VALUE, GUARDED, THROUGH, CIRCLE])
@pytest.mark.parametrize("refused", [False, True])
def test_who_tries_a_lock_and_gets_it_waits_for_it(steps: list[str], refused: bool) -> None:
    """And a lock that is refused may say that another one has been there."""
    events = run_of(*steps)
    found, waiting = found_by_module(with_tries(events, refused)), found_by_module(delivered(events))
    assert found["reorders"] == (not refused)
    assert found["pairs"] == (set() if refused else waiting["pairs"])


@pytest.mark.parametrize("threads", [(3,), (3, 1), (1, 2)])
def test_atomic_accesses_whose_order_is_not_known(threads: tuple[int, ...]) -> None:
    """Up to the first two that nothing orders; those of one thread alone stop nothing."""
    events = delivered(run_of(*EMPTY))
    begun = len(beginning(3))
    counts = [(thread, "store", COUNT, Z, 8, 0) for thread in threads]
    found = found_by_module([*events[:begun], *counts, *events[begun:]])
    assert bool(found["pairs"]) == bool(found["reorders"]) == (len(threads) == 1)


def test_behind_a_race_nothing_is_tried() -> None:
    """In which order the two ends came is not sure, nor what they saw."""
    events = run_of("3 store Y", "1 store Y", *EMPTY)
    found = found_by_module(delivered(events))
    assert found["raced"] and found["pairs"] == set() and found["reorders"] == 0
