"""The dependence engine against the naive reference, on random runs of random programs."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.dependence import NaiveDependence
from tests.naive.dependence_engine import DependenceEngine
from tests.naive.dependence_machine import Machine, RandomProgram, interleaved
from tests.naive.dependence_programs import feed
from tests.naive.dependence_rows import from_naive, from_profile, kinds_of
from tests.naive.final_stores import passed
from tests.naive.folding import NaiveFolding


def compare(
    seed: int,
    streams: int,
    limit: int,
    collect: bool,
    workers: int,
    context: bool = True,
    most: int | None = None,
    looks_ahead: bool = False,
) -> None:
    """Run one random program on both and compare all that they say.

    With `most`, recursion folds where it happens, and from so many contexts on there are none of recursive calls.
    With `looks_ahead`, the engine knows which stores are final.
    """
    random = Random(seed)
    made = RandomProgram(random)
    numbers = random.sample(range(4), streams)
    events = interleaved(random, [Machine(made, random, number, limit).run() for number in numbers])
    cuts = [place for place in range(len(events)) if random.random() < 0.1]
    folds: list[Any] = [] if most is None else ["dynamic", most]
    final = passed(made.program, events) if looks_ahead else None
    engine = DependenceEngine(made.program, context, workers, *folds, final=final)
    engine.collects = collect
    feed(engine, events, cuts)
    naive = NaiveDependence(made.program, context) if most is None else NaiveFolding(made.program, most)
    naive.feed(events)
    profile = engine.result()
    got, want = from_profile(profile, folding=most is not None), from_naive(naive)
    assert got["accesses"] == want["accesses"]
    assert got["nodes"] == want["nodes"]
    if isinstance(naive, NaiveFolding):
        assert kinds_of(profile) == {path: naive.kind(path) for path in want["nodes"]}
    assert got["dependences"] == want["dependences"]
    assert got["exposed"] == want["exposed"]


@settings(deadline=None)
@given(
    st.integers(0, 2**32),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([30, 100, 300]),
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
)
def test_engine_agrees_with_the_naive_reference(
    seed: int, context: bool, streams: int, limit: int, collect: bool, workers: int, looks_ahead: bool
) -> None:
    compare(seed, streams, limit, collect, workers, context, looks_ahead=looks_ahead)


@settings(deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 3),
    st.sampled_from([30, 100, 300]),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([1, 4, 9, 20, 1 << 16]),
    st.booleans(),
)
def test_folding_agrees_with_the_naive_reference(
    seed: int, streams: int, limit: int, collect: bool, workers: int, most: int, looks_ahead: bool
) -> None:
    compare(seed, streams, limit, collect, workers, most=most, looks_ahead=looks_ahead)
