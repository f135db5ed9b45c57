"""The module ``cache`` against what Dinero IV (version 7) counted of the same accesses.

Its counts were taken once, of a file as `tracekit export xdin` writes it, by -l1-dsize, -l1-dassoc, -l1-dbsize, and for
write-through -l1-dwalloc n and -l1-dwback n.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.analyzers.test_cache import profile
from tests.naive.caches import Event, Random

COUNT = 20_000

COUNTED = {
    # size, ways, line, write: demand fetches, demand misses, lines from memory, bytes to memory
    (4096, 1, 64, "back"): (20482, 13895, 13895, 344896),
    (4096, 2, 64, "back"): (20482, 13663, 13663, 337216),
    (16384, 8, 64, "back"): (20482, 13249, 13249, 333120),
    (4096, 64, 64, "back"): (20482, 13631, 13631, 336256),
    (8192, 4, 32, "back"): (20964, 16007, 16007, 185664),
    (4096, 2, 64, "through"): (20482, 14436, 9634, 35149),
    (16384, 4, 128, "through"): (20249, 11801, 7903, 35149),
}


def accesses() -> Iterator[Event]:
    """Three walks with strides, and jumps into a table."""
    random, at = Random(1), [1 << 20, 1 << 21, 1 << 22]
    for number in range(COUNT):
        high = random.below(1 << 31)
        walk = high % 4
        if walk == 3:
            address = (1 << 24) + (high >> 2) % 60_000
        else:
            at[walk] = (at[walk] & ~0x3FFF) | (at[walk] + (4, 40, 136)[walk]) % 0x4000
            address = at[walk]
        name = ("load", "store")[high >> 20 & 1] if number % 3 else "load"
        yield 0, name, high % 8, address, (1, 4, 8, 8)[high >> 8 & 3], 0


@pytest.mark.parametrize("given", COUNTED, ids=str)
def test_counts(given: tuple[int, int, int, str]) -> None:
    size, ways, line, write = given
    fetches, misses, fetched, written = COUNTED[given]
    events = list(accesses())
    options = {"levels": f"{size}:{ways}:{line}", "write": write}
    found = profile(events, **options)
    assert (found["summary"]["touches"], found["levels"][0]["misses"]) == (fetches, misses)
    if write == "through":
        assert sum(event[4] for event in events if event[1] == "store") == written  # Dinero counts bytes, we touches
        return
    assert fetched == misses
    # at the end Dinero writes back what is dirty: here loads of other lines drive it out
    flushed = profile(
        [*events, *((0, "load", 0, (1 << 30) + place, 1, 0) for place in range(0, size, line))], **options
    )
    assert flushed["summary"]["memory_writes"] * line == written
