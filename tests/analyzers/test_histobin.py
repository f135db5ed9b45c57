"""histobin against its reference, on accesses made by chance, fed to one module or in stretches to several."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import program
from tests.naive import modules as naive
from tracekit.analyzers.histobin import Histobin
from tracekit.formats.events import CODE
from tracekit.modules.batch_runner import BatchRunner
from tracekit.modules.selected import Selected

VALUED = 8
"""Instructions with a value; the next one stands for those without."""


def some_accesses(rng: random.Random, count: int) -> list[naive.Event]:
    """Loads and stores of values of up to 64 bytes."""
    made: list[naive.Event] = []
    for _ in range(count):
        size = rng.choice((1, 2, 4, 8, 8, 16, 24, 64))
        value = rng.choice((0, rng.getrandbits(8 * size), (1 << 8 * size) - 1))
        made.append((0, rng.choice(("load", "store")), rng.randrange(VALUED), 4096, size, value))
    return made


def batch_of(events: list[naive.Event]) -> Any:
    """The events, and after every third an access without a value."""
    rows = [row for place, event in enumerate(events) for row in ([event, None] if place % 3 == 2 else [event])]
    words = [
        [] if row is None else [row[5] >> 64 * word & 2**64 - 1 for word in range(-(-row[4] // 8))] for row in rows
    ]
    return Selected(
        0,
        np.array([CODE["load" if row is None else row[1]] for row in rows], np.uint8),
        np.array([VALUED if row is None else row[2] for row in rows], np.uint32),
        None,
        np.array([8 if row is None else row[4] for row in rows], np.uint64),
        np.array([each[0] if each else 0 for each in words], np.uint64),
        wide=np.array([word for each in words for word in each[1:]], np.uint64),
        wide_event=np.array([place for place, each in enumerate(words) for _ in each[1:]], np.uint32),
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), parts=st.lists(st.integers(0, 60), max_size=5))
def test_ones_and_zeros(seed: int, parts: list[int]) -> None:
    rng = random.Random(seed)
    stretches = [some_accesses(rng, count) for count in parts]
    whole = BatchRunner(Histobin(program(VALUED), None), "histobin")
    runners = [whole.again() for _ in stretches]
    for runner, stretch in zip(runners, stretches):
        runner.feed(batch_of(stretch[: len(stretch) // 2]), 0)
        runner.feed(batch_of(stretch[len(stretch) // 2 :]), 0)
    if runners:
        whole.finish(lambda: [runner.worker.state for runner in runners])
    result = whole.result()[0]
    assert result["accesses"] == naive.ones_and_zeros([event for stretch in stretches for event in stretch])
    without = sum(half // 3 for count in parts for half in (count // 2, count - count // 2))
    assert result["summary"]["accesses_without_value"] == without
