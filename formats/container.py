"""The container of a trace: typed frames, their checksums, the seek table, the content hash (SPEC.md, "Container")."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import zstandard

from tracekit.formats.errors import TracekitError

MAGIC = b"TRACEKIT"
VERSION = 3
"""The newest version that this code reads; the recorder writes it."""
OLDEST_READER = 3
"""The oldest reader version that can read that."""
WITH_PLANES = 3
"""The version that units in planes need, as ``image_frame.build_image`` makes them."""

MAX_PAYLOAD = 256 << 20
"""Bytes of a decompressed payload at most."""

SKIPPABLE_MAGIC = 0x184D2A50
SEEK_TABLE_MAGIC = 0x184D2A5E
ZSTD_MAGIC = 0xFD2FB528
"""How a frame of zstd with data begins; a trace begins with a skippable one."""
SEEK_TABLE_FOOTER = 0x8F92EAB1

HEADER = struct.Struct("<II4sIIIQQII")
CONTENT_BYTES = HEADER.size - 8
_SEEK_ENTRY = struct.Struct("<II")
_SEEK_FOOTER = struct.Struct("<IBI")

_RAW_BLOCK_MAX = 255
_BLOCK_MAX = 128 << 10
"""What one block of a zstd frame, three bytes or more, decompresses to at most."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A typed frame: its header's fields and where it stands in the file (``offset``, bytes)."""

    offset: int
    type: bytes
    stream: int
    sequence: int
    items: int
    payload: int
    compressed: int
    payload_crc: int

    @property
    def end(self) -> int:
        """Offset of the byte after the frame."""
        return self.offset + HEADER.size + self.compressed

    def header(self) -> bytes:
        """The 48 bytes of the frame's header."""
        fields = struct.pack(
            "<4sIIIQQI",
            self.type,
            self.stream,
            self.sequence,
            self.items,
            self.payload,
            self.compressed,
            self.payload_crc,
        )
        return struct.pack("<II", SKIPPABLE_MAGIC, CONTENT_BYTES) + fields + struct.pack("<I", zlib.crc32(fields))

    def __str__(self) -> str:
        return f"frame {self.sequence} ({self.type.decode('ascii', 'replace')}, offset {self.offset})"


@dataclass(frozen=True)
class Layout:
    """What a scan of a file found: its whole typed frames in order, and whether anything is missing after them."""

    frames: tuple[Frame, ...]
    complete: bool


def parse_header(data: bytes, offset: int) -> Frame:
    """The frame whose header is `data` (48 bytes, found at `offset`). Raises TracekitError if it is no such header."""
    magic, content, kind, stream, sequence, items, payload, compressed, payload_crc, crc = HEADER.unpack(data)
    if magic != SKIPPABLE_MAGIC or content != CONTENT_BYTES or zlib.crc32(data[8:44]) != crc:
        raise TracekitError(f"The trace is damaged: there is no frame header at offset {offset}.")
    if payload > MAX_PAYLOAD:
        raise TracekitError(
            f"The trace is damaged: the frame at offset {offset} claims {payload} bytes; "
            f"{MAX_PAYLOAD} is the most that the format allows."
        )
    return Frame(offset, kind, stream, sequence, items, payload, compressed, payload_crc)


def scan(file: BinaryIO, name: str = "This") -> Layout:
    """Find the typed frames of a seekable `file` by their headers alone; payloads are not read.

    A file that ends early gives its whole frames and ``complete`` False. Raises TracekitError for a file (`name` is
    what the sentence calls it) that is not a trace, or that holds anything but typed frames and one seek table,
    and for a pipe.
    """
    if not file.seekable():
        raise TracekitError(f"{name} cannot be read from a pipe: a trace is a file.")
    size = file.seek(0, os.SEEK_END)
    offset = 0
    frames: list[Frame] = []
    while size - offset >= HEADER.size and (not frames or frames[-1].type != b"DONE"):
        file.seek(offset)
        data = file.read(HEADER.size)
        if offset == 0 and not begins_as_trace(data):
            raise TracekitError(_no_trace(data, name))
        frame = parse_header(data, offset)
        if frame.sequence != len(frames):
            raise TracekitError(f"The trace is damaged: frame {len(frames)} is missing before offset {offset}.")
        if frame.end > size:
            break
        frames.append(frame)
        offset = frame.end
    if not frames:
        file.seek(0)
        _refuse_beginning(file.read(HEADER.size), name)
    if frames[-1].type != b"DONE":
        return Layout(tuple(frames), False)
    file.seek(offset)
    return Layout(tuple(frames), _ends_with(file, seek_table(frames), offset))


def begins_as_trace(data: bytes) -> bool:
    """Whether these are the first bytes, 12 or more, of a trace."""
    return data[:8] == struct.pack("<II", SKIPPABLE_MAGIC, CONTENT_BYTES) and data[8:12] == b"HEAD"


def _refuse_beginning(data: bytes, name: str) -> None:
    if struct.pack("<II4s", SKIPPABLE_MAGIC, CONTENT_BYTES, b"HEAD").startswith(data[:12]) and data:
        raise TracekitError("The trace ends inside its first frame: nothing was recorded.")
    raise TracekitError(_no_trace(data, name))


