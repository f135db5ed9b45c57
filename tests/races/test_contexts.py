"""Recursion is folded where a context is made of those of several tasks."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis.strategies as st
from hypothesis import given

from tracekit.formats.events import NONE
from tracekit.races.contexts import Step, folded, without_recursion

ROOT = Step("main", NONE, False)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.booleans()))


def named(steps: list[tuple[int, bool]]) -> list[Step]:
    """A root, then calls and loops of these functions."""
    return [
        ROOT,
        *(Step(f"{'call' if is_call else 'loop'} {function}", function, is_call) for function, is_call in steps),
    ]


def runs(steps: list[Step]) -> Iterator[int]:
    """The function of each activation: a call ends one."""
    before = None
    for step in steps[1:]:
        if before is None or before.is_call or before.function != step.function:
            yield step.function
        before = step


def test_a_call_from_inside_is_one_from_where_it_was_first() -> None:
    """Loops around the first one are left, too, and those behind it are kept."""
    steps = named([(0, True), (1, False), (1, True), (2, True), (1, False), (1, True), (3, True)])
    assert folded(steps) == named([(0, True), (1, False), (1, True), (3, True)])
    assert without_recursion(steps, 2) == named([(0, True), (1, False), (1, True)])
    assert without_recursion(steps[:3], 1) == steps[:3]


@given(STEPS)
def test_no_function_is_entered_twice(steps: list[tuple[int, bool]]) -> None:
    """Unless a step into another function is not shown; what has no recursion is as it was."""
    shown = folded(named(steps))
    calls = [step.function for step in shown if step.is_call]
    assert len(set(calls)) == len(calls)
    entered = list(runs(named(steps)))
    if len(set(entered)) == len(entered):
        assert shown == named(steps)
