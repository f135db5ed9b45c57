"""Which call sites may read a clock, at any depth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag
from tracekit.program.callees import Callees
from tracekit.program.clocks import clock_calls

FUNCTIONS = 6
SITES = st.lists(
    st.tuples(st.integers(0, FUNCTIONS), st.booleans(), st.lists(st.integers(0, FUNCTIONS - 1), max_size=3)),
    max_size=12,
)
"""Of each call site its function (FUNCTIONS: none), whether it reads a clock itself, and what it may enter."""


def program(sites: list[tuple[int, bool, list[int]]]) -> Any:
    calls = np.zeros(len(sites), [("flags", "<u4"), ("block", "<u4")])
    calls["flags"] = [CallFlag.PURE | CallFlag.CLOCK if clock else 0 for _, clock, _ in sites]
    calls["block"] = [NONE if function == FUNCTIONS else function for function, _, _ in sites]
    blocks = np.zeros(FUNCTIONS, [("function", "<u4")])
    blocks["function"] = np.arange(FUNCTIONS)
    count = np.array([len(entered) for _, _, entered in sites], np.uint32)
    callees = Callees(
        first=(np.cumsum(count) - count).astype(np.uint32),
        count=count,
        functions=np.array([row for _, _, entered in sites for row in entered], np.uint32),
    )
    return SimpleNamespace(calls=calls, blocks=blocks, callees=callees, functions=np.zeros(FUNCTIONS))


@given(SITES)
def test_a_call_reads_a_clock_if_something_below_it_does(sites: list[tuple[int, bool, list[int]]]) -> None:
    def reads(site: int, seen: frozenset[int]) -> bool:
        _, clock, entered = sites[site]
        below = [row for row, (function, _, _) in enumerate(sites) if function in entered and row not in seen]
        return clock or any(reads(row, seen | {row}) for row in below)

    expected = [reads(site, frozenset({site})) for site in range(len(sites))]
    assert clock_calls(program(sites)).tolist() == expected
