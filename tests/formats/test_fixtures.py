"""The traces under fixtures/traces, one for each version, for ever: every reader finds the events written down."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats.test_two_readers import Event, replayed
from tests.naive import reader as naive
from tests.needs import needs
from tracekit.formats import container
from tracekit.formats.events import CODE
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.replay.engine import Replay

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
VERSIONS = [f"v{version}" for version in range(1, container.VERSION + 1)]


def golden(version: str) -> list[Event]:
    return [(int(row[0]), row[1], int(row[2], 16), int(row[3], 16), int(row[4], 16)) for row in golden_rows(version)]


def golden_rows(version: str) -> list[list[str]]:
    """Stream, event, subject, address, size and, where it was recorded, the value."""
    lines = (FOLDER / f"{version}.events").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_readers_find_the_events_that_were_written_down(version: str) -> None:
    data = (FOLDER / f"{version}.zst").read_bytes()
    assert naive.read(data).events() == golden(version)
    assert replayed(data) == golden(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_readers_find_the_values_that_were_written_down(version: str) -> None:
    data = (FOLDER / f"{version}.zst").read_bytes()
    values = [int(row[5], 16) if len(row) > 5 else None for row in golden_rows(version)]
    assert any(values) and naive.read(data).values() == values
    with TraceReader(data) as trace:
        program = Program.from_images(trace.images())
        batches = list(replay_batches(trace, program))
    assert [value for batch in batches for value in batch] == [value or 0 for value in values]


def replay_batches(trace: TraceReader, program: Program) -> Iterator[list[int]]:
    """The values of each batch."""
    for batch in Replay(trace, program, columns=("subject", "address", "size", "value")).batches():
        yield batch.values()


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_at_every_byte(version: str) -> None:
    """Whole frames are read, by both readers alike, and the rest is said to be missing."""
    data = (FOLDER / f"{version}.zst").read_bytes()
    frames = TraceReader(data).frames
    for size in range(frames[0].end, len(data)):
        trace = TraceReader(data[:size])
        assert not trace.complete
        assert trace.frames == tuple(frame for frame in frames if frame.end <= size)
    for frame in frames[3:]:
        cut = data[: frame.end + 20]
        assert replayed(cut) == naive.read(cut).events()


def test_the_script_makes_the_present_version() -> None:
    name = VERSIONS[-1]
    spec = importlib.util.spec_from_file_location("make_fixture", FOLDER / f"make_{name}.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    data, text = script.make()
    made, kept = TraceReader(data), TraceReader(FOLDER / f"{name}.zst")
    assert [made.payload(frame) for frame in made.frames] == [kept.payload(frame) for frame in kept.frames]
    assert text == (FOLDER / f"{name}.events").read_text()


def test_the_present_version_holds_what_the_format_can_say() -> None:
    delivered = {name for _, name, *_ in golden(VERSIONS[-1])}
    never = {"heap_realloc", "library_load", "library_store"}
    assert delivered == {name for name in CODE if not name.startswith("resumed_")} - never


def test_the_ground_truth_records_of_the_present_version_are_good() -> None:
    with TraceReader(FOLDER / f"{VERSIONS[-1]}.zst") as trace:
        replay = Replay(trace, Program.from_images(trace.images()))
        for _ in replay.batches():
            pass
    assert replay.violations() == [] and replay.compared() == (2, 2, 2)
    process = naive.read((FOLDER / f"{VERSIONS[-1]}.zst").read_bytes()).process()
    assert process.equal == {"addresses": 2, "blocks": 2, "runs": 2} and not process.unequal


@needs("zstd")
@pytest.mark.parametrize("version", VERSIONS)
def test_zstd_accepts_them(version: str) -> None:
    subprocess.run(["zstd", "-q", "-t", str(FOLDER / f"{version}.zst")], check=True)
