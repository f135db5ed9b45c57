"""The module ``paths`` against paths that are lists of blocks, on random programs and walks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.paths import Paths
from tests.naive.random_trace import write_random
from tests.naive.reader import Record, read
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.paths.chain import hot_chain
from tracekit.paths.counter import PathCounter
from tracekit.paths.kernels.layouts import BYTES, LOADS, STORES
from tracekit.paths.profile import joined, profile
from tracekit.paths.sums import PathSums
from tracekit.program.program import Program


def counted(given: Path | bytes, most: int = 1 << 20) -> PathSums:
    """The sums of a trace's paths; `given`: its file, or what stands in it."""
    with TraceReader(given) as trace:
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
@example(seed=2578931, streams=2, broken=False)  # control lands in an activation that a window found
def test_paths_edges_and_calls_are_the_naive_ones(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), streams, broken)
    assert_naive(counted(path), Paths(read(path.read_bytes())))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_frames_grow(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), 2, broken=bool(seed & 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracekit.paths.counter.FRAMES", 3)
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


def test_a_stack_that_never_stops_growing_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.paths.counter.FRAMES", 3)
    monkeypatch.setattr("tracekit.paths.counter.DEEPEST", 3)
    path = tmp_path / "trace.zst"

    def count_all() -> None:
        for seed in range(30):
            write_random(path, random.Random(seed), 1, broken=False)
            counted(path)

    with pytest.raises(TracekitError, match="the stack of stream 0 never stops growing"):
        count_all()


def test_damaged_traces_give_a_profile_or_a_sentence() -> None:
    command = [sys.executable, "-m", "tests.paths.damaged", "0", "80"]
    environment = {**os.environ, "TRACEKIT_CHECK_BOUNDS": "all"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    profiles, sentences = map(int, done.stdout.split())
    assert profiles > 25 and sentences > 15


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_merging_is_associative_and_commutative(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Streams of one trace stand for runs: together they come to what the whole has."""
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), 3, broken=False)
    streams = read(path.read_bytes()).streams
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
    whole, *parts = (
        profile(program, counted_records(program, chosen).counter)
        for chosen in (streams, *({number: records} for number, records in streams.items()))
    )
    first, second, third = parts
    assert joined([first], program) == first
    together = joined([first, second, third], program)
    assert joined([joined([third, second], program), first], program) == together
    assert together == whole


def path_row(function: str, blocks: list[int], inclusive: int) -> dict[str, Any]:
    path = {"id": f"{function}:{blocks}", "function": function, "blocks": blocks}
    return {"path": path, "frequency": 1, "loads": 1, "stores": 1, "inclusive": inclusive}


def call_row(caller: str | None, block: int | None, callee: str, accesses: int) -> dict[str, Any]:
    return {"call": {"caller": caller, "block": block, "callee": callee}, "count": 1, "accesses": accesses}


def test_the_hot_path_goes_through_the_hottest_paths() -> None:
    paths = [
        path_row("u:0", [0, 1], 10),
        path_row("u:0", [2, 3], 90),
        path_row("u:1", [0], 50),
        path_row("u:2", [0, 4], 30),
    ]
    calls = [
        call_row(None, None, "u:0", 100),
        call_row(None, None, "u:2", 1),
        call_row("u:0", 1, "u:2", 80),  # on the other path
        call_row("u:0", 3, "u:1", 40),
        call_row("u:1", 0, "u:2", 30),
        call_row("u:2", 4, "u:0", 5),  # which is in the chain
    ]
    chain = hot_chain(paths, calls)
    assert [(row["path"]["function"], row["path"]["blocks"]) for row in chain] == [
        ("u:0", [2, 3]),
        ("u:1", [0]),
        ("u:2", [0, 4]),
    ]
    assert [row["call"]["callee"] for row in chain] == ["u:1", "u:2", "u:0"]
    assert hot_chain([], []) == [] and hot_chain([], calls) == []
