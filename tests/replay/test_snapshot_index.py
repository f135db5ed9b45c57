"""`tracekit index`: snapshots in the trace's file; what both readers see there; what is refused."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.formats.test_hostile import bounded, damage
from tests.naive import deriver
from tests.naive import reader as naive
from tests.naive.random_trace import write_random
from tests.naive.trace_file import write_walks
from tests.replay.test_snapshots import events_of
from tracekit.cli import main
from tracekit.formats import snapshots as layout
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.formats.reader import TraceReader
from tracekit.formats.writer import TraceWriter
from tracekit.jit import object_cache
from tracekit.program.program import Program
from tracekit.replay import snapshot_index, snapshots
from tracekit.replay.engine import Replay
from tracekit.replay.snapshots import Snapshots, nearest

NONE = 0xFFFFFFFF
WITH_SNAPSHOTS = (1, 2, 3, 9, 11)
"""Seeds of traces with several, if they are as near to one another as can be."""


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots are as near to one another as can be, and none comes from the cache."""
    monkeypatch.setattr(object_cache, "read", lambda key: None)
    monkeypatch.setattr(object_cache, "write", lambda key, contents: None)
    monkeypatch.setattr(snapshots, "APART", 1)
    monkeypatch.setattr(snapshots, "BATCH", 1)


def indexed(path: Path, seed: int, broken: bool = False) -> tuple[bytes, bytes]:
    """A random trace without and with snapshots, which lies at `path`."""
    write_random(path, random.Random(seed), 1 + seed % 4, broken)
    before = path.read_bytes()
    snapshot_index.put_into(str(path))
    return before, path.read_bytes()


# -- what is in the file ---------------------------------------------------------------------------


class ReachedError(Exception):
    """The naive reader has come to the place."""


