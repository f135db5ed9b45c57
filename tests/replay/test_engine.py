"""The engine against the naive reader, file to events: also where records break the rules."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.random_program import RandomProgram
from tests.naive.random_trace import write_random
from tests.naive.reader import read
from tests.naive.trace_file import Record, write_trace
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, NONE
from tracekit.replay.engine import Replay
from tracekit.replay.kernels.layouts import FRAMES, OBJECTS
from tracekit.replay.selection import Batch


def engine_events(path: Path) -> list[tuple[int, str, int, int, int]]:
    """All events that the engine delivers."""
    with tracekit.open(path) as trace:
        return [
            (batch.stream, BY_CODE[kind].name, subject, address, size)
            for batch in trace.batches()
            for kind, subject, address, size in zip(
                batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist()
            )
        ]


def ground_truth(path: Path) -> tuple[Counter[str], Counter[str]]:
    """How many ground-truth records of each kind agree with the engine, and how many do not."""
    with tracekit.open(path) as trace:
        replay = Replay(trace.reader, trace.program)
        for _ in replay.batches():
            pass
    texts = {
        "an address is not the one that the program used": "addresses",
        "a path does not run the blocks that it says": "blocks",
        "a run does not have the iterations that it says": "runs",
    }
    unequal = Counter[str]()
    for violation in replay.violations():
        unequal[texts.get(violation.text, "")] += violation.count
    del unequal[""]
    return Counter(dict(zip(texts.values(), replay.compared()))), unequal


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 4), broken=st.booleans())
@example(seed=44806690, streams=1, broken=True)  # ground truth: 2**64 - 1 iterations, in another function's frame
@example(seed=103, streams=2, broken=True)  # an unknown landing in the top frame, whose last block is a loop's header
def test_the_engine_and_the_naive_reader_agree(tmp_path_factory: object, seed: int, streams: int, broken: bool) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"  # type: ignore[attr-defined]
    _, recorded = write_random(path, random.Random(seed), streams, broken, events=3)
    process = read(path.read_bytes()).process()
    assert engine_events(path) == process.events
    if not any(identity == CODE["dropped"] for records in recorded.values() for identity, _ in records):
        assert ground_truth(path) == (process.equal, process.unequal)


class Endless:
    """A stream that never ends anything: `records` again and again."""

    def __init__(self, batches: list[list[Record]]) -> None:
        self.batches = batches

    def streams(self) -> list[int]:
        return [0]

    def records(self, stream: int) -> object:
        for batch in self.batches:
            words = [word for _, given in batch for word in given]
            yield np.array([identity for identity, _ in batch], np.uint32), np.array(words, np.uint64)


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_so_many_batches_stay_as_they_are(kept: int) -> None:
    made = next(made for made in (RandomProgram(random.Random(seed)) for seed in range(100)))
    records: list[list[Record]] = [[(CODE["heap_alloc"], [k, 16 * k + 16, 8]) for k in range(2000)]]
    replay = Replay(Endless(records), made.program, batch=64, kept=kept)  # type: ignore[arg-type]
    held: list[tuple[Batch, list[int]]] = []
    replaced = 0
    for batch in replay.batches():
        held.append((batch, batch.address.tolist()))
        assert all(each.address.tolist() == addresses for each, addresses in held[-kept:])
        replaced += len(held) > kept and held[-kept - 1][0].address.tolist() != held[-kept - 1][1]
    assert replaced > 10


def test_deep_recursion_and_many_heap_objects_make_the_state_grow() -> None:
    made = next(
        made
        for made in (RandomProgram(random.Random(seed)) for seed in range(100))
        if made.b.offsets.get("f0") and any(op["kind"] == 8 for op in made.b.ops[:5])
    )
    entry = made.functions[0].entry
    number = made.layout.path_number(made.paths[(entry,)])
    words = int(made.program.arity[number])
    batches: list[list[Record]] = [[(number, [k] * words) for k in range(5000)]]
    batches.append([(CODE["heap_alloc"], [k, 16 * k + 16, 8]) for k in range(20_000)])
    batches.append([(CODE["heap_free"], [k, 16 * k + 16]) for k in range(0, 20_000, 2)])
    replay = Replay(Endless(batches), made.program)  # type: ignore[arg-type]
    frees = [batch.size[batch.kind == CODE["heap_free"]].copy() for batch in replay.batches()]
    assert np.concatenate(frees).tolist() == [8] * 10_000
    assert int(replay.process.used[0]) == 10_000
    stream = replay.streams[0].state
    assert stream.scalars[0] == 4999 and len(stream.frames) >= 5000
    assert stream.scalars[OBJECTS] >= 5000 and FRAMES == 2


def test_a_stack_that_never_stops_growing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RandomProgram(random.Random(3))
    number = made.layout.path_number(made.paths[(made.functions[0].entry,)])
    records = [(number, [1] * int(made.program.arity[number]))] * 3000
    monkeypatch.setattr("tracekit.replay.stream.DEEPEST", 2048)
    with pytest.raises(TracekitError, match="never stops growing"):
        list(Replay(Endless([records]), made.program).batches())  # type: ignore[arg-type]


def test_a_batch_names_no_instruction_where_no_call_is_open(tmp_path: Path) -> None:
    made = RandomProgram(random.Random(3))
    path = tmp_path / "trace.zst"
    write_trace(path, made.layout, {5: [(CODE["heap_alloc"], [1, 4096, 8])]})
    assert engine_events(path) == [(5, "heap_alloc", NONE, 4096, 8)]
