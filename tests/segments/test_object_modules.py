"""The modules of live objects in segments: what they find is what they find in the whole."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_object_lifetime import random_runs
from tests.analyzers.test_privateer import privateer
from tests.segments.test_segments_random import in_segments, whole
from tracekit.analyzers.memprof import Memprof, MemprofOptions
from tracekit.analyzers.object_lifetime import LifetimeOptions, ObjectLifetime
from tracekit.analyzers.points_to import PointsTo, PointsToOptions
from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.module import Module

RUN = (st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([1, 2, 5, 12]))


def cuts_in(seed: int, events: list[Any], count: int) -> list[int]:
    """Some of the places between events, so many at most."""
    places = range(1, len(events))
    return sorted(Random(seed).sample(places, min(count, len(places))))


def found(runner: Any) -> list[str]:
    """What profiles and profile files say."""
    return [json.dumps(said, default=np.ndarray.tolist) for said in (runner.result(), runner.merge_state)]


@settings(deadline=None, max_examples=25)
@given(*RUN, st.sampled_from(["static", "dynamic"]))
def test_lifetimes(seed: int, streams: int, count: int, contexts: str) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = ObjectLifetime(made.program, LifetimeOptions(contexts=contexts))
    one = found(whole(module, events))
    assert found(in_segments(module, events, cuts_in(seed, events, count))) == one


@settings(deadline=None, max_examples=25)
@given(*RUN, st.sampled_from([0, 0, 1, 3]))
def test_pointers(seed: int, streams: int, count: int, most: int) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    if most:  # here a load may be one row with a pointer: in no program
        loads = {CODE[name] for name in ACCESS_EVENTS}
        events = [event for event in events if event[1] not in loads]
    module = PointsTo(made.program, PointsToOptions(accesses=True, most=most))
    one = found(whole(module, events))
    assert found(in_segments(module, events, cuts_in(seed, events, count))) == one


@settings(deadline=None, max_examples=25)
@given(*RUN)
def test_privateer(seed: int, streams: int, count: int) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = privateer(made)
    one = found(whole(module, events))
    assert found(in_segments(module, events, cuts_in(seed, events, count))) == one


def test_memprof_says_why_it_is_not_cut() -> None:
    made, _ = random_runs(1, 1, 1)
    module: Module = Memprof(made.program, MemprofOptions())
    assert module.segments() is None and module.whole_because
