"""What opens and closes windows: `call:parse#3`, `line:a.c:12`, `accesses:10M`, `any(2s,call:f)` (docs/windows.md)."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any

from tracekit.formats.errors import TracekitError

LONGEST_NAME = 255
MOST_EVENTS = 4
"""As many as a condition has places for in the pool (TK_EVENTS)."""

_UNITS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min)")
_COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kMG]?)")
_NUMBERED = re.compile(r"(.+?)(?:#(\d+))?")
_LINE = re.compile(r"(.+):(\d+)")
_GROUP = re.compile(r"(all|any)\((.*)\)")


class Kind(IntEnum):
    """What can happen, in the numbers of enum tk_happening (runtime/pool.h)."""

    TIME = 1
    CALL = 2
    RETURN = 3
    LINE = 4
    ACCESSES = 5
    LOAD = 6
    UNLOAD = 7
    INTO = 8
    END = 9
    SIGNAL = 10


OF_CODE = (Kind.CALL, Kind.RETURN, Kind.LINE, Kind.INTO)
"""Those that mark functions of the program, which then always run instrumented."""

_WORDS = {
    "call": Kind.CALL,
    "return": Kind.RETURN,
    "line": Kind.LINE,
    "accesses": Kind.ACCESSES,
    "load": Kind.LOAD,
    "unload": Kind.UNLOAD,
    "into": Kind.INTO,
    "end": Kind.END,
    "signal": Kind.SIGNAL,
}


@dataclass(frozen=True)
class Happening:
    """One thing that happens in the program."""

    kind: Kind
    name: str = ""
    """Of the function, file, library or window."""
    number: int = 0
    """TIME: nanoseconds since the start. ACCESSES: how many. CALL, RETURN, LINE, INTO: which one, from 1; 0: each."""
    line: int = 0
    """LINE: of the source, from 1. END: the window, from 0, once its name is resolved. SIGNAL: its number."""


@dataclass(frozen=True)
class Condition:
    """What has to happen: all of it, in any order, or any one; nothing is never. Such conditions nest."""

    happenings: tuple[Happening, ...] = ()
    all: bool = False
    """Whether it is more than any one of them."""
    nested: int = 0
    """Of conditions in conditions, what :attr:`enough` is; else 0."""

    @property
    def enough(self) -> int:
        """Which sets of its events are enough: bit s for set s, in which event k is bit k."""
        count = len(self.happenings)
        flat = 1 << ((1 << count) - 1) if self.all else (1 << (1 << count)) - 2
        return self.nested or (flat if count else 0)

    def of_kind(self, *kinds: Kind) -> Iterator[Happening]:
        """Those of it that are of these kinds."""
        return (each for each in self.happenings if each.kind in kinds)


NOTHING = Condition()


def condition(value: Any) -> Condition:
    """`call:f`, `any(call:f,all(2s,call:g))`, or from a file ``{"all": ["call:f", "2s"]}``.

    Raises ValueError, with the reason as its text, for anything else.
    """
    found: list[Happening] = []
    test = _test(value, found)
    if not 0 < len(found) <= MOST_EVENTS:
        raise ValueError(f"any and all take 1 to {MOST_EVENTS} events together")
    word, parts = _group(value)
    if not any(_group(part)[0] for part in parts):
        return Condition(tuple(found), word == "all" and len(parts) > 1)
    return Condition(tuple(found), True, sum(1 << seen for seen in range(1 << len(found)) if test(seen)))


def _test(value: Any, found: list[Happening]) -> Callable[[int], bool]:
    """Whether a set of events is enough, by their places among those that were found, this one's own at the end."""
    word, parts = _group(value)
    if not word:
        found.append(_happening(parts[0].strip()))
        event = 1 << (len(found) - 1)
        return lambda seen: bool(seen & event)
    tests = [_test(part, found) for part in parts]
    whole = all if word == "all" else any
    return lambda seen: whole(test(seen) for test in tests)


def _group(value: Any) -> tuple[str, list[Any]]:
    """`all` or `any` and the parts of that; of a single event nothing, and itself."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("all", "any"):
        ((word, parts),) = value.items()
        if not isinstance(parts, list) or not parts:
            raise ValueError(f"{word} needs a list")
        return word, parts
    if not isinstance(value, str):
        raise ValueError("values are texts, as '2s', or tables, as {any = ['2s', 'call:f']}")
    group = _GROUP.fullmatch(value.strip())
    return (group[1], list(split(group[2], ",".__eq__))) if group else ("", [value])


def split(text: str, separates: Callable[[str], bool]) -> Iterator[str]:
    """What some letters separate, but for those in brackets."""
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if separates(letter) and depth <= 0:
            if at > start:
                yield text[start:at]
            start = at + 1
    yield text[start:]


def _happening(text: str) -> Happening:
    word, colon, rest = text.partition(":")
    if text == "start":
        return Happening(Kind.TIME, number=1)
    if not colon:
        return Happening(Kind.TIME, number=time(text))
    kind = _WORDS.get(word)
    if kind is None or not rest:
        raise ValueError(f"there is no event {text}")
    if kind is Kind.ACCESSES:
        return Happening(kind, number=count(rest))
    if kind is Kind.SIGNAL:
        return Happening(kind, line=_signal(rest))
    name, number = _numbered(rest) if kind in OF_CODE else (rest, 0)
    line = 0
    if kind is Kind.LINE:
        place = _LINE.fullmatch(name)
        if place is None or not 0 < int(place[2]) < 1 << 31:
            raise ValueError(f"{text} is no line; write it as line:FILE:LINE")
        name, line = place[1], int(place[2])
    if len(name.encode()) > LONGEST_NAME:
        raise ValueError(f"{text} has too long a name")
    return Happening(kind, name, number, line)


def _numbered(text: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(text)
    assert match is not None
    if match[2] and not 0 < int(match[2]) < 1 << 63:
        raise ValueError("calls and lines count from 1")
    return match[1], int(match[2] or 0)


def _signal(name: str) -> int:
    try:
        return int(signal.Signals["SIG" + name.removeprefix("SIG")])
    except KeyError:
        raise ValueError(f"there is no signal {name}") from None


def time(text: str) -> int:
    """The nanoseconds of `500ms`. Raises ValueError."""
    match = _TIME.fullmatch(text)
    number = int(Fraction(match[1]) * _UNITS[match[2]]) if match and len(text) < 24 else 0
    if not 0 < number < 1 << 62:
        raise ValueError(f"{text} is no time; write one such as 500ms or 2s")
    return number


def count(text: str) -> int:
    """The accesses of `10M`. Raises ValueError."""
    match = _COUNT.fullmatch(text)
    number = int(Fraction(match[1]) * _COUNTS[match[2]]) if match and len(text) < 24 else 0
    if not 0 < number < 1 << 62:
        raise ValueError(f"{text} is no number of accesses; write one such as 1000 or 10M")
    return number


def amount(text: Any) -> tuple[int, int]:
    """A duration, `20ms` or `accesses:1M`: nanoseconds and accesses, one of them 0. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("values are texts, as '2s'")
    word, colon, rest = text.partition(":")
    return (0, count(rest)) if colon and word == "accesses" else (time(text), 0)


def wrong(text: str, why: object) -> TracekitError:
    """The error for a window's text."""
    return TracekitError(f"--window {text!r}: {why}; write it as 'on=call:NAME', 'on=2s for=1s' or 'every=1s for=20ms'")
