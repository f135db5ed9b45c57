"""The container: whole, cut short at every byte, damaged, newer, and read by zstd itself."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import struct
import subprocess
import threading
import zlib
from pathlib import Path

import pytest
import zstandard

from tests.naive import reader as naive
from tests.needs import needs
from tracekit.formats import container
from tracekit.formats.container import Frame
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.formats.writer import TraceWriter


def small_trace() -> bytes:
    file = io.BytesIO()
    with TraceWriter(file) as writer:
        writer.meta({"command": ["app", "ü"]})
        writer.frame(b"XTRA", b"a tool's own section", stream=9, items=3)
        writer.sources({"app.c": b"int main;\n", "empty.h": b""})
        writer.meta({"target": "x86_64"})
        writer.done({"status": 3})
    return file.getvalue()


def read_all(data: bytes) -> None:
    trace = TraceReader(data)
    for frame in trace.frames:
        trace.payload(frame)


def typed(kind: bytes, payload: bytes, sequence: int, offset: int = 0, size: int | None = None) -> bytes:
    """A frame as another writer might make it; `size` is the payload size it claims."""
    data = zstandard.compress(payload)
    frame = Frame(offset, kind, 0, sequence, 0, len(payload) if size is None else size, len(data), zlib.crc32(data))
    return frame.header() + data


def head(version: int = 1, oldest: int = 1) -> bytes:
    payload = container.head_payload(version, oldest)
    data = container.raw_zstd_frame(payload)
    return Frame(0, b"HEAD", 0, 0, 0, len(payload), len(data), zlib.crc32(data)).header() + data


def test_a_trace_holds_what_was_written() -> None:
    with TraceReader(small_trace()) as trace:
        assert trace.complete
        assert trace.meta == {"command": ["app", "ü"], "target": "x86_64"}
        assert trace.done == {"status": 3}
        assert trace.sources() == {"app.c": b"int main;\n", "empty.h": b""}
        assert [frame.type for frame in trace.frames] == [b"HEAD", b"META", b"XTRA", b"SRCS", b"META", b"DONE"]
        assert trace.payload(trace.frames[2]) == b"a tool's own section"
        other = naive.read(small_trace())
        assert (other.meta, other.done, other.sources) == (trace.meta, trace.done, trace.sources())
        assert other.content_hash == trace.content_hash


def test_the_magic_stands_at_a_fixed_offset() -> None:
    assert small_trace()[57:65] == b"TRACEKIT"


def test_cut_at_every_byte_whole_frames_are_read_and_it_is_said() -> None:
    data = small_trace()
    frames = TraceReader(data).frames
    for size in range(len(data)):
        whole = [frame for frame in frames if frame.end <= size]
        if not whole:
            with pytest.raises(TracekitError, match=r"first frame|not a tracekit trace"):
                TraceReader(data[:size])
            with pytest.raises(naive.DamagedTraceError):
                naive.read(data[:size])
            continue
        trace = TraceReader(data[:size])
        assert not trace.complete and list(trace.frames) == whole
        assert (trace.done is not None) == (len(whole) == len(frames))
        assert all(trace.payload(frame) is not None for frame in whole)
        other = naive.read(data[:size])
        assert not other.complete and len(other.frames) == len(whole)


def test_every_flipped_bit_is_noticed() -> None:
    data = small_trace()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << random.Random(at).randrange(8)
        with pytest.raises(TracekitError):
            read_all(bytes(damaged))


def test_bytes_after_the_end_are_refused() -> None:
    for rest in (b"\0", small_trace(), zstandard.compress(b"x")):
        with pytest.raises(TracekitError, match="seek table"):
            TraceReader(small_trace() + rest)


@pytest.mark.parametrize("data", [b"", b"TRACEKIT", b"\x28\xb5\x2f\xfd" + bytes(60), bytes(1000), b"#!/bin/sh\n" * 10])
def test_other_files_are_no_traces(data: bytes) -> None:
    with pytest.raises(TracekitError, match="This is not a tracekit trace"):
        TraceReader(data)


@pytest.mark.parametrize("data", [b"", b"TRACEKIT", b"#!/bin/sh\n" * 10])
def test_a_file_that_is_no_trace_is_named(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "app.sh"
    path.write_bytes(data)
    for given in (path, str(path)):
        with pytest.raises(TracekitError, match=f"^{re.escape(str(path))} is not a tracekit trace"):
            TraceReader(given)


def test_a_missing_file_and_a_directory_are_errors_with_a_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(TracekitError, match=str(path)):
            TraceReader(path)


def test_a_pipe_is_refused_with_a_sentence(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):  # it is refused before anything is read
            pipe.write_bytes(b"TRACEKIT")

    feed = threading.Thread(target=write, daemon=True)
    feed.start()
    with pytest.raises(TracekitError, match=r"pipe cannot be read from a pipe: a trace is a file\."):
        TraceReader(pipe)


def test_words_that_are_not_utf8_are_written(tmp_path: Path) -> None:
    word = os.fsdecode(b"caf\xe9")
    with TraceWriter(tmp_path / "t.zst") as writer:
        writer.meta({"command": [word, "é"]})
    with TraceReader(tmp_path / "t.zst") as reader:
        assert reader.meta["command"] == ["caf\ufffd", "é"]


def test_a_newer_trace_is_read_if_it_allows_it_and_refused_by_name_if_not() -> None:
    trace = TraceReader(head(7, 1) + typed(b"META", b'{"a": 1}', 1))
    assert (trace.version, trace.meta) == (7, {"a": 1})
    with pytest.raises(TracekitError, match=r"version 7 .* reader of version 4.* newer"):
        TraceReader(head(7, 4))
    with pytest.raises(TracekitError, match="contradict"):
        TraceReader(head(1, 0))


def test_a_left_out_frame_is_noticed() -> None:
    with pytest.raises(TracekitError, match="frame 1 is missing"):
        TraceReader(head() + typed(b"META", b"{}", 2))


@pytest.mark.parametrize("payload", [b"[]", b"{", b"\xff\xfe", b"[" * 200_000, b"1" * 5000, b"null"])
def test_metadata_that_is_no_object_is_refused(payload: bytes) -> None:
    trace = TraceReader(head() + typed(b"META", payload, 1))
    with pytest.raises(TracekitError, match="JSON object"):
        _ = trace.meta


def test_a_payload_never_grows_beyond_its_claim() -> None:
    bomb = bytes(8 << 20)
    for size in (100, len(bomb) - 1, len(bomb) + 1):
        trace = TraceReader(head() + typed(b"META", bomb, 1, size=size))
        with pytest.raises(TracekitError, match="claims"):
            _ = trace.meta
    with pytest.raises(TracekitError, match="most that the format allows"):
        TraceReader(head() + typed(b"META", b"", 1, size=container.MAX_PAYLOAD + 1))


def test_a_claim_that_the_bytes_cannot_hold_costs_nothing() -> None:
    single_segment_8_byte_size = 0xE0
    forged = struct.pack("<IBQ", 0xFD2FB528, single_segment_8_byte_size, 200 << 20) + (1).to_bytes(3, "little")
    frame = Frame(0, b"META", 0, 1, 0, 200 << 20, len(forged), zlib.crc32(forged))
    trace = TraceReader(head() + frame.header() + forged)
    with pytest.raises(TracekitError, match="claims"):
        _ = trace.meta


def test_a_writer_that_is_interrupted_leaves_a_trace() -> None:
    file = io.BytesIO()
    writer = TraceWriter(file)
    writer.meta({"a": 1})
    trace = TraceReader(file.getvalue())
    assert not trace.complete and trace.done is None and trace.meta == {"a": 1}


def test_frames_from_several_threads_are_whole() -> None:
    file = io.BytesIO()
    writer = TraceWriter(file)
    threads = [threading.Thread(target=lambda: [writer.meta({"x": "y" * 500}) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.done({})
    writer.close()
    assert TraceReader(file.getvalue()).complete


def test_payloads_compressed_elsewhere_are_taken_as_they_are() -> None:
    file = io.BytesIO()
    with TraceWriter(file) as writer:
        writer.compressed_frame(b"META", zstandard.compress(b'{"a":1}', 9), 7)
        with pytest.raises(ValueError, match="content size"):
            writer.compressed_frame(b"META", zstandard.ZstdCompressor(write_content_size=False).compress(b"{}"), 2)
        writer.done({})
    assert TraceReader(file.getvalue()).meta == {"a": 1}


def test_snapshots_do_not_change_the_name_of_a_trace() -> None:
    plain, with_snapshot, other = (TraceWriter(io.BytesIO()) for _ in range(3))
    with_snapshot.frame(b"SNAP", b"state")
    other.frame(b"XTRA", b"state")
    for writer in (plain, with_snapshot, other):
        writer.done({})
    assert plain.content_hash() == with_snapshot.content_hash() != other.content_hash()


@needs("zstd")
def test_zstd_accepts_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.zst"
    path.write_bytes(small_trace())
    subprocess.run(["zstd", "-q", "-t", str(path)], check=True)
    unpacked = subprocess.run(["zstd", "-q", "-d", "-c", str(path)], check=True, capture_output=True).stdout
    trace = TraceReader(path)
    assert unpacked == b"".join(trace.payload(frame) for frame in trace.frames)


def test_the_seek_table_finds_every_frame() -> None:
    data = small_trace()
    trace = TraceReader(data)
    count, _, magic = struct.unpack("<IBI", data[-9:])
    assert magic == 0x8F92EAB1 and count == 2 * len(trace.frames)
    entries = list(struct.iter_unpack("<II", data[-9 - 8 * count : -9]))
    at = 0
    for frame, (header, none), (compressed, size) in zip(trace.frames, entries[::2], entries[1::2]):
        assert (at, header, none, size) == (frame.offset, 48, 0, frame.payload)
        assert zstandard.decompress(data[at + 48 : at + 48 + compressed]) == trace.payload(frame)
        at += 48 + compressed


def test_a_writer_says_which_version_it_writes(tmp_path: Path) -> None:
    for version in range(1, container.VERSION + 1):
        with TraceWriter(tmp_path / "trace.zst", version=version) as writer:
            writer.meta({"a": 1})
            writer.meta({"b": 2})
            writer.done({})
            name = writer.content_hash()
        trace = TraceReader((tmp_path / "trace.zst").read_bytes())
        assert (trace.version, trace.oldest_reader, trace.content_hash) == (version, version, name)
        assert trace.meta == {"a": 1, "b": 2} and trace.complete
