"""Two readers, one of them written from SPEC.md alone, find the same events in a trace: those that were put into it."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.traces import build_trace
from tests.naive import reader as naive
from tests.naive.walker import RandomProgram, Walk
from tracekit.formats.events import BY_CODE
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.replay.engine import batches

Event = tuple[int, str, int, int, int]


def replayed(data: bytes, ahead: bool = False) -> list[Event]:
    """The events of a trace as tracekit reads and replays it, with records decoded ahead by another thread or not."""
    with TraceReader(data) as trace:
        program = Program.from_images(trace.images())
        return [
            (batch.stream, BY_CODE[int(kind)].name, int(subject), int(address), int(size))
            for batch in batches(RecordSource(trace, program.arity, ahead), program)
            for kind, subject, address, size in zip(batch.kind, batch.subject, batch.address, batch.size)
        ]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 40))
def test_both_readers_see_what_a_random_walk_did(seed: int, chunk: int) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    data = build_trace([made.layout.image()], {0: walk.records()}, chunk)
    expected = [(0, *event) for event in walk.events]
    assert naive.read(data).events() == expected
    assert naive.read(data).values() == walk.values
    assert replayed(data) == expected
    assert replayed(data, ahead=True) == expected
