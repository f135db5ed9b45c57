"""Bounds of answers: a page of rows with what to ask for next, and a limit on the size of any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError

MOST = 24_000
"""Characters of an answer."""

LARGEST_PAGE = 200
"""Rows of an answer."""


def page(rows: Sequence[Any], start: int, limit: int, what: str, shown: Callable[[Any], Sequence[str]]) -> str:
    """Rows `start` (from 1) and on, at most `limit`, fewer if they would be too long; and where to go on.

    `what` names one row; `shown` gives its lines. Raises TracekitError for a start or limit that makes no sense.
    """
    if start < 1 or not 1 <= limit <= LARGEST_PAGE:
        raise TracekitError(f"start is at least 1, and limit from 1 to {LARGEST_PAGE}, not {start} and {limit}.")
    if not rows:
        return f"There is no {what}."
    if start > len(rows):
        raise TracekitError(f"There {_are(len(rows), what)}: start is at most {len(rows)}.")
    lines: list[str] = []
    size, number = 0, start
    for number in range(start, min(start + limit, len(rows) + 1)):
        first, *more = shown(rows[number - 1])
        made = [f"{number}. {first}", *(f"   {line}" for line in more)]
        size += sum(len(line) + 1 for line in made)
        if size > MOST and number > start:
            number -= 1
            break
        lines += made
    head = f"{counted(len(rows), what)}; {start} to {number}:"
    rest = len(rows) - number
    tail = [f"{rest:,} more: ask again with start={number + 1}."] if rest else []
    return bounded("\n".join([head, *lines, *tail]), "ask for fewer rows with limit")


def bounded(text: str, remedy: str) -> str:
    """A text, cut off at MOST characters, and then what to do."""
    text = text.rstrip("\n")
    if len(text) <= MOST:
        return text
    cut = text[:MOST].rpartition("\n")[0] or text[:MOST]
    return f"{cut}\n... {len(text) - len(cut):,} more characters: {remedy}."


def _are(number: int, what: str) -> str:
    return f"{'is' if number == 1 else 'are'} {counted(number, what)}"
