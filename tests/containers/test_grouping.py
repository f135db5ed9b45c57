"""Rows grouped by their columns, against a sorted set of tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.containers.grouping import grouped

NARROW = st.integers(-3, 3)
WIDE = st.integers(-(2**63), 2**63 - 1)
"""Columns of these do not fit into one number."""


@given(st.data())
def test_groups_are_the_sorted_different_tuples(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from((NARROW, st.integers(0, 2**31), WIDE)), min_size=1, max_size=5))
    rows = data.draw(st.lists(st.tuples(*kinds)))
    columns = [np.array([row[number] for row in rows], np.int64) for number in range(len(kinds))]
    keys, group = grouped(*columns)
    expected = sorted(set(rows))
    assert list(zip(*keys.tolist())) == expected
    assert [expected[number] for number in group.tolist()] == rows
