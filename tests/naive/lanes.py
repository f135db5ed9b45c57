"""SIMD loops as threads: each iteration is a thread that the task creates, and as many as there are lanes are joined.

The events of a loop on a stream become those of threads of their own, for the naive happens-before of races.py. What
an access stands behind in the loop's text, earlier iterations have released before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.naive.races import Event

PLACES = 1 << 40
"""Objects by which lanes tell later ones what they have done, by stream and place in the text."""


def as_threads(
    events: Sequence[Event], lanes: Mapping[int, int], ranks: Mapping[int, int] = MappingProxyType({})
) -> tuple[list[Event], list[int]]:
    """The events without those of loops, and for each the place of the one that it stands for, or -1.

    `lanes`: by SIMD loop how many iterations run at once; other loops are passed over. `ranks`: by event, an access of
    a lane, where it stands in the text of the loop, as far as that is known; odd in a region of `ordered simd`, which
    iterations run one after the other.
    """
    made: list[Event] = []
    places: list[int] = []
    open_loops: dict[int, list[int]] = {}  # by stream: loop, lanes, how often another one is open inside
    iterations: dict[int, list[int]] = {}  # by stream: the threads of the present lanes
    fresh = 1 << 20
    used: set[int] = set()

    def add(event: Event, place: int = -1) -> None:
        made.append(event)
        places.append(place)

    def begin(stream: int) -> None:
        nonlocal fresh
        fresh += 1
        iterations.setdefault(stream, []).append(fresh)
        add((stream, "thread_create", fresh, 0, 0))
        add((fresh, "thread_start", fresh, 0, 0))

    def join(stream: int) -> None:
        for thread in iterations.pop(stream, []):
            add((stream, "thread_join", thread, 0, 0))

    for place, (stream, name, subject, address, size) in enumerate(events):
        opened = open_loops.get(stream)
        if name == "loop_invocation" and subject in lanes:
            if opened:
                opened[2] += 1
            else:
                open_loops[stream] = [subject, lanes[subject], 0]
                begin(stream)
        elif name == "loop_iteration" and opened and opened[0] == subject and opened[2] == 0:
            if len(iterations[stream]) == opened[1]:
                join(stream)
            begin(stream)
        elif name == "loop_exit" and subject in lanes and opened:
            if opened[2]:
                opened[2] -= 1
            else:
                join(stream)
                del open_loops[stream]
        elif name not in ("loop_invocation", "loop_iteration", "loop_exit", "function_entry", "function_exit"):
            inside = iterations.get(stream)
            thread, rank = inside[-1] if inside else stream, ranks.get(place, 0)
            before = [each for each in sorted(used) if each < rank + (each & 1)]
            for each in before if rank else ():
                add((thread, "acquire", 0, PLACES + (stream << 20) + each, 0))
            add((thread, name, subject, address, size), place)
            if rank:
                used.add(rank)
                add((thread, "release", 0, PLACES + (stream << 20) + rank, 0))
    return made, places
