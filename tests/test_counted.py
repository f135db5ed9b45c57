"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from tracekit.counted import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "byte", "1 byte"),
        (0, "byte", "0 bytes"),
        (1000, "trace", "1,000 traces"),
        (1, "access", "1 access"),
        (2, "access", "2 accesses"),
        (2, "touch", "2 touches"),
    ],
)
def test_a_noun_follows_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_a_plural_of_its_own() -> None:
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(1, "entry", "entries") == "1 entry"
