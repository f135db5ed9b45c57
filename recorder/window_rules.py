"""Windows that open by themselves: what `record --window`, `--sample` and `--windows FILE` say (docs/windows.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.recorder import processes, window_filters
from tracekit.recorder.window_events import (
    NOTHING,
    OF_CODE,
    Condition,
    Happening,
    Kind,
    amount,
    condition,
    split,
    wrong,
)
from tracekit.recorder.window_filters import Filter

MOST = 16
"""As many rules as the pool has places for (TK_RULES)."""
MOST_OF_CODE = 30
"""As many events of code as functions can be marked for (tk_activation_layout.watched)."""

_KEYS = ("on", "till", "for", "every", "name")


@dataclass(frozen=True)
class WindowRule:
    """When a window opens by itself, and how long it stays open; times in nanoseconds."""

    on: Condition = NOTHING
    """What opens it; nothing: the time `begin`."""
    till: Condition = NOTHING
    """What closes it; nothing: the return of the call that opened it, after `length`, or never."""
    begin: int = 0
    """When it opens, since the program's start, if `on` is nothing."""
    length: int = 0
    """0: it does not end after a time."""
    every: int = 0
    """It opens again after so long; 0: once."""
    accesses: int = 0
    """It ends after so many loads and stores; 0: it does not."""
    every_accesses: int = 0
    """It opens again after so many loads and stores; 0: it does not."""
    name: str = ""
    """By which `end:` calls it."""
    filters: tuple[Filter, ...] = ()
    """What is recorded in its windows, beside what holds in all."""

    @property
    def is_of_code(self) -> bool:
        """Whether it waits for something in the program's own functions."""
        return any(True for _ in self.on.of_kind(*OF_CODE))


ALWAYS = WindowRule(begin=1)
"""The whole run."""


def parse(text: str) -> WindowRule:
    """The rule `on=call:parse#3`, `on=2s for=500ms`, `every=1s for=20ms`. Raises TracekitError for anything else."""
    parts: dict[str, str] = {}
    for word in split(text.strip(), str.isspace):
        key, _, value = word.partition("=")
        if not re.fullmatch(r"\w+", key) or key in parts or not value:
            raise wrong(text, f"{word} is no part of a window")
        parts[key] = value
    return of_parts(parts, text)


def of_parts(parts: Mapping[str, Any], text: str) -> WindowRule:
    """The rule of parts by name; `text` is what errors call it. Raises TracekitError if they make none."""
    try:
        return _rule(parts)
    except ValueError as error:
        raise wrong(text, error) from None


def _rule(parts: Mapping[str, Any]) -> WindowRule:
    for key in parts:
        if key not in _KEYS:
            raise ValueError(f"there is no {key}")
    name = parts.get("name", "")
    if not isinstance(name, str) or (parts.keys() <= {"name"}):
        raise ValueError("it says nothing")
    on = condition(parts["on"]) if "on" in parts else NOTHING
    till = condition(parts["till"]) if "till" in parts else NOTHING
    length, accesses = amount(parts["for"]) if "for" in parts else (0, 0)
    if "for" in parts and "till" in parts:
        raise ValueError("it has both for= and till=")
    if "every" in parts:
        return _again(parts["every"], on, till, length, accesses, name)
    if _is_time(on) and not till.all and all(each.kind is Kind.TIME for each in till.happenings) and not accesses:
        return _by_time(on, till, length, name)
    if till.happenings == tuple(Happening(Kind.RETURN, each.name) for each in _called(on)):
        till = NOTHING  # that call's return, not another's
    if counts := [each.number for each in till.of_kind(Kind.ACCESSES)]:
        if till.all:
            raise ValueError("accesses: of the window is no part of till=all(...)")
        accesses = min(counts)
        till = Condition(tuple(each for each in till.happenings if each.kind is not Kind.ACCESSES))
    return WindowRule(_start(on), till, length=length, accesses=accesses, name=name)


def _start(on: Condition) -> Condition:
    return on if on.happenings else Condition((Happening(Kind.TIME, number=1),))


def _called(on: Condition) -> tuple[Happening, ...]:
    """The call that alone opens the window, if that is so."""
    return tuple(on.of_kind(Kind.CALL)) if len(on.happenings) == 1 else ()


