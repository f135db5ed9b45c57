"""Loops and those around them, as chains: what is open follows from the innermost loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracekit.formats.events import NONE


def chain_of(loops: Any, loop: int) -> list[int]:
    """The loops around and at `loop`, outermost first."""
    chain = []
    while loop != NONE:
        chain.append(loop)
        loop = int(loops["parent"][loop])
    return chain[::-1]


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first loops two chains have in common."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