def _no_trace(data: bytes, name: str) -> str:
    if data[:1] in (b"{", b"[") or data[:4] == struct.pack("<I", ZSTD_MAGIC):
        return (
            f"{name} is not a tracekit trace; if `tracekit analyze -o` wrote it, it is a profile, which report, "
            "annotate, query, top, export, diff and merge read."
        )
    return f"{name} is not a tracekit trace."


def _ends_with(file: BinaryIO, table: bytes, offset: int) -> bool:
    """Whether the rest of the file is the seek table; False if it is a beginning of it. Raises for anything else."""
    rest = file.read(len(table) + 1)
    if rest == table:
        return True
    if len(rest) < len(table) and table.startswith(rest):
        return False
    raise TracekitError(f"The trace is damaged: what follows its last frame (offset {offset}) is not its seek table.")


def seek_table(frames: Iterable[Frame]) -> bytes:
    """The skippable frame of the zstd seekable format for `frames`: an entry for each header and each payload."""
    entries = b"".join(
        _SEEK_ENTRY.pack(HEADER.size, 0) + _SEEK_ENTRY.pack(frame.compressed, frame.payload) for frame in frames
    )
    footer = _SEEK_FOOTER.pack(len(entries) // _SEEK_ENTRY.size, 0, SEEK_TABLE_FOOTER)
    return struct.pack("<II", SEEK_TABLE_MAGIC, len(entries) + len(footer)) + entries + footer


def content_hash(frames: Iterable[Frame]) -> str:
    """The hash that names a trace: BLAKE2b-128, in hex, over the headers of all typed frames but SNAP.

    The sequence numbers are left out, so that a snapshot put into the file does not change it.
    """
    digest = hashlib.blake2b(digest_size=16)
    for frame in frames:
        if frame.type != b"SNAP":
            header = frame.header()
            digest.update(header[8:16] + header[20:44])
    return digest.hexdigest()


def read_compressed(file: BinaryIO, frame: Frame) -> bytes:
    """Read a frame's compressed payload. Raises TracekitError that names the frame if it fails its checksum."""
    file.seek(frame.offset + HEADER.size)
    data = file.read(frame.compressed)
    if len(data) != frame.compressed or zlib.crc32(data) != frame.payload_crc:
        raise TracekitError(f"The trace is damaged: {frame} does not match its checksum.")
    return data


def decompress(data: bytes, frame: Frame) -> bytes:
    """Decompress one zstd frame to exactly ``frame.payload`` bytes. Raises TracekitError that names the frame if not.

    Allocates no more than `data` can decompress to, and at most `MAX_PAYLOAD`.
    """
    try:
        claimed = zstandard.frame_content_size(data)
    except zstandard.ZstdError:
        claimed = None
    if claimed != frame.payload or frame.payload > MAX_PAYLOAD or frame.payload > len(data) // 3 * _BLOCK_MAX:
        raise TracekitError(f"The trace is damaged: {frame} does not hold the {frame.payload} bytes that it claims.")
    try:
        payload = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise TracekitError(f"The trace is damaged: {frame} cannot be decompressed ({error}).") from error
    if len(payload) != frame.payload:
        raise TracekitError(f"The trace is damaged: {frame} does not hold the {frame.payload} bytes that it claims.")
    return payload


def raw_zstd_frame(payload: bytes) -> bytes:
    """A zstd frame that holds `payload` (255 bytes at most) uncompressed, in one raw block."""
    if len(payload) > _RAW_BLOCK_MAX:
        raise ValueError(f"{len(payload)} bytes do not fit the one-byte content size")
    single_segment = 0x20
    last_raw_block = (len(payload) << 3 | 1).to_bytes(3, "little")
    return struct.pack("<IBB", ZSTD_MAGIC, single_segment, len(payload)) + last_raw_block + payload


def head_payload(version: int, oldest_reader: int | None = None) -> bytes:
    """The payload of HEAD; without `oldest_reader`, that of the version."""
    if oldest_reader is None:
        oldest_reader = OLDEST_READER if version == VERSION else version
    return MAGIC + struct.pack("<II", version, oldest_reader)


def parse_head(frame: Frame, payload: bytes) -> tuple[int, int]:
    """(version, oldest reader version) of a trace. Raises TracekitError for a trace that needs a newer reader."""
    if frame.type != b"HEAD" or len(payload) < 16 or payload[:8] != MAGIC:
        raise TracekitError("The trace is damaged: it does not begin with a HEAD frame.")
    version, oldest_reader = struct.unpack_from("<II", payload, 8)
    if oldest_reader > VERSION:
        raise TracekitError(
            f"The trace has format version {version} and needs a reader of version {oldest_reader}; "
            f"this tracekit reads version {VERSION}: install a newer one."
        )
    if not 1 <= oldest_reader <= version:
        raise TracekitError("The trace is damaged: its versions contradict each other.")
    return version, oldest_reader


def in_memory(data: bytes) -> BinaryIO:
    """A file over `data`."""
    return io.BytesIO(data)


def frames_of(frames: Sequence[Frame], kind: bytes) -> tuple[Frame, ...]:
    """The frames of one type, in order."""
    return tuple(frame for frame in frames if frame.type == kind)