def _is_time(on: Condition) -> bool:
    return not on.all and len(on.happenings) < 2 and all(each.kind is Kind.TIME for each in on.happenings)


def _by_time(on: Condition, till: Condition, length: int, name: str) -> WindowRule:
    begin = on.happenings[0].number if on.happenings else 0
    if till.happenings:
        length = min(each.number for each in till.happenings) - begin
        if length <= 0:
            raise ValueError("it ends before it begins")
    if begin == 1 and length:
        begin = 0
    return WindowRule(begin=begin if length else max(begin, 1), length=length, name=name)


def _again(every: Any, on: Condition, till: Condition, length: int, accesses: int, name: str) -> WindowRule:
    period, number = amount(every)
    if till.happenings or not (0 < length <= period or 0 < accesses <= number):
        raise ValueError("every= needs a for= that is no longer")
    if not on.happenings:
        on = Condition((Happening(Kind.ACCESSES),)) if number else on  # from the first one on
    if number and tuple(each.kind for each in on.happenings) == (Kind.ACCESSES,):
        return WindowRule(on, accesses=accesses, every_accesses=number, name=name)
    if number or not _is_time(on):
        raise ValueError("every= is for windows by time, or by number of accesses")
    begin = on.happenings[0].number if on.happenings else 0
    return WindowRule(begin=0 if begin == 1 else begin, length=length, every=period, name=name)


def sampled(text: str) -> WindowRule:
    """`2%` of the time: a window in every second. Raises TracekitError for what is no share."""
    digits = text.removesuffix("%")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", digits) or digits == text or not 0 < Fraction(digits) <= 100:
        raise TracekitError(f"--sample takes a share of the time, as 2%, not {text!r}")
    return WindowRule(length=int(Fraction(digits) * 10_000_000), every=1_000_000_000)


@dataclass(frozen=True)
class Asked:
    """What a file of windows says."""

    windows: list[WindowRule] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    processes: frozenset[int] = frozenset()


def read(path: str) -> Asked:
    """A TOML file: a table `[[window]]` for each window, tables `only` and `without`, and the list `processes`.

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
    filters = window_filters.of_tables(tables, path)
    if tables or not isinstance(windows, list) or not all(isinstance(window, dict) for window in windows):
        raise TracekitError(f"{path} has other things than tables [[window]], only and without, and the list processes")
    rules = [_of_table(window, f"{path}, window {number}") for number, window in enumerate(windows, 1)]
    return Asked(rules, filters, chosen)


def _of_table(window: dict[str, Any], what: str) -> WindowRule:
    filters = window_filters.of_tables(window, what, of_window=True)
    return replace(of_parts(window, what), filters=tuple(filters))


def all_filters(rules: Iterable[WindowRule], filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Those of all windows, and those that rules have of their own, each with its rule's place.

    Raises TracekitError if there are more than the recorder has places for.
    """
    own = [replace(each, rule=place) for place, rule in enumerate(rules) for each in rule.filters]
    return window_filters.together([*filters, *own])


def together(rules: Iterable[WindowRule]) -> tuple[WindowRule, ...]:
    """All of them, the windows that `end:` names resolved to their places.

    Raises TracekitError if there are more than the recorder has places for, or one names a window that is none.
    """
    found = tuple(rules)
    if len(found) > MOST:
        raise TracekitError(f"{len(found)} windows are more than the {MOST} that one recording can have")
    if sum(1 for rule in found for each in (rule.on, rule.till) for _ in each.of_kind(*OF_CODE)) > MOST_OF_CODE:
        raise TracekitError(f"windows can name {MOST_OF_CODE} calls, returns, lines and libraries together")
    places = {rule.name: place for place, rule in enumerate(found) if rule.name}
    places |= {str(place + 1): place for place in range(len(found))}
    return tuple(replace(rule, on=_resolved(rule.on, places), till=_resolved(rule.till, places)) for rule in found)


def _resolved(given: Condition, places: Mapping[str, int]) -> Condition:
    for each in given.of_kind(Kind.END):
        if each.name not in places:
            raise TracekitError(f"there is no window {each.name}: name one by name=NAME, or count them from 1")
    return replace(
        given,
        happenings=tuple(
            replace(each, line=places[each.name]) if each.kind is Kind.END else each for each in given.happenings
        ),
    )
