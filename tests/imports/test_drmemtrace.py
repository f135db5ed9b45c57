"""Traces of drmemtrace's, built record by record, against a reader that knows nothing of pieces and tickets."""

from __future__ import annotations

import struct
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive import imports as naive
from tracekit.cli import main
from tracekit.formats import drmemtrace as records
from tracekit.formats.errors import TracekitError
from tracekit.imports import importing, trace_builder

Entry = naive.Entry

HEADER, THREAD, EXIT, PID, FOOTER, MARKER = 25, 22, 23, 24, 26, 28
LAST: Entry = (FOOTER, 0, 0)
CHUNK_END: Entry = (MARKER, 21, 0)


def begun(thread: int, version: int = 7) -> list[Entry]:
    """How a file of one thread begins."""
    return [(HEADER, 0, version), (MARKER, 12, version), (MARKER, 9, 3648), (THREAD, 4, thread), (PID, 4, 1)]


def packed(entries: Sequence[Entry]) -> bytes:
    """The bytes of records."""
    return b"".join(struct.pack("<HHQ", *entry) for entry in entries)


def archive(path: Path, chunks: Sequence[Sequence[Entry]]) -> None:
    """An archive with these chunks."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number, chunk in enumerate(chunks):
            file.writestr(f"chunk.{number:04}", packed(chunk))


def imported(path: Path, out: Path, with_kernel: bool = False) -> list[tuple[int, naive.Access]]:
    """Threads and accesses of the trace made of a file or folder, in the order of replay; it passes every check."""
    importing.import_trace("drmemtrace", str(path), out, with_kernel=with_kernel)
    assert main(["check", str(out)]) == 0
    with tracekit.open(out) as trace:
        counter = {int(row["op"]): int(row["counter"]) for row in trace.tables["counters"]}
        threads = trace.metadata["imported"]["threads"]
        return [
            (threads[batch.stream], (kind, counter.get(instruction), address, size))
            for batch in trace.batches(["load", "store"], ["subject", "address", "size"])
            for kind, instruction, address, size in zip(
                batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist()
            )
        ]


ADDRESS = st.one_of(st.integers(0, 100), st.integers(0, 2**64 - 1))
COUNTER = st.one_of(st.integers(0x400000, 0x400020), st.integers(0, 2**63))
ENTRY = st.one_of(
    st.tuples(st.sampled_from([0, 1]), st.sampled_from([1, 4, 8, 64, 65, 4096, 0]), ADDRESS),
    st.tuples(st.sampled_from([0, 1]), st.just(8), ADDRESS),
    st.tuples(st.sampled_from(sorted(naive.INSTRUCTIONS)), st.integers(0, 15), COUNTER),
    st.tuples(st.just(MARKER), st.just(2), st.integers(1, 12)),
    st.tuples(st.just(THREAD), st.just(4), st.integers(1, 4)),
    st.tuples(st.just(MARKER), st.sampled_from([3, 4, 21, 22, 25, 27, 28, 34, 35, 101]), ADDRESS),
    st.tuples(st.sampled_from([2, 9, 18, 19, 20, 21, 23, 27, 32, 46]), st.integers(0, 100), ADDRESS),
)
BUNDLE = st.tuples(st.just(17), st.integers(0, 8), st.integers(0, 2**64 - 1))
ENCODED = st.tuples(st.just(47), st.integers(0, 7), ADDRESS)
TIME = st.integers(1, 6).map(lambda time: [(MARKER, 2, time)])
STEP = st.tuples(st.sampled_from([0, 1]), st.integers(0x400000, 0x400020), ADDRESS).map(
    lambda made: [(10, 4, made[1]), (made[0], 8, made[2])]
)
PIECE = st.one_of(
    STEP,
    TIME,
    st.tuples(TIME, STEP).map(lambda pair: [*pair[0], *pair[1]]),
    ENTRY.map(lambda entry: [entry]),
    BUNDLE.map(lambda entry: [(10, 4, 0x400100), entry]),
    st.tuples(ENCODED, ENCODED).map(lambda pair: [*pair, (10, 14, 0x400200)]),
)
FILE = st.tuples(st.integers(1, 4), st.lists(PIECE, min_size=3, max_size=15)).map(
    lambda pair: [*begun(pair[0]), *(entry for piece in pair[1] for entry in piece)]
)


@given(st.lists(FILE, min_size=1, max_size=4), st.booleans(), st.integers(1, 70), st.data())
def test_random_files(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[Entry]],
    with_kernel: bool,
    piece: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("drmemtrace")
    (folder / "trace").mkdir()
    for number, entries in enumerate(files):
        if data.draw(st.booleans()):
            cut = data.draw(st.integers(len(begun(1)), len(entries)))
            chunks = [[*entries[:cut], CHUNK_END], [*entries[cut:], LAST]]
            archive(folder / "trace" / f"app.{number}.trace.zip", chunks)
        else:
            (folder / "trace" / f"app.{number}.trace").write_bytes(packed([*entries, LAST]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trace_builder, "CHUNK", data.draw(st.integers(2, 10)))
        patched.setattr("tracekit.imports.files.BLOCK", piece)
        patched.setattr("tracekit.imports.drmemtrace_files.BLOCK", piece)
        found = imported(folder, folder / "out.zst", with_kernel)
    assert found == naive.drmemtrace(files, with_kernel)


@settings(max_examples=30, deadline=None)
@given(files=st.lists(FILE, min_size=1, max_size=3), piece=st.integers(1, 400))
def test_random_files_of_32_bits(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Entry]], piece: int
) -> None:
    """Records have 8 bytes, and what is longer is cut."""
    folder = tmp_path_factory.mktemp("drmemtrace")
    cut = [[(kind, size, value & 0xFFFF_FFFF) for kind, size, value in entries] for entries in files]
    for number, entries in enumerate(cut):
        data = b"".join(struct.pack("<HHI", *entry) for entry in [*entries, LAST])
        if number % 2:
            (folder / f"app.{number}.trace").write_bytes(data)
        else:
            with zipfile.ZipFile(folder / f"app.{number}.trace.zip", "w", zipfile.ZIP_STORED) as file:
                file.writestr("chunk.0000", data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tracekit.imports.files.BLOCK", piece)
        patched.setattr("tracekit.imports.drmemtrace_files.BLOCK", piece)
        found = imported(folder, folder / "out.zst")
    assert found == naive.drmemtrace(cut, False)


def test_a_trace_in_lz4(tmp_path: Path) -> None:
    frame = pytest.importorskip("lz4.frame")
    entries = [*begun(71), (10, 4, 16), (1, 8, 8), LAST]
    (tmp_path / "app.trace.lz4").write_bytes(frame.compress(packed(entries)))
    assert imported(tmp_path, tmp_path / "out.zst") == [(71, (2, 16, 8, 8))]


def test_without_lz4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    (tmp_path / "app.trace.lz4").write_bytes(b"\x04\x22\x4d\x18")
    with pytest.raises(TracekitError, match=r"needs lz4, which is not installed: pip install 'tracekit\[lz4\]'"):
        imported(tmp_path / "app.trace.lz4", tmp_path / "out.zst")


def test_what_meta_says(tmp_path: Path) -> None:
    first = [*begun(71), (10, 4, 16), (0, 8, 1), (MARKER, 27, 1), (10, 2, 99), (0, 8, 2), (MARKER, 28, 1), LAST]
    second = [*begun(72, 5), (MARKER, 2, 1), (10, 4, 16), (17, 3, 0x010203), (1, 8, 1), (29, 4, 16), LAST]
    (tmp_path / "app.1.trace").write_bytes(packed(first))
    (tmp_path / "app.2.trace").write_bytes(packed(second))
    (tmp_path / "cpu_schedule.bin.zip").write_bytes(b"something else")
    assert imported(tmp_path, tmp_path / "out.zst") == [(71, (1, 16, 1, 8)), (72, (2, 25, 1, 8))]
    with tracekit.open(tmp_path / "out.zst") as trace:
        assert trace.metadata["imported"] == {
            "format": "drmemtrace",
            "instructions": 6,
            "versions": [5, 7],
            "file_types": [3648],
            "threads": [71, 72],
            "kernel_accesses": 1,
        }


def test_two_threads_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "app.trace").write_bytes(
        packed(
            [*begun(5), (10, 4, 16), (1, 8, 64), (THREAD, 4, 6), (10, 4, 20), (0, 8, 64), (THREAD, 4, 5)]
            + [(10, 4, 24), (0, 8, 64), LAST]
        )
    )
    imported(tmp_path / "app.trace", tmp_path / "out.zst")
    rows = tracekit.analyze(tmp_path / "out.zst", "accesses", window={"thread": 1}).result["instructions"]
    assert [(row["instruction"]["file"], row["loads"]) for row in rows] == [("0x14", 1)]


WRONG: list[tuple[list[Entry], str]] = [
    ([*begun(1, 8), LAST], "{file} has version 8 of drmemtrace's format; versions 1 to 7 are read."),
    ([(HEADER, 0, 0), LAST], "{file} has version 0 of drmemtrace's format; versions 1 to 7 are read."),
    (begun(1), "{file} ends too early, at byte 60: no record says that it is over."),
    ([], "{file} ends too early, at byte 0: no record says that it is over."),
    (begun(1)[3:], "{file} is no trace of drmemtrace's, or damaged: at byte 0 there is no record of drmemtrace's."),
    (
        [*begun(1), (50, 0, 0), LAST],
        "{file} is no trace of drmemtrace's, or damaged: at byte 60 there is no record of drmemtrace's.",
    ),
    (
        [(HEADER, 0, 7), (0, 8, 8), LAST],
        "{file} is no trace of drmemtrace's, or damaged: at byte 12 there is an access of no thread.",
    ),
    (
        [*begun(1), (47, 8, 0), (47, 8, 0), LAST],
        "{file} is no trace of drmemtrace's, or damaged: at byte 72 there is no record of drmemtrace's.",
    ),
    (
        [*begun(1), (17, 2, 0), LAST],
        "{file} is no trace of drmemtrace's, or damaged: at byte 60 there is no record of drmemtrace's.",
    ),
]


@pytest.mark.parametrize("entries, message", WRONG)
def test_what_is_damaged(entries: list[Entry], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "app.trace"
    file.write_bytes(packed(entries))
    assert main(["import", "drmemtrace", str(file), "-o", str(tmp_path / "out.zst")]) == 1
    assert capfd.readouterr().err == f"tracekit: {message.format(file=file)}\n"
    assert list(tmp_path.iterdir()) == [file]


def test_damaged_archives(tmp_path: Path) -> None:
    file, out = tmp_path / "app.trace.zip", tmp_path / "out.zst"
    archive(file, [[*begun(1), (10, 4, 16)], [LAST]])
    with pytest.raises(TracekitError, match=r"is damaged: chunk\.0000 does not end as a chunk does\.$"):
        imported(file, out)
    archive(file, [[*begun(1), *[(10, 4, place * place) for place in range(999)], CHUNK_END], [LAST]])
    assert imported(file, out) == []
    whole = file.read_bytes()
    for cut in (5, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises(TracekitError, match=f"^{file} is damaged: "):
            imported(file, out)
    for place in (100, len(whole) // 3):
        wrong = bytearray(whole)
        wrong[place] ^= 255
        file.write_bytes(wrong)
        with pytest.raises(TracekitError, match=f"^{file} is damaged: "):
            imported(file, out)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, is_begun: bool) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "app.trace").write_bytes((packed(begun(1)) if is_begun else b"") + data)
    try:
        imported(folder / "app.trace", folder / "out.zst")
    except TracekitError as error:
        message = str(error)
    else:
        return
    assert message.endswith(".")


def test_folders_that_hold_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"holds no trace of drmemtrace's: no file ends in"):
        imported(tmp_path, tmp_path / "out.zst")
    (tmp_path / "app.memtrace.sz").write_bytes(b"")
    with pytest.raises(TracekitError, match=r"app\.memtrace\.sz is compressed with Snappy: decompress it first"):
        imported(tmp_path, tmp_path / "out.zst")


def test_what_was_not_made_a_trace(tmp_path: Path) -> None:
    raw = tmp_path / "app.1.raw.lz4"
    raw.write_bytes(b"")
    for path in (raw, tmp_path):
        with pytest.raises(TracekitError, match=r"what DynamoRIO records: make a trace of it with drraw2trace first"):
            imported(path, tmp_path / "out.zst")


def test_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "app.trace", tmp_path / "out.zst"
    file.write_bytes(packed([*begun(1), (MARKER, 34, 1), (10, 4, 16), (0, 8, 8), LAST]))
    assert main(["import", "lackey", str(file), "-o", str(out), "--kernel"]) == 2
    assert "--kernel is for drmemtrace" in capfd.readouterr().err
    assert main(["import", "drmemtrace", str(file), "-o", str(out), "--kernel"]) == 0
    assert tracekit.analyze(out, "accesses").result["summary"]["loads"] == 1


def test_an_entry_has_twelve_bytes() -> None:
    assert records.ENTRY.itemsize == 12
    assert {name: place for name, (_, place) in records.ENTRY.fields.items()} == {  # type: ignore[union-attr,misc]
        "type": 0,
        "size": 2,
        "value": 4,
    }
