"""The events that modules handle: for which of them code of paths calls functions, and how these are called."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.formats.events import CODE

CONSTANT_SIZES = (1, 2, 4, 8, 16, 32)
"""Sizes of accesses that callbacks are specialised to."""


@dataclass(frozen=True)
class HandledEvents:
    """The events that modules have a function for: ``@on_<code>(machine, subject, address, size, value)``."""

    codes: frozenset[int]
    sized: frozenset[int]
    """Those with a function for each of CONSTANT_SIZES: ``@on_<code>_<size>(machine, subject, address, value)``."""
    has_budget: bool
    """Whether modules keep something of a stream that events can make longer."""
    ranges: frozenset[int] = frozenset()
    """Those with a function for many of one instruction (range_code.range_name), if there are any and modules do not
    want to know of each iteration."""
    ordered: bool = False
    """Whether their order may always matter to a module."""
    loads_ordered: bool = False
    """Whether that of loads of the same byte matters, too."""
    limited: bool = False
    """Whether there is a function ``@unordered(machine)``: how many accesses may come in any order."""
    iterated: bool = False
    """Whether there is a function ``@iterated(machine, loop, count)``: so many iterations are over."""
    timed: bool = False
    """Whether there is a function ``@passed(machine, count)``: so many accesses are over."""

    def __contains__(self, name: str) -> bool:
        return CODE[name] in self.codes


def handler_name(code: int, size: int | None = None) -> str:
    """The function for an event: of any size, or of one."""
    return f"on_{code}" if size is None else f"on_{code}_{size}"
