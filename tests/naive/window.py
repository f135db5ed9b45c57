"""Which events of a trace lie inside a window, in plain Python, one event after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tracekit.formats.events import BY_CODE

Event = tuple[int, int, int, int, int]
"""Stream, code, subject, address, size."""

MEMORY = ("load", "store", "pointer_creation", "external_call")


def inside(
    events: Iterable[Event],
    functions: set[int] | None = None,
    loops: set[int] | None = None,
    thread: int | None = None,
    first: int = 0,
    last: int | None = None,
) -> Iterator[tuple[Event, bool]]:
    """Each event that passes, and whether it is inside."""
    calls: dict[int, list[int]] = {}
    opened: dict[int, Counter[int]] = {}
    accesses = 0
    for event in events:
        stream, code, subject, *_ = event
        name = BY_CODE[code].name
        stack, around = calls.setdefault(stream, []), opened.setdefault(stream, Counter())
        if name == "function_entry":
            stack.append(subject)
        if name == "loop_invocation":
            around[subject] += 1
        within = (
            (thread is None or thread == stream)
            and (functions is None or bool(functions & set(stack)))
            and (loops is None or any(around[loop] for loop in loops))
            and accesses >= first
            and (last is None or accesses < last)
        )
        if name == "function_exit":
            stack.pop()
        if name == "loop_exit":
            around[subject] -= 1
        accesses += name in ("load", "store")
        if within or name not in MEMORY:
            yield event, within


def rows(batches: Iterable[Any]) -> list[Event]:
    """The events of batches."""
    return [
        (batch.stream, *event)
        for batch in batches
        for event in zip(batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist())
    ]