def naive_at(trace: naive.Trace, records: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> deriver.Process:
    """The naive reader's process where the streams have delivered so many records."""
    process, deliver = deriver.Process(trace), deriver.Stream.deliver

    def delivered(stream: Any) -> None:
        deliver(stream)
        if {each.number: each.at for each in process.streams} == records:
            raise ReachedError

    with monkeypatch.context() as patched:
        patched.setattr(deriver.Stream, "deliver", delivered)
        with pytest.raises(ReachedError):
            process.run()
    return process


def states_of(found: naive.Snapshot, trace: naive.Trace) -> dict[int, list[Any]]:
    """What it says of each stream's frames, as `naive_states` has it."""
    states = {}
    for number, stream in found.streams.items():
        iterations, registers = iter(stream.iterations), iter(stream.registers)
        ends = [frame[5] for frame in stream.frames[1:]] + [len(stream.objects)]
        frames: list[Any] = []
        for (address, function, call, block, loop, first, flags), end in zip(stream.frames, ends):
            around: list[int] = []
            while loop != NONE:
                around.insert(0, loop)
                loop = trace.tables["loops"][loop]["parent"]
            row = trace.tables["functions"][function] if function != NONE else {"registers": 0, "ops": 0, "first_op": 0}
            ops = range(row["first_op"], row["first_op"] + row["ops"])
            allocs = [op for op in ops if trace.tables["ops"][op]["kind"] == deriver.STACK_ALLOC]
            own = [next(registers) for _ in range(row["registers"] + 2 * len(allocs))]
            frames.append(
                {
                    "names": (address, function, call, block),
                    "loops": [[each, next(iterations)] for each in around],
                    "registers": {k: value for k, value in enumerate(own[: row["registers"]]) if value},
                    "objects": [(op, at, size) for at, size, op, _, ended, _ in stream.objects[first:end] if not ended],
                    "tail": bool(flags & 2),
                }
            )
            for at, _, op, register, ended, _ in stream.objects[first:end]:
                assert register == row["registers"] + 2 * allocs.index(op)
                assert ended or own[register] == at or own[register + 1] == 0 or allocs.count(op) == 1
        assert next(iterations, None) is None and next(registers, None) is None
        states[number] = frames
    return states


def naive_states(process: deriver.Process) -> dict[int, list[Any]]:
    return {
        stream.number: [
            {
                "names": (frame.address, frame.function, frame.call, frame.block),
                "loops": frame.loops,
                "registers": {k: value for k, value in frame.registers.items() if value},
                "objects": [(item.op, item.address, item.size) for item in frame.objects if item.alive],
                "tail": frame.tail,
            }
            for frame in stream.frames
        ]
        for stream in process.streams
    }


def test_the_naive_reader_stands_there_as_the_snapshot_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = deep = 0
    for seed in range(24):
        _, data = indexed(tmp_path / f"{seed}.zst", seed)
        trace = naive.read(data)
        for found in trace.snapshots[:: max(len(trace.snapshots) // 3, 1)]:
            process = naive_at(trace, {number: stream.records for number, stream in found.streams.items()}, monkeypatch)
            assert states_of(found, trace) == naive_states(process)
            assert found.heap == process.heap
            created = {number for number, stream in found.streams.items() if stream.flags & 4}
            assert created == process.created & found.streams.keys()
            assert found.accesses == sum(name in ("load", "store") for _, name, *_ in process.events)
            looked_at += 1
            deep += any(len(frames) > 1 for frames in naive_states(process).values())
    assert looked_at > 30 and deep > 5


def test_the_file_is_what_it_was_but_for_the_snapshots(tmp_path: Path) -> None:
    for seed in WITH_SNAPSHOTS:
        path = tmp_path / f"{seed}.zst"
        before, after = indexed(path, seed, broken=seed % 2 == 1)
        with TraceReader(before) as old, TraceReader(after) as new:
            assert old.content_hash == new.content_hash and new.complete
            assert [old.payload(frame) for frame in old.frames] == [
                new.payload(frame) for frame in new.frames if frame.type != b"SNAP"
            ]
            assert len(Snapshots.in_trace(new)) > 2
        assert naive.read(after).events() == naive.read(before).events()
        assert len(naive.read(after).snapshots) == len(Snapshots.in_trace(TraceReader(after)))
        assert not snapshot_index.put_into(str(path)).is_new and path.read_bytes() == after
        assert snapshot_index.take_out(str(path)) > 0 and path.read_bytes() == before
        assert snapshot_index.take_out(str(path)) == 0
        snapshot_index.put_into(str(path))
        assert path.read_bytes() == after
        assert os.listdir(tmp_path).count(path.name) == 1 and not [
            name for name in os.listdir(tmp_path) if name[0] == "."
        ]


def test_a_replay_begins_at_those_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.zst"
    indexed(path, 3)
    with tracekit.open(path) as trace:
        whole = events_of(Replay(trace.reader, trace.program))
        known = Snapshots.in_trace(trace.reader)
        for number, accesses in enumerate(known.accesses):
            found = nearest(trace.reader, trace.program, accesses + 1)
            assert found is not None and found.accesses == accesses == known[number].accesses
            rest = events_of(Replay(trace.reader, trace.program, start=found))
            assert rest == whole[len(whole) - len(rest) :]


def test_they_take_no_more_than_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.zst"
    indexed(path, 3)
    every = snapshot_index.put_into(str(path))
    snapshot_index.take_out(str(path))
    monkeypatch.setattr(snapshot_index, "ALWAYS_BYTES", every.snapshot_bytes // 3)
    some = snapshot_index.put_into(str(path))
    assert 0 < some.snapshots <= every.snapshots // 2 and some.snapshot_bytes < every.snapshot_bytes // 2
    snapshot_index.take_out(str(path))
    monkeypatch.setattr(snapshot_index, "ALWAYS_BYTES", 10)
    before = path.read_bytes()
    assert snapshot_index.put_into(str(path)).snapshots == 0 and path.read_bytes() == before


def test_check_says_which_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.zst"
    write_walks(path, 1)
    snapshot_index.put_into(str(path))
    after = path.read_bytes()
    assert main(["check", str(path)]) == 0
    path.write_bytes(with_payloads(after, lambda number, payload: wrong_count(payload) if number == 2 else payload))
    capsys.readouterr()
    assert main(["check", str(path)]) == 1
    assert "snapshot 2, behind" in capsys.readouterr().out
    assert main(["index", "--remove", str(path)]) == 0
    assert main(["check", str(path)]) == 0


def wrong_count(payload: bytes) -> bytes:
    """With one address more that was equal to what the program recorded."""
    data = bytearray(payload)
    layout.parse(data).streams[0].row["addresses"] += 1
    return bytes(data)


def with_payloads(data: bytes, change: Any) -> bytes:
    """The trace with other payloads in its SNAP frames."""
    file = io.BytesIO()
    trace = TraceReader(data)
    writer = TraceWriter(file)
    number = 0
    for frame in trace.frames[1:]:
        if frame.type == b"SNAP":
            writer.frame(frame.type, change(number, trace.payload(frame)), frame.stream, frame.items)
            number += 1
        else:
            writer.compressed_frame(frame.type, trace.compressed(frame), frame.payload, frame.stream, frame.items)
    writer.close()
    return file.getvalue()


# -- what is refused -------------------------------------------------------------------------------


def replay_from_all(data: bytes) -> None:
    """Replay from each of a trace's snapshots; what events name is there."""
    with TraceReader(data) as reader:
        program = Program.from_images(reader.images())
        limits = {"instruction": len(program.ops), "loop": len(program.loops), "function": len(program.functions)}
        for start in Snapshots.in_trace(reader):
            events = 0
            for batch in Replay(reader, program, start=start).batches():
                for kind in set(batch.kind.tolist()):
                    named = next((field.name for field in BY_CODE[kind].fields if field.column == "subject"), "")
                    subjects = batch.subject[batch.kind == kind]
                    assert ((subjects < limits.get(named, NONE)) | (subjects == NONE)).all()
                events += len(batch)
                if events > 1 << 14:
                    break


def with_one_damaged(data: bytes, target: int, rng: random.Random) -> bytes:
    return with_payloads(data, lambda number, payload: damage(payload, rng) if number == target else payload)


def test_forged_snapshots(tmp_path: Path) -> None:
    refused = 0
    for seed in range(80):
        rng = random.Random(seed)
        _, after = indexed(tmp_path / "trace.zst", rng.choice(WITH_SNAPSHOTS), broken=seed % 2 == 0)
        forged = with_one_damaged(after, rng.randrange(len(naive.read(after).snapshots)), rng)
        bounded(forged, replay_from_all)
        try:
            replay_from_all(forged)
        except TracekitError as error:
            refused += "snapshot" in str(error)
    assert refused > 25


def test_what_cannot_be_indexed_is_refused_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 2, broken=False)
    whole = path.read_bytes()
    cut, fifo, link = tmp_path / "cut.zst", tmp_path / "fifo", tmp_path / "link"
    cut.write_bytes(whole[:-30])
    os.mkfifo(fifo)
    path.chmod(0o444)
    for name, why in {
        str(path): "is read-only: make it writable, or index a copy",
        str(cut): "ends early: only a whole trace can be indexed",
        str(fifo): "is no regular file",
        str(tmp_path / "none"): "No such file",
        "https://example.org/trace.zst": "is not a file of this machine: fetch it",
        str(tmp_path): "is no regular file",
    }.items():
        assert main(["index", name]) == 1
        message = capsys.readouterr().err
        assert why in message and message.count("\n") == 1
    assert path.read_bytes() == whole and cut.read_bytes() == whole[:-30]
    path.chmod(0o640)
    link.symlink_to(path)
    assert main(["index", str(link)]) == 0
    assert link.is_symlink() and len(path.read_bytes()) > len(whole)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_the_trace_stays_if_it_is_interrupted(
    error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.zst"
    write_random(path, random.Random(5), 2, broken=False)
    before = path.read_bytes()

    def stops(descriptor: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", stops)
    assert main(["index", str(path)]) != 0
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["trace.zst"]
