"""Windows that open by themselves: what `record --window`, `--sample` and `--windows FILE` say (docs/windows.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.recorder import processes

MOST = 16
"""As many rules as the pool has places for (TK_RULES)."""
LONGEST_NAME = 255

_UNITS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min)")
_CALL = re.compile(r"call:(.+?)(?:#(\d+))?")
_KEYS = ("on", "till", "for", "every")


@dataclass(frozen=True)
class WindowRule:
    """When a window opens by itself, and how long it stays open; times in nanoseconds."""

    function: str = ""
    """It opens with a call of this function; empty: at a time."""
    call: int = 0
    """The number of that call, from 1; 0: each that comes while it is closed."""
    begin: int = 0
    """When it opens, since the program's start."""
    length: int = 0
    """0: to the return of the call, or the end of the run."""
    every: int = 0
    """It opens again after so long; 0: once."""


def parse(text: str) -> WindowRule:
    """The rule `on=call:parse#3`, `on=2s for=500ms`, `every=1s for=20ms`. Raises TracekitError for anything else."""
    parts: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or key in parts:
            raise _wrong(text, f"{word} is no part of a window")
        parts[key] = value
    return of_parts(parts, text)


def of_parts(parts: Mapping[str, Any], text: str) -> WindowRule:
    """The rule of parts by name; `text` is what errors call it. Raises TracekitError if they make none."""
    for key in parts:
        if key not in _KEYS:
            raise _wrong(text, f"there is no {key}")
    if not all(isinstance(value, str) for value in parts.values()):
        raise _wrong(text, "values are texts, as '2s'")
    if str(parts.get("on", "")).startswith("call:"):
        return _of_call(parts, text)
    begin = 0 if parts.get("on", "start") == "start" else _time(parts["on"], text)
    length = _length(parts, begin, text)
    every = _time(parts["every"], text) if "every" in parts else 0
    if every and not 0 < length <= every:
        raise _wrong(text, "every= needs a for= that is no longer")
    if not parts:
        raise _wrong(text, "it says nothing")
    return WindowRule(begin=begin if length else max(begin, 1), length=length, every=every)


def _of_call(parts: Mapping[str, str], text: str) -> WindowRule:
    match = _CALL.fullmatch(parts["on"])
    if match is None or len(match[1].encode()) > LONGEST_NAME:
        raise _wrong(text, f"{parts['on']} names no call")
    function, number = match[1], int(match[2] or 0)
    if match[2] and not 0 < number < 1 << 63:
        raise _wrong(text, "calls count from 1")
    if "every" in parts:
        raise _wrong(text, "every= is for windows by time")
    if parts.get("till", f"return:{function}") != f"return:{function}":
        raise _wrong(text, f"a window of a call ends with till=return:{function}, or after for=TIME")
    return WindowRule(function, number, length=_time(parts["for"], text) if "for" in parts else 0)


def _length(parts: Mapping[str, str], begin: int, text: str) -> int:
    if "for" in parts and "till" in parts:
        raise _wrong(text, "it has both for= and till=")
    if "for" in parts:
        return _time(parts["for"], text)
    if "till" not in parts:
        return 0
    end = _time(parts["till"], text)
    if end <= begin:
        raise _wrong(text, "it ends before it begins")
    return end - begin


def _time(value: str, text: str) -> int:
    match = _TIME.fullmatch(value)
    time = int(Fraction(match[1]) * _UNITS[match[2]]) if match and len(value) < 24 else 0
    if not 0 < time < 1 << 62:
        raise _wrong(text, f"{value} is no time; write one such as 500ms or 2s")
    return time


def sampled(text: str) -> WindowRule:
    """`2%` of the time: a window in every second. Raises TracekitError for what is no share."""
    digits = text.removesuffix("%")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", digits) or digits == text or not 0 < Fraction(digits) <= 100:
        raise TracekitError(f"--sample takes a share of the time, as 2%, not {text!r}")
    return WindowRule(length=int(Fraction(digits) * 10_000_000), every=1_000_000_000)


def read(path: str) -> tuple[list[WindowRule], frozenset[int]]:
    """The windows of a TOML file, a table `[[window]]` each, and the numbers of its list `processes`, if it has one.

    Raises TracekitError if it cannot be read, or is none.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise TracekitError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TracekitError(f"{path} is no TOML: {error}") from None
    windows = tables.pop("window", [])
    chosen = processes.of_table(tables.pop("processes"), path) if "processes" in tables else frozenset()
    if tables or not isinstance(windows, list) or not all(isinstance(window, dict) for window in windows):
        raise TracekitError(f"{path} has other things than tables [[window]] and the list processes")
    return [of_parts(window, f"{path}, window {number}") for number, window in enumerate(windows, 1)], chosen


def together(rules: Iterable[WindowRule]) -> tuple[WindowRule, ...]:
    """All of them. Raises TracekitError if there are more than the recorder has places for."""
    found = tuple(rules)
    if len(found) > MOST:
        raise TracekitError(f"{len(found)} windows are more than the {MOST} that one recording can have")
    return found


def _wrong(text: str, why: str) -> TracekitError:
    return TracekitError(f"--window {text!r}: {why}; write it as 'on=call:NAME', 'on=2s for=1s' or 'every=1s for=20ms'")
