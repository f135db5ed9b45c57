"""Who loads what another thread has stored last, byte by byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

Event = tuple[int, str, int, int, int]
"""Stream, name, subject, address, size."""

NEW = ("heap_alloc", "stack_alloc", "thread_memory")


def communication(
    events: Iterable[Event],
) -> tuple[dict[tuple[int | None, int], list[int]], dict[tuple[int, int], list[int]]]:
    """Loads and bytes by (stream that stored, stream that loads), and by instructions of different streams.

    A load counts once for each stretch of bytes that one store (stream and instruction) made.
    """
    last: dict[int, tuple[int, int]] = {}
    streams: dict[tuple[int | None, int], list[int]] = defaultdict(lambda: [0, 0])
    pairs: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for stream, name, subject, address, size in events:
        for byte in range(address, address + size):
            if name == "store":
                last[byte] = stream, subject
            elif name in NEW:
                last.pop(byte, None)
        if name != "load":
            continue
        before: tuple[int, int] | str | None = "nothing"
        for byte in range(address, address + size):
            store = last.get(byte)
            sums = [streams[store[0] if store else None, stream]]
            if store and store[0] != stream:
                sums.append(pairs[store[1], subject])
            for each in sums:
                each[0] += store != before
                each[1] += 1
            before = store
    return dict(streams), dict(pairs)
