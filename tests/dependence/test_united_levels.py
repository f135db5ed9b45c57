"""Levels that fall together, against a dictionary of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.dependence.profile import LEVEL
from tracekit.dependence.united_levels import united_levels

DISTANCES = st.sampled_from((1, 2, 7, 2**62, 2**64 - 1))
ROWS = st.tuples(
    st.integers(0, 3),  # dependence
    st.integers(-1, 2),  # node
    st.booleans(),  # intra
    st.one_of(st.none(), st.tuples(DISTANCES, DISTANCES)),  # least and greatest distance, if inter
    st.integers(0, 9),  # carried
)


@given(st.lists(ROWS))
def test_levels_of_one_key_are_united(rows: list[tuple[int, int, bool, tuple[int, int] | None, int]]) -> None:
    levels = np.zeros(len(rows), LEVEL)
    expected: dict[tuple[int, int], list[int]] = {}
    for row, (dependence, node, intra, distances, carried) in zip(levels, rows):
        least, greatest = sorted(distances or (0, 0))
        row["intra"], row["inter"], row["carried"] = intra, distances is not None, carried
        row["min_distance"], row["max_distance"] = least, greatest
        if node < 0:
            continue
        known = expected.setdefault((dependence, node), [False, False, 0, 0, 0])
        known[0] |= intra
        if distances is not None:
            known[2] = min(known[2], least) if known[1] else least
            known[1], known[3] = True, max(known[3], greatest)
        known[4] += carried
    keys = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2).T
    union, place = united_levels(levels, *keys)
    names = ("intra", "inter", "min_distance", "max_distance", "carried")
    assert [tuple(row[name] for name in ("dependence", "node", *names)) for row in union] == [
        (*key, *expected[key]) for key in sorted(expected)
    ]
    order = sorted(expected)
    assert place.tolist() == [order.index((row[0], row[1])) if row[1] >= 0 else -1 for row in rows]
