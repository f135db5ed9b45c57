"""Writes a trace frame by frame; what was written stays readable when the writer dies."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import zstandard

from tracekit.formats import container
from tracekit.formats.container import WITH_PLANES, Frame
from tracekit.formats.sources import build_sources

LEVEL = 1
"""Default level of compression: chunks are compressed while the program runs."""
IMAGE_LEVEL = 3
"""That of images, at least: each is written once."""

Buffer = bytes | bytearray | memoryview


class TraceWriter:
    """A trace that is being written, to a path or to a writable binary file.

    Frames may be added from several threads; each is written whole, and flushed. Order of calls: ``meta``, then
    ``image``, ``chunk``, ``sources`` in any order (an image before the chunks that use it), then ``done``, ``close``.
    """

    def __init__(self, target: str | Path | BinaryIO, level: int = LEVEL, version: int = WITH_PLANES) -> None:
        """``version``: of the format that the frames are written in; a reader of that version reads the trace."""
        self._owned = isinstance(target, (str, Path))
        self._file: BinaryIO = Path(target).open("wb") if isinstance(target, (str, Path)) else target  # noqa: SIM115
        self._level = level
        self._lock = threading.Lock()
        self._frames: list[Frame] = []
        self._offset = 0
        head = container.head_payload(version)
        self._append(b"HEAD", container.raw_zstd_frame(head), len(head))

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far."""
        return self._offset

    def meta(self, values: Mapping[str, Any]) -> None:
        """Add a META frame: what is known of the run when it starts."""
        self.frame(b"META", _json(values))

    def image(self, number: int, payload: Buffer) -> None:
        """Add an IMAG frame (``formats.image_frame.build_image`` makes the payload)."""
        self.frame(b"IMAG", payload, stream=number, level=max(self._level, IMAGE_LEVEL))

    def chunk(self, stream: int, records: int, payload: Buffer) -> None:
        """Add a chunk of a stream (``formats.chunk_codec`` or the recorder's encoder makes the payload)."""
        self.frame(b"CHNK", payload, stream, records)

    def sources(self, files: Mapping[str, bytes]) -> None:
        """Add the text of source files, by the path that the image tables name."""
        for payload in build_sources(files):
            self.frame(b"SRCS", payload)

    def done(self, values: Mapping[str, Any]) -> None:
        """Add the DONE frame, the last one."""
        self.frame(b"DONE", _json(values))

    def frame(self, kind: bytes, payload: Buffer, stream: int = 0, items: int = 0, level: int | None = None) -> None:
        """Compress `payload`, by default at the writer's level, and add it as a frame of type `kind`."""
        if len(payload) > container.MAX_PAYLOAD:
            raise ValueError(f"a payload of {len(payload)} bytes is more than a frame may hold")
        # One compressor per call: they are not for several threads.
        compressor = zstandard.ZstdCompressor(level=self._level if level is None else level)
        self._append(kind, compressor.compress(payload), len(payload), stream, items)

    def compressed_frame(
        self, kind: bytes, data: bytes, payload: int, stream: int = 0, items: int = 0, crc: int | None = None
    ) -> None:
        """Add a payload of `payload` bytes that was compressed elsewhere: `data` is one zstd frame that says its size.

        ``crc``: the CRC-32 of `data` where it is known already. Raises ValueError if the frame does not say its size.
        """
        if zstandard.frame_content_size(data) != payload:
            raise ValueError("the zstd frame does not declare its content size")
        self._append(kind, data, payload, stream, items, crc)

    def close(self) -> None:
        """After ``done``: write the seek table, and close the file if this writer opened it."""
        with self._lock:
            if self._frames and self._frames[-1].type == b"DONE":
                table = container.seek_table(self._frames)
                self._file.write(table)
                self._offset += len(table)
            self._frames.clear()
            self._file.flush()
            if self._owned:
                self._file.close()

    def content_hash(self) -> str:
        """The hash of the trace so far (``container.content_hash``); ask before ``close``."""
        return container.content_hash(self._frames)

    def _append(
        self, kind: bytes, data: bytes, payload: int, stream: int = 0, items: int = 0, crc: int | None = None
    ) -> None:
        crc = zlib.crc32(data) if crc is None else crc
        with self._lock:
            frame = Frame(self._offset, kind, stream, len(self._frames), items, payload, len(data), crc)
            self._file.write(frame.header())
            self._file.write(data)
            self._file.flush()
            self._frames.append(frame)
            self._offset = frame.end

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _json(values: Mapping[str, Any]) -> bytes:
    """UTF-8, whatever bytes the names of files and the words of commands are."""
    text = json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
