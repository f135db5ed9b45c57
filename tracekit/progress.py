"""What long work says of itself while it runs: a list of the steps that it is in.

The engine opens a step around a pass over a trace and around a compilation; it draws nothing and calls nobody. Whoever
shows progress (``tracekit.commands.progress``) looks at :func:`steps` from a thread of its own, so that the loop of a
replay pays nothing for it. A process works on one thing at a time, so there is one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Step:
    """A part of the work."""

    what: str
    """What is done, as a user would say it: ``replaying``."""
    total: int | None
    """The position at its end; None if nobody knows how far it is."""
    position: Callable[[], int]
    """How far it is, from 0 to `total`; called from another thread, to which it may seem to go back for a moment."""


_open: list[Step] = []
"""The steps under way, each inside those before it; opened and closed from any thread."""


@contextmanager
def step(what: str, total: int | None = None, position: Callable[[], int] = int) -> Iterator[None]:
    """While the block runs, :func:`steps` shows this step."""
    opened = Step(what, total, position)
    _open.append(opened)
    try:
        yield
    finally:
        _open.remove(opened)


def steps() -> tuple[Step, ...]:
    """The steps under way now, the innermost last."""
    return tuple(_open)
