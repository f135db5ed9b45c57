"""Calls kernels; test_kernel.py runs it in processes of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.jit.caller import Caller
from tracekit.jit.kernel import kernel


class Two(NamedTuple):
    """A state."""

    one: Any
    other: Any


@kernel
def summed(state: Any, table: Any, nothing: Any) -> Any:
    """Add up all of it."""
    total = 0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            total += table[row, column]
    if nothing is None:
        total += 1000
    return total + state.one[0] + state.other.one[0]


def run() -> None:
    """Raise AssertionError if one of the results is wrong."""
    table = np.arange(12).reshape(3, 4)
    state = Two(np.array([10]), Two(np.array([100]), None))
    caller = Caller(summed)
    for arranged in (table, table.T, table[:, ::2], np.asfortranarray(table)):
        expected = arranged.sum() + 1110
        assert summed(state, arranged, None) == caller(state, arranged, None) == expected
    state.one[0] = 20
    assert caller(state, table, None) == table.sum() + 1120
    assert caller(state._replace(one=np.array([30])), table, None) == table.sum() + 1130
    table.flags.writeable = False
    assert caller(state, table, None) == table.sum() + 1120
