"""Footprints of steps: of random events in random batches, as the naive sets have them."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.taskgraph import footprints_of
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.taskgraph.collector import ordering_events
from tracekit.taskgraph.footprints import FootprintCollector
from tracekit.taskgraph.kernels.footprints import MOST_STREAMS, RECENT
from tracekit.taskgraph.kernels.layouts import STEP

Event = tuple[int, str, int, int]
BASE = 0x7FFF_0000_0000


def random_events(rng: random.Random, streams: int, count: int) -> list[Event]:
    """Accesses that overlap, and whose granules share places in what is remembered; locks and other orders between."""
    made = []
    for _ in range(count):
        stream = rng.randrange(streams)
        name = rng.choice(("load", "store", "load", "store", rng.choice(("lock", "unlock", "release", "atomic"))))
        address = BASE + rng.choice((0, 64 * RECENT, 256 * RECENT)) + rng.randrange(300)
        made.append((stream, name, address, rng.choice((0, 1, 4, 8, 200))))
    return made


def collected(events: list[Event], granule: int, locks: bool, rng: random.Random) -> FootprintCollector:
    """The events in batches of one stream."""
    made = FootprintCollector(granule, locks)
    place = 0
    while place < len(events):
        stream, end = events[place][0], place
        while end < len(events) and events[end][0] == stream and (end == place or rng.random() < 0.9):
            end += 1
        rows = [row for row in events[place:end] if row[1] in made.events]  # a module is fed what it names
        kinds = np.array([CODE[row[1]] for row in rows], np.uint8)
        addresses = np.array([row[2] for row in rows], np.uint64)
        sizes = np.array([row[3] for row in rows], np.uint64)
        made.add(cast("Any", SimpleNamespace(stream=stream, kind=kinds, address=addresses, size=sizes)))
        place = end
    return made


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    granule=st.sampled_from((1, 8, 64, 4096)),
    locks=st.booleans(),
    streams=st.integers(1, 4),
)
def test_footprints_are_those_of_sets(seed: int, granule: int, locks: bool, streams: int) -> None:
    rng = random.Random(seed)
    events = random_events(rng, streams, 200)
    made = collected(events, granule, locks, rng)
    expected = footprints_of(events, ordering_events(locks), granule)
    steps = np.zeros(1 + sum(map(len, expected.values())), STEP)
    steps["stream"][1:] = np.repeat(sorted(expected), [len(expected[stream]) for stream in sorted(expected)])
    flat = [pair for stream in sorted(expected) for pair in expected[stream]]
    assert made.of_steps(steps).tolist() == [0, *(touched for _, touched in flat)]
    assert made.rows()["accesses"].tolist() == [count for count, _ in flat]


def test_a_stream_without_events_has_no_footprint() -> None:
    made = collected([(1, "load", BASE, 4), (1, "lock", 0, 0), (1, "load", BASE, 4)], 64, True, random.Random(0))
    steps = np.zeros(7, STEP)
    steps["stream"][1:] = [0, 0, 1, 1, 2, 2]
    assert made.of_steps(steps).tolist() == [0, 0, 0, 64, 64, 0, 0]


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(TracekitError, match="leave out --footprint"):
        collected([(MOST_STREAMS, "load", BASE, 4)], 64, True, random.Random(0))
