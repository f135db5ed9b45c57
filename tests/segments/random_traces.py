"""Random traces of which a whole analysis can be paid for, to be cut anywhere."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import assume

from tests.naive.random_trace import write_random
from tests.naive.reader import read
from tracekit.formats.events import ACCESS_EVENTS
from tracekit.modules.codegen import SIZED_EVENTS

MUCH = 1 << 20
"""Broken records claim accesses of more bytes, of which the shadow takes all memory."""


def write_affordable(path: Path, rng: random.Random, streams: int, broken: bool) -> int:
    """Write a trace of random walks; returns how many accesses it has. With one of MUCH bytes it is no example."""
    write_random(path, rng, streams, broken)
    events = read(path.read_bytes()).process().events
    assume(all(size < MUCH for _, name, _, _, size in events if name in SIZED_EVENTS))
    return sum(name in ACCESS_EVENTS for _, name, *_ in events)
