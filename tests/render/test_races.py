"""How a race's ends are told."""

from __future__ import annotations

from typing import Any

from tracekit.render.races import end_lines
from tracekit.render.text import Style

THREADS = {stream: f"thread {stream} work" for stream in range(8)}


def lock(offset: int) -> dict[str, Any]:
    return {"object": {"kind": "global", "name": "locks"}, "offset": offset, "shared": False}


def end(sets: int) -> dict[str, Any]:
    instruction = {"file": "app.c", "line": 3, "column": 5, "function": "work"}
    held = [[lock(40 * number)] for number in range(sets)]
    context = {"root": "work", "path": []}
    return {"access": "store", "instruction": instruction, "locks": held, "threads": [1], "context": context}


def test_of_an_array_of_locks_a_few_are_named() -> None:
    """memcached's has thousands: what an end held filled screens."""
    lines = end_lines(end(200), THREADS, Style(False))
    assert lines[1] == "    by thread 1 work, holding locks or locks + 40 or locks + 80 or 197 other sets of locks"
    assert end_lines(end(3), THREADS, Style(False))[1].endswith("holding locks or locks + 40 or locks + 80")
