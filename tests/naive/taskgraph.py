"""Task graphs by looking back through the list of events, and the longest way by trying them all."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import NamedTuple


class Step(NamedTuple):
    """An event of a stream, and the work that the stream does until its next one."""

    stream: int
    name: str
    subject: int  # its stream, or its address
    other: int  # count, or kind
    work: int


Edge = tuple[int, int]
"""Numbers of steps: whose work is done before whose, which begins with the step's event."""

SEMAPHORE, DESCRIPTOR = 1, 3
LOAD, STORE, ACQUIRE, RELEASE, SIZE = 1, 2, 4, 8, 16


def edges_of(steps: Sequence[Step], locks: bool = True) -> set[Edge]:
    """Which steps' work comes before which; steps stand in the order of their tickets."""
    edges: set[Edge] = set()
    for number, step in enumerate(steps):
        own = [other for other in range(number) if steps[other].stream == step.stream]
        edges |= {(other, number) for other in own[-1:]}
        earlier = range(number)
        if step.name == "thread_start":
            made = [k for k in earlier if steps[k].name == "thread_create" and steps[k].subject == step.stream]
            edges |= {(before(steps, k), number) for k in made}
        elif step.name == "thread_join":
            edges |= {(k, number) for k in earlier if steps[k].stream == step.subject}
        elif step.name in ("lock", "lock_shared") and locks:
            edges |= {(before(steps, k), number) for k in earlier if is_unlock(steps, k, step)}
        elif step.name == "acquire" and step.other == SEMAPHORE:
            post = taken_post(steps, number)
            edges |= set() if post is None else {(before(steps, post), number)}
        elif step.name == "acquire" and step.other == DESCRIPTOR:
            written = [k for k in earlier if steps[k].name == "release" and steps[k].subject == step.subject]
            edges |= {(before(steps, k), number) for k in written if steps[k].stream != step.stream}
        elif step.name == "acquire":
            once = [k for k in earlier if steps[k].name == "release" and steps[k].subject == step.subject]
            edges |= {(before(steps, k), number) for k in once[-1:] if steps[k].stream != step.stream}
        elif step.name == "barrier_leave":
            edges |= {(before(steps, k), number) for k in round_of(steps, number)}
        elif step.name == "atomic" and step.other & LOAD and step.other & ACQUIRE:
            edges |= {(k, number) for k in released(steps, number)}
        elif step.name == "fence" and step.subject & ACQUIRE:
            met = [k for k in own if steps[k].name == "atomic" and steps[k].other & LOAD]
            edges |= {(source, number) for k in met for source in released(steps, k)}
    return {(source, destination) for source, destination in edges if source >= 0}


def released(steps: Sequence[Step], number: int) -> set[int]:
    """The steps that the bytes of an atomic operation released before it, by the rules of C++20."""
    return {source for byte in operated(steps[number]) for source in released_by(byte, steps, number)}


def operated(step: Step) -> range:
    """The bytes of an atomic operation."""
    return range(step.subject, step.subject + (1 << max(step.other // SIZE - 1, 0)))


def released_by(byte: int, steps: Sequence[Step], number: int) -> set[int]:
    """The same of one byte."""
    given: set[int] = set()
    for k, step in enumerate(steps[:number]):
        if step.name != "atomic" or byte not in operated(step) or not step.other & STORE:
            continue
        if not step.other & LOAD:
            given = set()
        fences = [other for other in range(k) if steps[other].stream == step.stream and is_release(steps[other])]
        if step.other & RELEASE:
            given.add(before(steps, k))
            if step.other & LOAD and step.other & ACQUIRE and len(operated(step)) > 1:
                given |= released(steps, k)  # of its other bytes, which it acquires
        elif fences:
            given.add(before(steps, fences[-1]))
    return given


def is_release(step: Step) -> bool:
    """Whether it is a fence that releases."""
    return step.name == "fence" and bool(step.subject & RELEASE)


def before(steps: Sequence[Step], number: int) -> int:
    """The step of the same stream ahead of one, -1 if it is the first."""
    return max((k for k in range(number) if steps[k].stream == steps[number].stream), default=-1)


def held_as_reader(steps: Sequence[Step], number: int) -> bool:
    """Whether what an unlock gives up was got by a reader: of several holds, those of readers are given up first."""
    step, shared = steps[number], 0
    for other in steps[:number]:
        if other.stream == step.stream and other.subject == step.subject:
            if other.name == "lock_shared":
                shared += 1
            elif other.name == "unlock" and shared:
                shared -= 1
    return shared > 0


def is_unlock(steps: Sequence[Step], number: int, lock: Step) -> bool:
    """Whether step `number` gives up what `lock` gets then."""
    step = steps[number]
    if step.name != "unlock" or step.subject != lock.subject:
        return False
    return lock.name == "lock" or not held_as_reader(steps, number)


def taken_post(steps: Sequence[Step], wait: int) -> int | None:
    """The post that a wait takes: the oldest that no wait before it took."""
    waiting: list[int] = []
    for number, step in enumerate(steps[: wait + 1]):
        if step.subject != steps[wait].subject or step.other != SEMAPHORE:
            continue
        if step.name == "release":
            waiting.append(number)
        elif step.name == "acquire":
            post = waiting.pop(0) if waiting else None
            if number == wait:
                return post
    return None


def round_of(steps: Sequence[Step], leave: int) -> list[int]:
    """The arrivals of the round that a thread leaves."""
    address, stream = steps[leave].subject, steps[leave].stream
    rounds: list[list[int]] = []
    count = 0
    for number, step in enumerate(steps[:leave]):
        if step.subject == address and step.name == "barrier_init":
            count = step.other
            rounds.append([])
        elif step.subject == address and step.name == "barrier_enter" and count:
            if not rounds or len(rounds[-1]) == count:
                rounds.append([])
            rounds[-1].append(number)
    mine = [arrived for arrived in rounds if any(steps[k].stream == stream for k in arrived)]
    return mine[-1] if mine else []


def span_of(steps: Sequence[Step], edges: set[Edge]) -> int:
    """The greatest sum of work on a way."""
    into: dict[int, list[int]] = {}
    for source, destination in edges:
        into.setdefault(destination, []).append(source)

    @cache
    def finish(number: int) -> int:
        return steps[number].work + max(map(finish, into.get(number, [])), default=0)

    return max(map(finish, range(len(steps))), default=0)


def footprints_of(
    events: Iterable[tuple[int, str, int, int]], orders: Container[str], granule: int
) -> dict[int, list[tuple[int, int]]]:
    """By stream, of each of its steps, how many accesses it makes, and how many bytes, in whole granules, they touch.

    An event is (stream, name, address, size), of each stream in their order; those in `orders` begin a step.
    """
    accesses: dict[int, list[int]] = {}
    touched: dict[int, list[set[int]]] = {}
    for stream, name, address, size in events:
        steps, counts = touched.setdefault(stream, [set()]), accesses.setdefault(stream, [0])
        if name in orders:
            steps.append(set())
            counts.append(0)
        if name in ("load", "store"):
            counts[-1] += 1
            steps[-1] |= {
                at // granule for at in (*range(address, address + size, granule), address + size - 1) if size
            }
    return {
        stream: [(count, granule * len(step)) for count, step in zip(accesses[stream], steps)]
        for stream, steps in touched.items()
    }
