"""info, dump and check on traces made by hand: what they print, and how they exit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.random_program import RandomProgram
from tests.naive.trace_file import write_trace, write_walks
from tests.naive.walker import Walk
from tracekit.cli import main
from tracekit.commands import check, dump, info
from tracekit.commands.usage import ShortUsageError
from tracekit.formats.events import CODE
from tracekit.formats.image import Base, BlockFlag, OpFlag, OpKind, PathFlag
from tracekit.profiles.files import written_whole


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Walk]:
    """A trace of a random walk with its known events."""
    rng = random.Random(20)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    path = tmp_path_factory.mktemp("walk") / "trace.zst"
    write_trace(path, made.layout, {0: walk.records()})
    return path, walk


def run(command: object, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])  # type: ignore[arg-type]


def small() -> tuple[ProgramBuilder, int]:
    b = ProgramBuilder()
    block = b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS)
    b.op(block, OpKind.LOAD, 4, line=3)
    b.op(block, OpKind.ATOMIC, 8, line=4)
    b.path(block)
    return b, b.layout().path_number(0)


def test_info_has_the_promised_keys_and_counts_an_atomic_twice(tmp_path: Path) -> None:
    b, number = small()
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(CODE["program_start"], [0, 7]), *[(number, [64, 128])] * 10]})
    facts = json.loads(run(info.command, "--json", path).output)
    assert set(facts) == {
        "complete",
        "threads",
        "path_records",
        "blocks",
        "values_recorded",
        "loads",
        "stores",
        "accesses",
        "events",
        "raw_bytes",
        "file_bytes",
        "bits_per_access",
        "images",
        "snapshots",
        "metadata",
    }
    assert facts["complete"] is True and facts["threads"] == 1
    assert (facts["path_records"], facts["blocks"], facts["loads"], facts["stores"]) == (10, 10, 20, 10)
    assert facts["values_recorded"] == 22 and facts["events"] == 1 and facts["raw_bytes"] == 8 * (11 + 22)
    assert facts["bits_per_access"] == pytest.approx(8 * path.stat().st_size / 30)
    assert facts["metadata"] == {"command": ["./app"], "status": 0}


def test_info_counts_a_trace_that_was_cut_off(tmp_path: Path) -> None:
    b, number = small()
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(number, [64, 128])] * 10}, done=False)
    facts = json.loads(run(info.command, "--json", path).output)
    assert facts["complete"] is False and facts["accesses"] == 30
    assert "no: the file ends early" in run(info.command, path).output


def test_info_says_why_a_trace_was_cut(tmp_path: Path) -> None:
    b, number = small()
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(number, [64, 128])] * 10}, cut="the disk is full")
    output = run(info.command, path).output
    assert "no: the disk is full" in output and "\ncut " not in output
    assert "app: 1 function, 1 path, 0 globals, 1 unit\n" in output


def test_info_in_text_shows_the_numbers(walked: tuple[Path, Walk]) -> None:
    output = run(info.command, walked[0]).output
    assert "accesses" in output and "bits per access" in output and "app: " in output


def test_info_of_a_whole_trace_needs_no_kernel(walked: tuple[Path, Walk]) -> None:
    script = (
        "import sys; from tracekit.cli import main; status = main(['info', sys.argv[1]]); "
        "sys.exit(status or 'numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(walked[0])], stdout=subprocess.DEVNULL).returncode == 0


def test_dump_prints_every_event_of_the_walk(walked: tuple[Path, Walk]) -> None:
    path, walk = walked
    rows = [json.loads(line) for line in run(dump.command, "--format", "jsonl", path).output.splitlines()]
    assert [row["event"] for row in rows] == [name for name, *_ in walk.events]
    accesses = [(int(row["address"], 16), row["size"]) for row in rows if row["event"] in ("load", "store")]
    assert accesses == [event[2:] for event in walk.events if event[0] in ("load", "store")]


def test_dump_names_the_instruction_and_its_place(tmp_path: Path) -> None:
    b, number = small()
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(number, [64, 128])]})
    lines = run(dump.command, path).output.splitlines()
    assert lines[0].split() == ["0", "function_entry", "function=main", "call=-"]
    assert "at=main:3:1 address=0x40 size=4" in lines[1]
    assert [line.split()[1] for line in lines] == ["function_entry", "load", "load", "store", "function_exit"]


def test_dump_stops_at_the_limit_and_keeps_to_one_function(walked: tuple[Path, Walk]) -> None:
    path, walk = walked
    assert len(run(dump.command, "--limit", "5", path).output.splitlines()) == 5
    wanted = run(dump.command, "--function", "f0", path).output.splitlines()
    entries = [name for name, subject, *_ in walk.events if name == "function_entry" and subject == 0]
    assert sum(" function_entry " in line for line in wanted) == len(entries)
    assert not any("function=f1" in line for line in wanted)


def test_dump_prints_a_stretch(walked: tuple[Path, Walk], capsys: pytest.CaptureFixture[str]) -> None:
    path, walk = walked
    lines = run(dump.command, path).output.splitlines()
    parts = [run(dump.command, *words, path).output.splitlines() for words in (("--to", "40%"), ("--from", "40%"))]
    assert parts[0] and parts[1] and parts[0] + parts[1] == lines
    assert parts[1][0].split()[1] in ("load", "store") or walk.events[len(parts[0])][0] not in ("load", "store")
    assert main(["dump", "--from", "often", str(path)]) == 2
    assert "--from takes a number of accesses or a percentage" in capsys.readouterr().err


def test_dump_writes_a_file_whole_or_not_at_all(
    walked: tuple[Path, Walk], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, copy, old = walked[0], tmp_path / "copy.zst", tmp_path / "old.txt"
    copy.write_bytes(trace.read_bytes())
    old.write_text("kept")
    assert main(["dump", str(copy), "-o", str(copy)]) == 1
    assert "is a trace: give the events another name" in capsys.readouterr().err
    assert copy.read_bytes() == trace.read_bytes()
    assert main(["dump", str(trace), "--function", "aply", "-o", str(old)]) == 1
    assert old.read_text() == "kept"
    assert main(["dump", str(trace), "-o", str(old)]) == 0
    capsys.readouterr()
    assert main(["dump", str(trace)]) == 0
    assert old.read_text() == capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.zst", "old.txt"]


def test_the_reader_of_an_output_file_goes_away() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with written_whole(f"/dev/fd/{writer}", "the events") as file:
            os.close(reader)
            file.write(b"events")

    with pytest.raises(BrokenPipeError):
        write()
    os.close(writer)


def test_dump_of_an_unknown_function_fails(walked: tuple[Path, Walk], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--function", "nowhere", str(walked[0])]) == 1
    assert "no function 'nowhere'" in capsys.readouterr().err


def test_check_is_content_with_a_walk(walked: tuple[Path, Walk]) -> None:
    result = run(check.command, walked[0])
    assert result.exit_code == 0 and "good" in result.output


def test_check_says_how_many_ground_truth_records_agree_and_fails_if_one_does_not(tmp_path: Path) -> None:
    b = ProgramBuilder()
    block = b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS)
    b.op(block, OpKind.GROUND_TRUTH)
    b.op(block, OpKind.LOAD, 4, flags=OpFlag.GROUND_TRUTH)
    b.op(block, OpKind.STORE, 4, Base.ABSOLUTE, offset=8, flags=OpFlag.GROUND_TRUTH)
    b.path(block)
    path, number = tmp_path / "trace.zst", b.layout().path_number(0)
    write_trace(path, b.layout(), {0: [(number, [0, 64, 64, 8])] * 1000, 1: [(number, [0, 9, 9, 8])]})
    result = run(check.command, path)
    assert result.exit_code == 0
    assert "good; 2,002 addresses and 1,001 blocks equal what the program recorded in place" in result.output
    write_trace(path, b.layout(), {0: [(number, [0, 64, 64, 8])] * 9 + [(number, [0, 64, 63, 8])]})
    result = run(check.command, path)
    assert result.exit_code == 1 and "equal" not in result.output
    assert "an address is not the one that the program used: 1 time, first at record 9" in result.output


def test_a_run_that_claims_too_much_takes_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = ProgramBuilder()
    f = b.function("main")
    b.path(b.block(f, BlockFlag.ENTRY))
    loop = b.loop(f)
    b.path(b.block(f, BlockFlag.LOOP_HEADER, loop), flags=PathFlag.RUN)
    path, layout = tmp_path / "trace.zst", b.layout()
    records = [(layout.path_number(0), []), (layout.path_number(1), [(1 << 64) - 1])]
    write_trace(path, layout, {0: records}, totals={})
    result = run(check.command, path)
    assert result.exit_code == 1 and "a run has 18446744073709551615 iterations" in result.output
    write_trace(path, layout, {0: records}, totals={}, done=False)
    assert main(["info", str(path)]) == 1
    assert "damaged: a run has" in capsys.readouterr().err


def test_info_counts_every_iteration_of_a_run(tmp_path: Path) -> None:
    b = ProgramBuilder()
    f = b.function("main")
    b.path(b.block(f, BlockFlag.ENTRY))
    loop = b.loop(f)
    head = b.block(f, BlockFlag.LOOP_HEADER, loop)
    b.op(head, OpKind.LOAD, 4, Base.ABSOLUTE, offset=8, terms=((4, loop, 0xFFFFFFFF),))
    b.path(head, flags=PathFlag.RUN)
    path, layout = tmp_path / "trace.zst", b.layout()
    records = [(layout.path_number(0), []), (layout.path_number(1), [10**12]), (layout.path_number(1), [1])]
    for done in (True, False):
        write_trace(path, layout, {0: records}, done=done)
        facts = json.loads(run(info.command, "--json", path).output)
        assert (facts["loads"], facts["blocks"], facts["path_records"]) == (10**12 + 1, 10**12 + 2, 3)


def test_check_finds_totals_that_are_not_true(tmp_path: Path) -> None:
    b, number = small()
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(number, [64, 128])]}, totals={"loads": 3, "stores": 1})
    result = run(check.command, path)
    assert result.exit_code == 1 and "claims 3 loads, the records have 2" in result.output


def test_check_finds_calls_that_do_not_balance(tmp_path: Path) -> None:
    b, _ = small()
    lost = b.block(0)
    lost_path = b.path(lost)
    path = tmp_path / "trace.zst"
    layout = b.layout()
    write_trace(path, layout, {0: [(layout.path_number(lost_path), [])] * 3})
    result = run(check.command, path)
    assert result.exit_code == 1
    assert "stream 0: a block has no activation to belong to: 3 times, first at record 0" in result.output


def test_check_finds_every_flipped_byte_of_a_frame(tmp_path: Path, walked: tuple[Path, Walk]) -> None:
    data = bytearray(walked[0].read_bytes())
    with tracekit.open(walked[0]) as trace:
        frames = trace.reader.frames
    for frame in frames[1:]:
        damaged = data.copy()
        damaged[(frame.offset + 48 + frame.end) // 2] ^= 1
        path = tmp_path / f"{frame.sequence}.zst"
        path.write_bytes(damaged)
        assert main(["check", str(path)]) == 1


def test_check_reports_a_truncated_file(tmp_path: Path, walked: tuple[Path, Walk]) -> None:
    path = tmp_path / "cut.zst"
    path.write_bytes(walked[0].read_bytes()[:-100])
    result = run(check.command, path)
    assert result.exit_code == 1 and "ends early" in result.output


def test_a_file_that_is_no_trace_is_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("hello")
    for verb in ("info", "dump", "check"):
        assert main([verb, str(path)]) == 1
        error = capsys.readouterr().err
        assert error.startswith("tracekit: ") and error.count("\n") == 1


def test_the_python_interface_gives_tables_and_events(walked: tuple[Path, Walk]) -> None:
    path, walk = walked
    with tracekit.open(str(path)) as trace:
        kinds = [kind for batch in trace.batches() for kind in batch.kind.tolist()]
        assert kinds == [CODE[name] for name, *_ in walk.events]
        assert len(trace.tables["functions"]) == len(walk.b.functions)
        assert trace.images[0].name == "app" and trace.complete


def test_info_of_parts_adds_up_to_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.zst"
    write_walks(path)
    whole = json.loads(run(info.command, "--json", "--from", "0", path).output)
    parts = [
        json.loads(run(info.command, "--json", *words, path).output)
        for words in (("--to", "30%"), ("--from", "30%", "--to", "70%"), ("--from", "70%"))
    ]
    assert [part.get("from") for part in parts] == [None, "30%", "70%"]
    assert sum((Counter(part["events"]) for part in parts), Counter()) == Counter(whole["events"])
    for name in ("accesses", "loads", "stores"):
        assert sum(part[name] for part in parts) == whole[name] > 0
    assert whole["streams"] == [0, 1, 2]
    assert f"{parts[0]['accesses']:,} ({parts[0]['loads']:,} loads" in run(info.command, "--to", "30%", path).output
    with pytest.raises(ShortUsageError, match="--from takes a number of accesses"):
        CliRunner().invoke(info.command, ["--from", "x", str(path)], standalone_mode=False, catch_exceptions=False)
