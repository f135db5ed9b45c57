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

GROUPS = st.sampled_from(["site", "caller", "context"])


def played(seed: int, by: str, stack: bool) -> tuple[Any, list[Any], list[int]]:
    """A program, random events, and places between them."""
    program, sites = made()
    random = Random(seed)
    machine = MemoryMachine(random, sites, stack=stack, by=by)
    machine.begin_threads()
    machine.run(1 + seed % 300)
    share = random.choice([0.02, 0.2, 0.7])
    return program, machine.events, [place for place in range(1, len(machine.events)) if random.random() < share]


@settings(deadline=None, max_examples=120)
@given(seed=st.integers(0, 2**32), by=GROUPS, stack=st.booleans(), most=st.sampled_from([1, 2, 3, 5, 30]))
def test_leap(seed: int, by: str, stack: bool, most: int) -> None:
    program, events, cuts = played(seed, by, stack)
    options = LeapOptions(by=by, stack=stack, descriptors=most, list=True)
    found = in_segments(Leap(program, options), events, cuts).result()
    assert found == whole(Leap(program, options), events).result()


@settings(deadline=None, max_examples=120)
@given(seed=st.integers(0, 2**32), by=GROUPS, stack=st.booleans(), block=st.sampled_from([1, 2, 7, 30, 1 << 20]))
def test_whomp(seed: int, by: str, stack: bool, block: int) -> None:
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
