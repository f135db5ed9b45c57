"""`tracekit export drmemtrace`: its records one by one, and what reads such files of DynamoRIO's own."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tracekit
from tests.naive.export import drmemtrace, packed_pieces
from tests.naive.trace_file import write_walks
from tests.naive.window import rows
from tracekit.cli import main
from tracekit.formats.export import drmemtrace as export
from tracekit.imports.importing import import_trace

Entry = tuple[int, int, int]

THREAD, EXIT, PID, HEADER, FOOTER, MARKER = 22, 23, 24, 25, 26, 28


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of three threads of random walks."""
    path = tmp_path_factory.mktemp("export") / "trace.zst"
    write_walks(path)
    return path


def chunks(path: Path) -> list[list[Entry]]:
    """The records of each chunk of an archive, which is whole."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"chunk.{number:04}" for number in range(len(archive.namelist()))]
        return [list(struct.iter_unpack("<HHQ", archive.read(name))) for name in archive.namelist()]


@pytest.mark.parametrize("size", [1, 7, 100, 10_000_000])
@pytest.mark.parametrize("buffer", [2, 3, 1 << 16])
def test_records(size: int, buffer: int, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CHUNK", size)
    monkeypatch.setattr(export, "BUFFER", buffer)
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "out.zip")]) == 0
    found = chunks(tmp_path / "out.zip")
    with tracekit.open(trace) as opened:
        events = rows(opened.batches(["load", "store"]))
    instructions = [sum(entry[0] == 10 for entry in chunk) for chunk in found]
    assert sum(instructions) == sum(event[4] != 0 for event in events) > 100
    assert instructions[:-1] == [size] * (len(found) - 1)
    assert [entry[:2] for entry in found[0][:8]] == [
        *((HEADER, 0), (MARKER, 12), (MARKER, 9), (THREAD, 4), (PID, 4)),
        *((MARKER, 10), (MARKER, 18), (MARKER, 20)),
    ]
    assert [entry[2] for entry in found[0][:3]] == [7, 7, 0x10080]
    assert found[0][7] == (MARKER, 20, size)
    assert [chunk[-1] for chunk in found[:-1]] == [(MARKER, 21, number) for number in range(len(found) - 1)]
    shown, skipped = 0, 0
    for number, chunk in enumerate(found):
        if number:
            assert chunk[0] == (MARKER, 22, shown)
            assert [entry[:2] for entry in chunk[1:3]] == [(MARKER, 2), (MARKER, 3)]
            skipped = 3
        shown += sum(entry[0] in (0, 1, 10, MARKER) for entry in chunk) - skipped
    assert found[-1][-1] == (FOOTER, 0, 0)
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "again.zip")]) == 0
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "out.zip").read_bytes()


def test_both_compressors_hold_the_same(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isal_zlib = pytest.importorskip("isal.isal_zlib")
    assert export.ISAL is isal_zlib
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "isal.zip")]) == 0
    monkeypatch.setattr(export, "ISAL", None)
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "zlib.zip")]) == 0
    assert chunks(tmp_path / "isal.zip") == chunks(tmp_path / "zlib.zip")
    assert (tmp_path / "isal.zip").read_bytes() != (tmp_path / "zlib.zip").read_bytes()


def test_threads_and_their_accesses(trace: Path, tmp_path: Path) -> None:
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "out.zip")]) == 0
    with tracekit.open(trace) as opened:
        events = rows(opened.batches(["load", "store"]))
    known = {stream: drmemtrace([e[1:] for e in events if e[0] == stream]) for stream in {e[0] for e in events}}
    found: dict[int, list[Entry]] = {}
    order, times, exits = [], [], []
    counts: list[int] = []
    for kind, size, value in chunks(tmp_path / "out.zip")[0]:
        if kind == THREAD:
            order.append(value - 1)
        elif kind in (0, 1, 10):
            found.setdefault(order[-1], []).append((kind, size, value))
        elif (kind, size) == (MARKER, 2):
            times.append(value)
        elif (kind, size) == (MARKER, 11):
            counts.append(value)
        elif kind == EXIT:
            exits.append(value - 1)
            assert order[-1] == value - 1
    assert found == known
    assert times == list(range(1, len(order) + 1))
    assert sorted(exits) == [0, 1, 2]
    assert counts == sorted(counts) == [sum(entry[0] == 10 for entry in known[stream]) for stream in exits]

    assert main(["export", "drmemtrace", str(trace), "--thread", "1", "-o", str(tmp_path / "one.zip")]) == 0
    (entries,) = chunks(tmp_path / "one.zip")
    assert [entry for entry in entries if entry[0] in (0, 1, 10)] == known[1]
    assert entries[2] == (MARKER, 9, 0x80)


@pytest.mark.parametrize("size", [50, 10_000_000])
def test_import_takes_it_back(size: int, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CHUNK", size)
    out, back = tmp_path / "out.zip", tmp_path / "back.zst"
    assert main(["export", "drmemtrace", str(trace), "-o", str(out)]) == 0
    import_trace("drmemtrace", str(out), back)
    assert main(["check", str(back)]) == 0
    with tracekit.open(trace) as opened, tracekit.open(back) as again:
        events = rows(opened.batches(["load", "store"]))
        threads = again.metadata["imported"]["threads"]
        counters = {int(row["op"]): int(row["counter"]) for row in again.tables["counters"]}
        found = [
            (threads[stream] - 1, code, counters[op], address, length)
            for stream, code, op, address, length in rows(again.batches(["load", "store"]))
        ]
    assert found == [piece for event in events for piece in packed_pieces(event)]
    assert main(["export", "drmemtrace", str(back), "-o", str(tmp_path / "twice.zip")]) == 0
    assert [chunk[3:] for chunk in chunks(tmp_path / "twice.zip")] != []
    import_trace("drmemtrace", str(tmp_path / "twice.zip"), tmp_path / "twice.zst")
    with tracekit.open(tmp_path / "twice.zst") as twice:
        assert rows(twice.batches(["load", "store"])) == rows(tracekit.open(back).batches(["load", "store"]))
        assert twice.metadata["imported"]["threads"] == threads


@pytest.mark.parametrize("architecture", [0x8, 0x10, 0x20, 0x40])
def test_the_architecture_of_an_imported_trace(architecture: int, tmp_path: Path) -> None:
    begun = [(HEADER, 0, 7), (MARKER, 12, 7), (MARKER, 9, 0xE00 | architecture), (THREAD, 4, 5), (PID, 4, 5)]
    entries = [*begun, (10, 4, 16), (0, 8, 32), (FOOTER, 0, 0)]
    (tmp_path / "app.trace").write_bytes(b"".join(struct.pack("<HHQ", *entry) for entry in entries))
    import_trace("drmemtrace", str(tmp_path / "app.trace"), tmp_path / "back.zst")
    assert main(["export", "drmemtrace", str(tmp_path / "back.zst"), "-o", str(tmp_path / "out.zip")]) == 0
    (found,) = chunks(tmp_path / "out.zip")
    assert found[2] == (MARKER, 9, 0x80 | architecture)


def test_a_trace_without_accesses(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    import_trace("lackey", str(tmp_path / "log"), tmp_path / "trace.zst")
    assert main(["export", "drmemtrace", str(tmp_path / "trace.zst"), "-o", str(tmp_path / "out.zip")]) == 0
    (entries,) = chunks(tmp_path / "out.zip")
    assert [entry[0] for entry in entries if entry[0] != MARKER] == [HEADER, THREAD, PID, EXIT, FOOTER]
    import_trace("drmemtrace", str(tmp_path / "out.zip"), tmp_path / "back.zst")


def test_standard_output(trace: Path, tmp_path: Path) -> None:
    piped = subprocess.run(
        [sys.executable, "-m", "tracekit", "export", "drmemtrace", str(trace)], stdout=subprocess.PIPE, check=True
    )
    (tmp_path / "piped.zip").write_bytes(piped.stdout)
    assert main(["export", "drmemtrace", str(trace), "-o", str(tmp_path / "out.zip")]) == 0
    assert chunks(tmp_path / "piped.zip") == chunks(tmp_path / "out.zip")
