"""Whether streams hand over often, from their tickets."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import Record, write_trace
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag
from tracekit.replay.turn_length import SHORT, TURNS, Pace, has_short_turns


def answer(path: Path, records: int, streams: int, alternate: bool) -> bool:
    """Of a trace whose streams have so many path records between two tickets, which they take in turn or one by one."""
    builder = ProgramBuilder()
    entry = builder.block(builder.function("main"), BlockFlag.ENTRY)
    path_of_entry = builder.path(entry)
    layout = builder.layout()
    call = (layout.path_number(path_of_entry), [])
    tickets, given = 60_000 // records + 2, {}
    for stream in range(streams):
        own: list[Record] = []
        for number in range(tickets):
            ticket = number * streams + stream if alternate else stream * tickets + number
            own += [call] * records + [(CODE["heap_free"], [1 + ticket, 8])]
        given[stream] = own
    write_trace(path, layout, given, totals={}, chunk=10_000)
    with tracekit.open(path) as trace:
        return has_short_turns(trace.reader, trace.program)


@pytest.mark.parametrize(("records", "expected"), [(3, True), (SHORT // 2, True), (2 * SHORT, False)])
def test_streams_that_hand_over_often_have_short_turns(tmp_path: Path, records: int, expected: bool) -> None:
    assert answer(tmp_path / "trace.zst", records, 2, alternate=True) is expected


def test_tickets_that_nobody_comes_between_are_no_turns(tmp_path: Path) -> None:
    assert not answer(tmp_path / "trace.zst", 3, 2, alternate=False)


def test_a_stream_that_is_alone_hands_over_to_nobody(tmp_path: Path) -> None:
    assert not answer(tmp_path / "trace.zst", 3, 1, alternate=True)


def test_turns_that_have_become_long_are_short_no_more() -> None:
    pace = Pace()
    lengths = [1, SHORT - 1, SHORT + 1, 2 * SHORT, SHORT + 1, SHORT - 1]
    turns = records = 0
    told = []
    for length in lengths:
        turns, records = turns + TURNS, records + TURNS * length
        told.append(pace.is_short(turns, partial(int, records)))
        assert pace.is_short(turns + TURNS - 1, lambda: 0) is told[-1], "before the next look"
    assert told == [True, True, True, False, False, True]


def test_streams_that_hand_over_beside_a_busier_one_have_short_turns(tmp_path: Path) -> None:
    """One may be in a long computation while two others hand over to each other."""
    builder = ProgramBuilder()
    path_of_entry = builder.path(builder.block(builder.function("main"), BlockFlag.ENTRY))
    layout = builder.layout()
    call = (layout.path_number(path_of_entry), [])
    others: list[list[Record]] = [[], []]
    for ticket in range(20_000):
        others[ticket % 2].append((CODE["heap_free"], [1 + ticket, 8]))
    write_trace(tmp_path / "t.zst", layout, {0: [call] * 30_000, 1: others[0], 2: others[1]}, totals={}, chunk=10_000)
    with tracekit.open(tmp_path / "t.zst") as trace:
        assert has_short_turns(trace.reader, trace.program)
