"""Integer solutions of two descriptors against all their members."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.leap import Descriptor, conflicting
from tracekit.leap.kernels.compressor import POINT
from tracekit.leap.kernels.conflicts import RESIDUES, conflicts, stream_conflicts, united
from tracekit.leap.profile import bounds_of


def rows(descriptors: list[Descriptor]) -> Any:
    made = np.zeros(len(descriptors), POINT)
    for row, (start, stride, count) in zip(made, descriptors):
        for place, name in enumerate(("object", "offset", "time")):
            row[name] = start[place]
            row[f"{name}_stride"] = stride[place] if count > 1 else 0
        row["count"] = count
    return made


def descriptors(least: int = 1, scale: int = 1, far: int = 0) -> Any:
    small = st.integers(-4, 4)
    vector = st.tuples(small, small.map(lambda each: each * scale), st.integers(0, 30))
    stride = st.tuples(small, small.map(lambda each: each * scale + far), st.integers(1, 5))
    return st.tuples(vector, stride, st.integers(least, 14)).map(
        lambda each: each if each[2] > 1 else (each[0], (0, 0, 0), 1)
    )


@settings(deadline=None, max_examples=600)
@given(descriptors(), descriptors())
def test_conflicts_of_two_descriptors(store: Descriptor, load: Descriptor) -> None:
    found = np.zeros(3, np.int64)
    count = conflicts(rows([store])[0], rows([load])[0], found)
    first, step, members = found.tolist()
    assert count == members
    assert [first + step * k for k in range(count)] == conflicting([store], load)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_conflicts_along_one_line(data: Any) -> None:
    """Parallel strides, which two random ones seldom are; also of gigabytes."""
    unit = data.draw(st.sampled_from([(0, 1), (1, 0), (1, 2), (0, 1 << 31), (3, 1 << 33)]))
    made: list[Descriptor] = []
    for _ in range(2):
        start, steps = data.draw(st.integers(-9, 9)), data.draw(st.integers(-6, 6))
        time, period = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 7))
        place = tuple(start * each for each in unit)
        count = data.draw(st.integers(1, 25 if unit[1] < 1 << 31 else 2))
        stride = (*(steps * each for each in unit), period)
        made.append(((*place, time), stride if count > 1 else (0, 0, 0), count))
    store, load = made
    found = np.zeros(3, np.int64)
    count = conflicts(rows([store])[0], rows([load])[0], found)
    assert [int(found[0] + found[1] * k) for k in range(count)] == conflicting([store], load)


PROGRESSIONS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=7)


@settings(deadline=None, max_examples=300)
@given(PROGRESSIONS)
def test_progressions_are_united(progressions: list[tuple[int, int, int]]) -> None:
    members = {first + step * k for first, step, count in progressions for k in range(count)}
    steps = {step for _, step, count in progressions if count > 1}
    room = [np.zeros(len(progressions), np.int64) for _ in range(2)]
    found = united(np.array(progressions, np.int64), len(progressions), 10_000, *room)
    assert found == len(members) if np.lcm.reduce([1, *steps]) <= RESIDUES else found >= len(members)


@settings(deadline=None, max_examples=300)
@given(st.lists(descriptors(), min_size=1, max_size=4), descriptors())
def test_a_load_conflicts_once_with_a_stream(stores: list[Descriptor], load: Descriptor) -> None:
    """Descriptors of a stream stand in the order of their times."""
    time, placed = 0, []
    for (object, offset, _), stride, count in stores:
        placed.append(((object, offset, time), stride, count))
        time += stride[2] * (count - 1) + 1
    made, found = rows([*placed, load]), np.zeros(3, np.int64)
    room = [np.zeros(len(stores), np.int64) for _ in range(2)]
    progressions = np.zeros((len(stores), 3), np.int64)
    ends = [np.array(pair) for pair in ((0, len(stores)), (len(stores), len(stores) + 1))]
    conflicts_found = stream_conflicts(made, bounds_of(made), *ends, progressions, found, *room)
    assert conflicts_found == len(conflicting(placed, load))
