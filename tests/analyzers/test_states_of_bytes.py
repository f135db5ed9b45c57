"""The states of bytes that memory_errors keeps, against an array with an element for each byte."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analyzers.test_object_lifetime import random_runs
from tracekit.containers.kernels.granules import WIDE_BITS
from tracekit.containers.kernels.shadow import only_row
from tracekit.jit.kernel import kernel
from tracekit.memory_errors.kernels.states import (
    BESIDE,
    FREED,
    UNKNOWN,
    UNWRITTEN,
    WRITTEN,
    assign,
    state_at,
    worst_of,
    write,
)
from tracekit.memory_errors.rules import empty_state

GRANULE = 1 << WIDE_BITS
BASE = 64 * GRANULE
MOST = 4 * GRANULE
"""So many bytes from BASE on are looked at."""


@kernel
def give(states: Any, address: int, size: int, state: int) -> None:
    assign(states, address, size, state)


@kernel
def look(states: Any, address: int) -> int:
    return int(state_at(states, address))


@kernel
def take_store(states: Any, address: int, size: int) -> int:
    """What a store that is no error does; the greatest state that its bytes had."""
    row, parts = only_row(states.words, address, size)
    found = worst_of(states, row, address, size)
    if found == UNWRITTEN:
        write(states, row, parts, address, size)
    return int(found)


PLACES = st.sampled_from([0, GRANULE, 2 * GRANULE, 3 * GRANULE - 16]) | st.integers(0, MOST - 1)
GIVEN = st.tuples(PLACES, st.sampled_from([8, 60, GRANULE, 2 * GRANULE, 3 * GRANULE]) | st.integers(1, 40))
STORED = st.tuples(PLACES, st.sampled_from([1, 2, 4, 8, 16, 200]) | st.integers(1, 20))


@settings(deadline=None, max_examples=80)
@example([((0, GRANULE), UNWRITTEN), ((8, 8), None)])  # what is unwritten is the granule, and no word of it
@given(
    st.lists(
        st.tuples(GIVEN, st.sampled_from([UNKNOWN, WRITTEN, UNWRITTEN, UNWRITTEN, BESIDE, FREED]))
        | st.tuples(STORED, st.none()),
        max_size=30,
    )
)
def test_stores_change_what_was_unwritten_alone(steps: list[tuple[tuple[int, int], int | None]]) -> None:
    states = empty_state(random_runs(1, 1, 1)[0].program, recorded=()).states
    known = np.zeros(MOST, np.int64)
    for (place, size), state in steps:
        size = min(size, MOST - place)
        bytes_ = known[place : place + size]
        if state is not None:
            give(states, BASE + place, size, state)
            bytes_[:] = state
            continue
        assert take_store(states, BASE + place, size) == bytes_.max()
        if bytes_.max() == UNWRITTEN:
            bytes_[bytes_ == UNWRITTEN] = WRITTEN
        for near in range(max(place - 9, 0), min(place + size + 9, MOST)):
            assert look(states, BASE + near) == known[near]
