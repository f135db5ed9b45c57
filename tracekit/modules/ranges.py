"""Callbacks for many accesses at once: those of one instruction in consecutive iterations of a loop.

Besides ``load`` and ``store`` a module may have ``loads`` and ``stores``. One call of these stands for `count` calls of
the former, with the addresses ``address + k * step``; the module's result has to be the same either way. They are
called where the order of the loop's accesses allows it: accesses of different instructions may be exchanged, but never
if both touch the same byte and one of them stores it. A module to which the order never matters, or only at times, says
so by ``unordered``.

A module that wants to know of the loop's iterations has ``iterations``, too: one call of it stands for `count` calls of
``loop_iteration``, and comes behind all accesses of these iterations. What ``loads`` and ``stores`` are given as
``levels`` stands at the first of the accesses; before each of the others the innermost loop iterates once, and nothing
else moves (contexts/kernels/iterations.py). For a module that asks for it loads of the same byte keep their order, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType

EVENT_OF: Mapping[str, str] = MappingProxyType({"loads": "load", "stores": "store"})
"""Callback for many accesses -> the event that it is about."""
ITERATIONS = "iterations"
"""The callback for many iterations."""

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
        "levels": "as in any callback, at the first access",
        "context": "as in any callback",
    }
)
"""... and besides."""

UNORDERED = "unordered"
"""The callback that says how many of the next loads and stores, of any instruction, may come in any order."""
UNORDERED_PARAMETERS = frozenset({"time", "options"})
ITERATIONS_PARAMETERS = frozenset({"loop", "count", "stream", "options"})

NAMES = frozenset({*EVENT_OF, UNORDERED, ITERATIONS})

ENDLESS = 1 << 62
"""Returned by ``unordered``: all of them."""


def wrong(callbacks: Mapping[str, Callable[..., None]], ranges: Mapping[str, Callable[..., object]]) -> str | None:
    """What is wrong with a module's callbacks for many accesses: a sentence without its subject; None if nothing is.

    callbacks: those for single events, by event.
    """
    known = {
        **dict.fromkeys(EVENT_OF, frozenset({*FIELDS, *SERVICES})),
        UNORDERED: UNORDERED_PARAMETERS,
        ITERATIONS: ITERATIONS_PARAMETERS,
    }
    stands_for = {**EVENT_OF, ITERATIONS: "loop_iteration"}
    for name, function in ranges.items():
        if name not in known:
            return f"{name} is never called: for many accesses there are {', '.join(sorted(known))}"
        parameters = list(inspect.signature(function).parameters)
        if not parameters:
            return f"{name} takes no state; its first parameter is the state"
        for parameter in parameters[1:]:
            if parameter not in known[name]:
                return f"{name} asks for {parameter!r}; there are {', '.join(sorted(known[name]))}"
        if name in stands_for and stands_for[name] not in callbacks:
            return f"{name} stands for many calls of {stands_for[name]}, which there is not"
    for name in (UNORDERED, ITERATIONS):
        if name in ranges and not ranges.keys() & EVENT_OF.keys():
            return f"{name} is never called: there are no loads and no stores"
    return None


def is_for_runs(callbacks: Mapping[str, Callable[..., None]], ranges: Mapping[str, Callable[..., object]]) -> bool:
    """Whether many accesses of a loop can go to a module at once: it wants to know of nothing else in the loop."""
    stands_for = {**EVENT_OF, ITERATIONS: "loop_iteration"}
    return all(name in ranges for name, event in stands_for.items() if event in callbacks)
