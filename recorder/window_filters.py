"""What is recorded inside windows: `record --only` and `--without`, and their tables in the file of `--windows`.

The runtime decides by function, file, image and thread (runtime/preload_filter.c), the collector by kind of event
(trimming.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.recorder.window_events import LONGEST_NAME

MOST = 64
"""As many as the pool has places for (TK_FILTERS)."""


class Of(IntEnum):
    """What a filter chooses by, in the numbers of runtime/pool.h."""

    FUNCTION = 1
    FILE = 2
    LIBRARY = 3
    THREAD = 4
    EVENT = 5  # not the runtime's


_WORDS = {
    "functions": Of.FUNCTION,
    "files": Of.FILE,
    "libraries": Of.LIBRARY,
    "threads": Of.THREAD,
    "events": Of.EVENT,
}
EVENTS = ("loads", "stores", "values", "pointers")
"""What of the program's events can be left out."""
IN_ALL = 16
"""The place of a filter that holds in all windows (TK_RULES)."""


@dataclass(frozen=True)
class Filter:
    """One choice: of what is named so only, or of everything but that."""

    of: Of
    name: str = ""
    """Of the function, file or library; `*` is any text."""
    number: int = 0
    """Of the thread: its stream's; the main thread has 0."""
    excludes: bool = False
    rule: int = IN_ALL
    """The place of the rule in whose windows it holds, from 0."""

    def __str__(self) -> str:
        word = next(word for word, of in _WORDS.items() if of is self.of)
        text = f"{'without' if self.excludes else 'only'} {word}={self.number if self.of is Of.THREAD else self.name}"
        return text if self.rule == IN_ALL else f"{text} in windows by rule {self.rule + 1}"


def parse(text: str, excludes: bool) -> list[Filter]:
    """`functions=parse,lex* files=src/*.c threads=0,2`. Raises TracekitError for anything else."""
    option = "--without" if excludes else "--only"
    found: list[Filter] = []
    for word in text.split():
        key, _, values = word.partition("=")
        found += _of(key, values.split(","), excludes, f"{option} {text!r}")
    if not found:
        raise TracekitError(f"{option} {text!r} names nothing; write it as 'functions=parse,lex* files=src/*.c'")
    return found


def of_tables(tables: dict[str, Any], what: str, of_window: bool = False) -> list[Filter]:
    """Those of the tables `only` and `without`, which are taken out of ``tables``. Raises TracekitError as below.

    ``of_window``: they are a window's own; then kinds of events cannot be chosen by them.
    """
    found = [
        each
        for key in ("only", "without")
        for each in of_table(tables.pop(key, {}), key == "without", f"{what}, {key}")
    ]
    if of_window and any(each.of is Of.EVENT for each in found):
        raise TracekitError(f"{what}: events are chosen for all windows; name them in [only] or [without]")
    return found


def of_table(table: Any, excludes: bool, what: str) -> list[Filter]:
    """The same of a table of lists. Raises TracekitError if it is none."""
    if not isinstance(table, Mapping):
        raise TracekitError(f"{what} is no table of lists, as functions = ['parse']")
    found: list[Filter] = []
    for key, values in table.items():
        if not isinstance(values, list) or not all(isinstance(value, str | int) for value in values):
            raise TracekitError(f"{what}: {key} is no list of texts")
        found += _of(key, map(str, values), excludes, what)
    return found


def _of(key: str, values: Iterable[str], excludes: bool, what: str) -> Iterator[Filter]:
    of = _WORDS.get(key)
    if of is None:
        raise TracekitError(f"{what}: there is no {key!r}; choose by {', '.join(_WORDS)}")
    for value in values:
        if of is Of.THREAD:
            if not (value.isascii() and value.isdecimal() and len(value) < 10):
                raise TracekitError(
                    f"{what}: threads are numbers, from 0 in the order of their creation, not {value!r}"
                )
            yield Filter(of, number=int(value), excludes=excludes)
        elif of is Of.EVENT and value not in EVENTS:
            raise TracekitError(f"{what}: events are {', '.join(EVENTS)}, not {value!r}")
        elif not value or len(value.encode()) > LONGEST_NAME:
            raise TracekitError(f"{what}: {value!r} is no name")
        else:
            yield Filter(of, value + "*" if of is Of.FILE and value.endswith("/") else value, excludes=excludes)


def together(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """All of them. Raises TracekitError if there are more than the recorder has places for."""
    found = tuple(filters)
    if len(found) > MOST:
        raise TracekitError(
            f"{len(found)} names that choose what is recorded are more than the {MOST} that there can be"
        )
    return found


def of_code(filters: Iterable[Filter]) -> list[Filter]:
    """Those that the runtime decides by."""
    return [each for each in filters if each.of is not Of.EVENT]


def left_out(filters: Iterable[Filter]) -> frozenset[str]:
    """The kinds of events that are not recorded (names of :data:`EVENTS`)."""
    chosen = [each for each in filters if each.of is Of.EVENT]
    only = {each.name for each in chosen if not each.excludes}
    without = {each.name for each in chosen if each.excludes}
    return frozenset(without | (set(EVENTS) - only if only else set()))
