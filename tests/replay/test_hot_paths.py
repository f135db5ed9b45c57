"""How many paths are hot: from all of a trace, not only from its beginning."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import Record, write_trace
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag
from tracekit.formats.records import RecordSource
from tracekit.replay.compiled.hot_paths import SHARE, count_hot_paths

PATHS = 300


def counted(path: Path, choices: list[list[int]]) -> int:
    """In a trace whose streams take such paths, between recorded events."""
    builder = ProgramBuilder()
    paths = [builder.path(builder.block(builder.function(f"f{at}"), BlockFlag.ENTRY)) for at in range(PATHS)]
    layout = builder.layout()
    streams: dict[int, list[Record]] = {
        stream: [(layout.path_number(paths[choice]), []) for choice in taken] + [(CODE["heap_free"], [1 + stream, 8])]
        for stream, taken in enumerate(choices)
    }
    write_trace(path, layout, streams, totals={}, chunk=100)
    with tracekit.open(path) as trace:
        return count_hot_paths(trace.reader, trace.program)


@pytest.mark.parametrize("seed", range(8))
def test_those_that_make_nearly_all_records_are_hot(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    most = generator.randrange(2, PATHS)
    taken = [min(int(generator.expovariate(8 / most)), most - 1) for _ in range(95)]
    left, expected = SHARE * len(taken), 0
    for _, count in Counter(taken).most_common():
        expected += left > 0
        left -= count
    assert counted(tmp_path / "trace.zst", [taken]) == expected


def test_what_a_program_begins_with_does_not_tell(tmp_path: Path) -> None:
    begins = [0] * 5_000
    goes_on = [choice for choice in range(PATHS) for _ in range(5_000 // PATHS)]
    assert counted(tmp_path / "trace.zst", [begins]) == 1
    assert counted(tmp_path / "trace.zst", [begins + goes_on]) > 20


def test_the_streams_with_most_records_tell(tmp_path: Path) -> None:
    short, long = [choice % PATHS for choice in range(100)], [0, 1, 2] * 5_000
    assert counted(tmp_path / "trace.zst", [short, long]) == 3


def test_without_paths_none_is_hot(tmp_path: Path) -> None:
    assert counted(tmp_path / "trace.zst", [[]]) == 0


def test_a_damaged_chunk_that_holds_less_than_its_frame_says_gives_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordSource, "_decoded", lambda *given: iter(()))
    assert counted(tmp_path / "trace.zst", [[0, 1, 2]]) == 0
