"""Modules that ask for objects, in segments: live objects and groups are what they are in the whole."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.translation import MemoryMachine
from tests.segments.test_segments_random import in_segments, whole
from tests.translation.test_translation import made
from tracekit.analyzers.leap import Leap, LeapOptions
from tracekit.analyzers.whomp import Whomp, WhompOptions
from tracekit.whomp import ALL

SEEDS = st.integers(0, 2**32)
# Each of these is a kernel of its own.
LEAP = st.sampled_from([("site", False, 2), ("caller", True, 1), ("context", False, 5)])
WHOMP = st.sampled_from([("site", True, 7), ("caller", False, 30)])


def played(seed: int, by: str, stack: bool) -> tuple[Any, list[Any], list[int]]:
    """A program, random events, and places between them."""
    program, sites = made()
    random = Random(seed)
    machine = MemoryMachine(random, sites, stack=stack, by=by)
    machine.begin_threads()
    machine.run(1 + seed % 300)
    places = range(1, len(machine.events))
    return program, machine.events, sorted(random.sample(places, min(len(places), random.randint(0, 5))))


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, chosen=LEAP)
def test_leap(seed: int, chosen: tuple[str, bool, int]) -> None:
    by, stack, most = chosen
    program, events, cuts = played(seed, by, stack)
    options = LeapOptions(by=by, stack=stack, descriptors=most, list=True)
    found = in_segments(Leap(program, options), events, cuts).result()
    assert found == whole(Leap(program, options), events).result()


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, chosen=WHOMP)
def test_whomp(seed: int, chosen: tuple[str, bool, int]) -> None:
    by, stack, block = chosen
    program, events, cuts = played(seed, by, stack)
    options = WhompOptions(by=by, stack=stack, block=block)
    modules = Whomp(program, options), Whomp(program, options)
    found = in_segments(modules[0], events, cuts).result()
    assert found == whole(modules[1], events).result()
    for name in ALL:
        one, other = (module.made[name] for module in modules)
        assert one.written.tolist() == other.written.tolist()
        assert one.values.tolist() == other.values.tolist()


@pytest.mark.parametrize("compare", [False, True])
def test_leap_says_why_it_is_not_cut(compare: bool) -> None:
    module = Leap(made()[0], LeapOptions(compare=compare))
    assert (module.segments() is None) == compare == bool(module.whole_because)
