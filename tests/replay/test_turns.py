"""Batches of many turns of streams, against those of single streams, whose order test_derive.py checks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.random_program import RandomProgram
from tests.naive.walker import Walk
from tests.replay.test_derive import WITH_VALUES, Records, be_impatient, retick
from tracekit.replay import turns
from tracekit.replay.engine import Replay
from tracekit.replay.selection import Batch, parts_of


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_mixed_batches_hold_what_those_of_single_streams_do(seed: int, count: int) -> None:
    """Mixed batches hold the same events, with their values, in the same order, and no stream twice in a row."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walks = [Walk(made, rng, [], heap_base=(stream + 1) << 40) for stream in range(count)]
    for walk in walks:
        walk.run()
    streams = {stream: walk.records() for stream, walk in enumerate(walks)}
    retick(streams, rng)
    program = made.program
    chunk, batch, kept = rng.choice((1, 7, 1000)), rng.choice((16, 64, 4096)), rng.choice((1, 3))
    columns = WITH_VALUES if program.has_values else None
    plain, mixing = (Replay(Records(streams, chunk), program, batch, columns=columns, kept=kept) for _ in range(2))
    with mock.patch.object(turns, "MOST_TURNS", rng.choice((1, 2, 1000))):
        mixing.mix_streams()
        be_impatient(mixing, chunk)
        mixed = [row for part in mixing.batches() for row in rows_of(part)]
    assert mixed == [row for part in plain.batches() for row in rows_of(part)]
    assert mixing.delivered == len(mixed)
    assert mixing.violations() == plain.violations()


def rows_of(batch: Batch) -> Iterator[tuple[int, ...]]:
    """Stream, columns and value of each event of a batch."""
    parts = list(parts_of(batch))
    assert sum(map(len, parts)) == len(batch)
    assert all(len(part) and part.stream != after.stream for part, after in pairwise(parts))
    for part in parts:
        columns = (getattr(part, name).tolist() for name in ("kind", "subject", "address", "size"))
        values = [0] * len(part) if part.columns.value is None else part.values()
        yield from zip([part.stream] * len(part), *columns, values)
