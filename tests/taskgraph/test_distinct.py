"""Distinct rows against NumPy's, which sorts them."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.formats.events import NONE
from tracekit.taskgraph.distinct import MOST_PLACES, distinct


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    length=st.sampled_from((0, 1, 3, 50)),
    width=st.integers(1, 3),
    most=st.sampled_from((1, 4, 1000, MOST_PLACES + 5, NONE)),
)
def test_rows_are_those_of_numpy(seed: int, length: int, width: int, most: int) -> None:
    rng = random.Random(seed)
    columns = [[rng.choice((rng.randrange(most), 0, NONE)) for _ in range(length)] for _ in range(width)]
    table = np.array(columns, np.int64).reshape(width, length)
    rows, of = distinct([np.array(column, np.uint32) for column in columns])
    wanted, index = np.unique(table, axis=1, return_inverse=True)
    assert rows.T.tolist() == wanted.tolist() or length == 0
    assert len(rows) == wanted.shape[1]
    assert of.tolist() == index.reshape(-1).tolist()
    assert rows[of].T.tolist() == table.tolist()
