"""Races that other orders of locks have, by trying every interleaving of what threads did.

Events are those of tests/naive/races.py. A thread does what it did in the recorded run as long as each load sees the
store that it saw there. A lock is held by one thread; `acquire` comes behind all releases that it came behind before.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.races import Event

State = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


def races(events: Sequence[Event]) -> set[tuple[int, int]]:
    """Pairs of events that can come at once: accesses to a common byte, one of them a store."""
    threads = sorted({event[0] for event in events})
    programs = [[number for number, event in enumerate(events) if event[0] == thread] for thread in threads]
    seen_stores = stores_of_loads(events)
    found: set[tuple[int, int]] = set()
    start: State = ((0,) * len(threads), ())
    known, left = {start}, [start]
    while left:
        places, stores = left.pop()
        done = {number for program, place in zip(programs, places, strict=True) for number in program[:place]}
        held = holders(events, done)
        able = []
        for thread, program in enumerate(programs):
            if places[thread] < len(program) and is_able(events, program[places[thread]], done, held):
                able.append((thread, program[places[thread]]))
        found |= {(one, other) for _, one in able for _, other in able if one < other and conflict(events, one, other)}
        for thread, number in able:
            _, name, _, address, size = events[number]
            last = dict(stores)
            if name == "load" and seen_stores[number] != [last.get(byte) for byte in range(address, address + size)]:
                continue
            if name == "store":
                last |= dict.fromkeys(range(address, address + size), number)
            moved = tuple(place + (thread == other) for other, place in enumerate(places))
            state: State = (moved, tuple(sorted(last.items())))
            if state not in known:
                known.add(state)
                left.append(state)
    return found


def stores_of_loads(events: Sequence[Event]) -> dict[int, list[int | None]]:
    """Load -> of each of its bytes the store that it sees."""
    last: dict[int, int] = {}
    seen: dict[int, list[int | None]] = {}
    for number, (_, name, _, address, size) in enumerate(events):
        whole = range(address, address + size)
        if name == "load":
            seen[number] = [last.get(byte) for byte in whole]
        elif name == "store":
            last |= dict.fromkeys(whole, number)
    return seen


def holders(events: Sequence[Event], done: set[int]) -> set[int]:
    """Locks that are held."""
    held: set[int] = set()
    for number in sorted(done):
        _, name, _, address, _ = events[number]
        if name == "lock":
            held.add(address)
    given_up = [events[number][3] for number in done if events[number][1] == "unlock"]
    taken = [events[number][3] for number in done if events[number][1] == "lock"]
    return {lock for lock in held if taken.count(lock) > given_up.count(lock)}


def is_able(events: Sequence[Event], number: int, done: set[int], held: set[int]) -> bool:
    """Whether an event can be next."""
    stream, name, _, address, _ = events[number]
    if name == "lock":
        return address not in held
    before = range(number)
    if name == "acquire":
        return all(other in done for other in before if events[other][1] == "release" and events[other][3] == address)
    if name == "thread_start":
        return any(other in done for other in before if events[other][1:3] == ("thread_create", stream))
    return True


def conflict(events: Sequence[Event], one: int, other: int) -> bool:
    """Whether two events are accesses to a common byte, one of them a store."""
    names = {events[one][1], events[other][1]}
    first, second = events[one], events[other]
    common = first[3] < second[3] + second[4] and second[3] < first[3] + first[4]
    return names <= {"load", "store"} and "store" in names and common
