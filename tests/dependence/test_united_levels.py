"""Levels that fall together, against a dictionary of them."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.dependence.level_rows import levels_of
from tracekit.dependence.profile import LEVEL
from tracekit.dependence.united_levels import Renamed, united_levels

DEPENDENCES, NODES = 4, 5
DISTANCES = st.sampled_from((1, 2, 7, 2**62, 2**64 - 1))
LEVELS = st.dictionaries(
    st.tuples(st.integers(0, DEPENDENCES - 1), st.integers(0, NODES - 1)),
    st.tuples(
        st.booleans(),  # intra
        st.one_of(st.none(), st.tuples(DISTANCES, DISTANCES, st.integers(1, 9))),  # if inter: distances, carried
    ).filter(any),
)
PARTS = st.tuples(
    LEVELS,
    st.lists(st.integers(-1, 2), min_size=DEPENDENCES, max_size=DEPENDENCES),  # new numbers
    st.lists(st.integers(-1, 3), min_size=NODES, max_size=NODES),
)


@given(st.lists(PARTS, min_size=1, max_size=3))
def test_levels_of_one_key_are_united(parts: list[tuple[dict[tuple[int, int], Any], list[int], list[int]]]) -> None:
    expected: dict[tuple[int, int], list[int]] = {}
    keys = []  # of what is carried, in order
    for found, dependence_of, node_of in parts:
        for (dependence, node), (intra, carried) in sorted(found.items()):
            key = dependence_of[dependence], node_of[node]
            if carried:
                keys.append(key)
            if min(key) < 0:
                continue
            known = expected.setdefault(key, [False, False, 0, 0, 0])
            known[0] |= intra
            if carried:
                least, greatest = sorted(carried[:2])
                known[2] = min(known[2], least) if known[1] else least
                known[1], known[3] = True, max(known[3], greatest)
                known[4] += carried[2]
    union, place = united_levels([renamed(*part) for part in parts])
    names = ("intra", "inter", "min_distance", "max_distance", "carried")
    assert [tuple(row[name] for name in ("dependence", "node", *names)) for row in union] == [
        (*key, *expected[key]) for key in sorted(expected)
    ]
    order = sorted(expected)
    assert place.tolist() == [order.index(key) if min(key) >= 0 else -1 for key in keys]


def renamed(found: dict[tuple[int, int], Any], dependence_of: list[int], node_of: list[int]) -> Renamed:
    rows = np.zeros(len(found), LEVEL)
    for row, ((dependence, node), (intra, carried)) in zip(rows, found.items()):
        row["dependence"], row["node"], row["intra"] = dependence, node, intra
        if carried:
            least, greatest = sorted(carried[:2])
            row["inter"], row["min_distance"], row["max_distance"], row["carried"] = True, least, greatest, carried[2]
    return Renamed(levels_of(rows, DEPENDENCES), np.array(dependence_of), np.array(node_of))
