"""Callbacks for many accesses at once: those of one instruction in consecutive iterations of a loop.

Besides ``load`` and ``store`` a module may have ``loads`` and ``stores``. One call of these stands for `count` calls of
the former, with the addresses ``address + k * step``; the module's result has to be the same either way. They are
called where the order of the loop's accesses allows it: accesses of different instructions may be exchanged, but never
if both touch the same byte and one of them stores it. A module to which the order never matters, or only at times, says
so by ``unordered``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType

EVENT_OF: Mapping[str, str] = MappingProxyType({"loads": "load", "stores": "store"})
"""Callback for many accesses -> the event that it is about."""

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "instruction": "the load or store",
        "address": "of the first access",
        "size": "bytes of each access",
        "step": "bytes from the address of one access to that of the next: of any sign, or 0",
        "count": "how many accesses there are, at least one",
    }
)
"""What ``loads`` and ``stores`` may ask for."""

SERVICES: Mapping[str, str] = MappingProxyType(
    {
        "options": "as in any callback",
        "stream": "as in any callback",
        "time": "that of the first access",
        "period": "from the time of one access to that of the next",
    }
)
"""... and besides."""

UNORDERED = "unordered"
"""The callback that says how many of the next loads and stores, of any instruction, may come in any order."""
UNORDERED_PARAMETERS = frozenset({"time", "options"})

NAMES = frozenset({*EVENT_OF, UNORDERED})

ENDLESS = 1 << 62
"""Returned by ``unordered``: all of them."""


def wrong(callbacks: Mapping[str, Callable[..., None]], ranges: Mapping[str, Callable[..., object]]) -> str | None:
    """What is wrong with a module's callbacks for many accesses: a sentence without its subject; None if nothing is.

    callbacks: those for single events, by event.
    """
    known = {**dict.fromkeys(EVENT_OF, frozenset({*FIELDS, *SERVICES})), UNORDERED: UNORDERED_PARAMETERS}
    for name, function in ranges.items():
        if name not in known:
            return f"{name} is never called: for many accesses there are {', '.join(sorted(known))}"
        parameters = list(inspect.signature(function).parameters)
        if not parameters:
            return f"{name} takes no state; its first parameter is the state"
        for parameter in parameters[1:]:
            if parameter not in known[name]:
                return f"{name} asks for {parameter!r}; there are {', '.join(sorted(known[name]))}"
        if name in EVENT_OF and EVENT_OF[name] not in callbacks:
            return f"{name} stands for many calls of {EVENT_OF[name]}, which there is not"
    if UNORDERED in ranges and not ranges.keys() & EVENT_OF.keys():
        return f"{UNORDERED} is never called: there are no loads and no stores"
    services = {name for function in callbacks.values() for name in inspect.signature(function).parameters}
    if ranges and services & {"context", "levels"}:
        return (
            f"{next(iter(ranges))} is never called: its other callbacks ask for context or levels, which move between"
        )
    return None


def is_for_runs(callbacks: Mapping[str, Callable[..., None]], ranges: Mapping[str, Callable[..., object]]) -> bool:
    """Whether many accesses of a loop can go to a module at once: it wants to know of nothing else in the loop."""
    services = {name for function in callbacks.values() for name in inspect.signature(function).parameters}
    one_by_one = [name for name, event in EVENT_OF.items() if event in callbacks and name not in ranges]
    return not one_by_one and "loop_iteration" not in callbacks and not services & {"context", "levels"}
