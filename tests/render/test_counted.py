"""Counts with their nouns, and that texts use them."""

from __future__ import annotations

import pytest

from tracekit.counted import counted
from tracekit.render.text import more, traces_text


@pytest.mark.parametrize(
    ("number", "words", "shown"),
    [
        (0, ("trace",), "0 traces"),
        (1, ("trace",), "1 trace"),
        (1234, ("trace",), "1,234 traces"),
        (1, ("access", "accesses"), "1 access"),
        (2, ("access", "accesses"), "2 accesses"),
    ],
)
def test_one_is_one_and_all_else_are_many(number: int, words: tuple[str, ...], shown: str) -> None:
    assert counted(number, *words) == shown


def test_what_is_left_out_and_what_was_merged() -> None:
    assert more(3, 2, "dependence") == ["... and 1 more dependence (--limit 0 shows all)"]
    assert more(5, 2, "dependence") == ["... and 3 more dependences (--limit 0 shows all)"]
    assert more(2, 2, "dependence") == []
    assert traces_text({"traces": ["a"]}) == "merged of 1 trace"
