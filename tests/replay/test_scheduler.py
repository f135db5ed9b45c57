"""Whose turn it is, by looking at all streams each time; and how often a stream is looked at."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.formats.events import CODE
from tracekit.replay.kernels.turns import NO_LIMIT
from tracekit.replay.scheduler import Scheduler
from tracekit.replay.stream import StreamReplay

START, OTHER = CODE["thread_start"], CODE["heap_free"]


@dataclass
class Stream:
    """What a StreamReplay shows of itself: its events, each with its ticket."""

    number: int
    events: list[tuple[int, int]]
    looks: int = 0

    @property
    def ids(self) -> list[tuple[int, int]]:
        """The records that are left."""
        return self.events

    @property
    def event(self) -> int:
        """The event that it stands before."""
        self.looks += 1
        return self.events[0][0]

    @property
    def ticket(self) -> int:
        """Its ticket."""
        return self.events[0][1]


def naive(streams: list[Stream], created: Any) -> tuple[int, int] | None:
    """The stream and its limit, by the rule as it stands in docs/internals/replay.md."""
    waiting = [stream for stream in streams if stream.events]
    ready = [stream for stream in waiting if stream.events[0][0] != START or created[stream.number]] or waiting
    order = sorted((stream.ticket, stream.number) for stream in ready)
    if not order:
        return None
    return order[0][1], max(order[1][0], order[0][0]) if len(order) > 1 else NO_LIMIT


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 8))
def test_the_lowest_ticket_has_its_turn(seed: int, count: int) -> None:
    rng = random.Random(seed)
    streams = []
    for number in range(count):
        tickets = sorted(rng.randrange(40) for _ in range(rng.randrange(6)))
        events = [(OTHER, ticket) for ticket in tickets]
        if events and number and rng.random() < 0.8:
            events[0] = (START, events[0][1])
        streams.append(Stream(number, events))
    created = np.zeros(count, np.uint8)
    scheduler = Scheduler(cast(list[StreamReplay], streams), created)
    while expected := naive(streams, created):
        taken = scheduler.take()
        assert taken is not None
        stream = cast(Stream, taken[0])
        assert (stream.number, taken[1]) == expected
        stream.events.pop(0)
        if rng.random() < 0.5:
            created[rng.randrange(count)] = 1
        scheduler.add(cast(StreamReplay, stream))
    assert scheduler.take() is None


def test_threads_that_wait_are_not_looked_at_again_and_again() -> None:
    """A program that makes one thread after another: the streams of all of them are there from the beginning."""
    count = 500
    main = Stream(0, [(OTHER, 2 * number) for number in range(1, count)])
    streams = [main, *(Stream(number, [(START, 2 * number + 1)]) for number in range(1, count))]
    created = np.zeros(count, np.uint8)
    scheduler = Scheduler(cast(list[StreamReplay], streams), created)
    while taken := scheduler.take():
        stream = cast(Stream, taken[0])
        if stream is main:
            created[count - len(main.events)] = 1
        stream.events.pop(0)
        scheduler.add(cast(StreamReplay, stream))
    assert created[1:].all() and not any(stream.events for stream in streams)
    assert sum(stream.looks for stream in streams) <= 4 * count
