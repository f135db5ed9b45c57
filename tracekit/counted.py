"""Numbers with their nouns, for text and messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 trace`, `1,000 traces`; `plural` where it does not end in s alone."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
