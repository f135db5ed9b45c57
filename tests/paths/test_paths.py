"""The module ``paths`` against paths that are lists of blocks, on random programs and walks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.paths import Paths
from tests.naive.random_trace import write_random
from tests.naive.reader import Record, read
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.paths.counter import PathCounter
from tracekit.paths.kernels.layouts import BYTES, LOADS, STORES
from tracekit.paths.sums import PathSums
from tracekit.program.program import Program


def counted(path: Path, most: int = 1 << 20) -> PathSums:
    """The sums of a trace's paths."""
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        counter = PathCounter(program, most)
        source = RecordSource(trace, program.arity)
        for stream in source.streams():
            for ids, words in source.records(stream):
                counter.add(stream, ids, words)
        counter.finish()
        return PathSums(program, counter)


def counted_records(program: Program, streams: Mapping[int, Sequence[Record]]) -> PathSums:
    """The same of records in lists."""
    counter = PathCounter(program, 1 << 20)
    for stream, records in streams.items():
        ids = np.array([identity for identity, _ in records], np.uint32)
        words = np.array([word for _, given in records for word in given], np.uint64)
        counter.add(stream, ids, words)
    counter.finish()
    return PathSums(program, counter)


def assert_naive(sums: PathSums, naive: Paths) -> None:
    """All numbers are those of the naive paths."""
    paths = sums.paths()
    assert {path[:3]: path.frequency for path in paths} == naive.frequency
    assert {path[:3]: list(path.sums) for path in paths} == {**dict.fromkeys(naive.frequency, [0] * 4), **naive.sums}
    blocks = sums.block_counts()
    assert {block: int(blocks[block]) for block in blocks.nonzero()[0].tolist()} == naive.blocks
    assert sums.edges() == naive.edges
    assert {(call.block, call.function): [call.times, call.accesses] for call in sums.calls()} == naive.calls
    assert [int(sums.counter.scalars[at]) for at in (LOADS, STORES, BYTES)] == naive.outside
    assert [len(set(path.blocks)) for path in paths] == [len(path.blocks) for path in paths], "no block stands twice"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), broken=st.booleans())
@example(seed=0, streams=1, broken=False)
def test_paths_edges_and_calls_are_the_naive_ones(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), streams, broken)
    assert_naive(counted(path), Paths(read(path.read_bytes())))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 40))
def test_a_full_table_cuts_paths_and_loses_no_block(
    tmp_path_factory: pytest.TempPathFactory, seed: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), 2, broken=False)
    whole, short = counted(path), counted(path, most)
    assert whole.block_counts().tolist() == short.block_counts().tolist()
    for column in ("loads", "stores", "bytes"):
        assert sum(getattr(each.sums, column) for each in whole.paths()) == sum(
            getattr(each.sums, column) for each in short.paths()
        )
    assert len(short.rows) <= most + 2 * len(short.counter.walked.segments) + 1
    calls = {callee: sum(call.times for call in whole.calls() if call.function == callee) for callee in range(8)}
    assert calls == {
        callee: sum(call.times for call in short.calls() if call.function == callee) for callee in range(8)
    }
