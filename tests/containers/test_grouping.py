"""Rows grouped by their columns, against a sorted set of tuples."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from tracekit.containers.grouping import grouped, sorting_order

KINDS = {
    "i8": st.integers(-(2**63), 2**63 - 1),  # columns of these do not fit into one number
    "<i8": st.integers(-3, 3),
    "<i4": st.integers(-(2**31), 2**31 - 1),
    "u1": st.integers(0, 255),
    "u4": st.integers(0, 2**32 - 1),
    "u8": st.integers(0, 2**63 - 1),
    "?": st.booleans(),
}
"""Type of a column -> what it holds."""


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], Sequence[npt.NDArray[np.generic]]]:
    """Rows, and their columns; these are fields of a table, as they are where groups are made."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    rows = draw(st.lists(st.tuples(*(KINDS[kind] for kind in kinds))))
    table = np.array(rows, [(f"column{number}", kind) for number, kind in enumerate(kinds)])
    return rows, [table[name] for name in table.dtype.names or ()]


@given(tables())
def test_groups_are_the_sorted_different_tuples(
    table: tuple[list[tuple[int, ...]], Sequence[npt.NDArray[np.generic]]],
) -> None:
    rows, columns = table
    keys, group = grouped(*columns)
    expected = sorted(set(rows))
    assert keys.dtype == np.int64
    assert list(zip(*keys.tolist())) == expected
    assert [expected[number] for number in group.tolist()] == rows


@given(tables())
def test_rows_are_ordered_by_their_columns(
    table: tuple[list[tuple[int, ...]], Sequence[npt.NDArray[np.generic]]],
) -> None:
    rows, columns = table
    before = [column.copy() for column in columns]
    order = sorting_order(*columns).tolist()
    assert sorted(order) == list(range(len(rows)))
    assert [rows[number] for number in order] == sorted(rows)
    assert all(np.array_equal(column, old) for column, old in zip(columns, before))
