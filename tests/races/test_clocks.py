"""Vector clocks of many chains, compared and joined in blocks, against lists of numbers."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.containers import arena
from tracekit.races.kernels.clocks import BLOCK, CLOCK, Clocks, covers, join, new_clock, set_time, time_of


def some_clock(clocks: Clocks, times: list[int]) -> int:
    """A clock that knows these times of the chains."""
    clock = int(new_clock(clocks))
    for chain, time in enumerate(times):
        if time:
            set_time(clocks, clock, chain, time)
    return clock


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    lengths=st.tuples(*[st.sampled_from((0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5))] * 2),
    later=st.integers(0, 2),
)
def test_blocks_are_compared_and_joined(seed: int, lengths: tuple[int, int], later: int) -> None:
    rng = random.Random(seed)
    one = [rng.choice((0, 3, 5)) for _ in range(lengths[0])]
    other = [rng.randrange(one[chain] + 1) if chain < len(one) else 0 for chain in range(lengths[1])]
    for _ in range(min(later, lengths[1])):
        other[rng.randrange(lengths[1])] = 4
    clocks = Clocks(arena.arena(CLOCK, 1 << 8, spare=1), arena.arena("u4", spare=1 << 12), np.zeros(1, np.int64))
    first, second = some_clock(clocks, one), some_clock(clocks, other)
    known = dict(enumerate(one))
    assert bool(covers(clocks, first, second)) == all(time <= known.get(at, 0) for at, time in enumerate(other))
    join(clocks, first, second)
    for chain in range(max(lengths)):
        expected = max(known.get(chain, 0), other[chain] if chain < len(other) else 0)
        assert int(time_of(clocks, first, chain)) == expected
