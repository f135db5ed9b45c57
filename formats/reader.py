"""Reads a trace: what the container says, images, and the chunks of each stream."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from tracekit.formats import container, remote
from tracekit.formats.chunk import Chunk
from tracekit.formats.container import Frame
from tracekit.formats.errors import TracekitError
from tracekit.formats.image_frame import Image
from tracekit.formats.sources import parse_sources


class TraceReader:
    """A trace, from a path, from bytes or from a seekable binary file. Payloads are read when they are asked for.

    Raises TracekitError, here and in every method, for a file that is no trace, needs a newer reader or is damaged.
    """

    def __init__(self, source: str | Path | bytes | BinaryIO) -> None:
        self._owned = not hasattr(source, "read")
        self._lock = threading.Lock()
        self._file = _open(source)
        try:
            layout = container.scan(self._file, str(source) if isinstance(source, str | Path) else "This")
            self.frames: tuple[Frame, ...] = layout.frames
            """The typed frames in order, those of unknown types included."""
            self.complete: bool = layout.complete
            """False if the file ends early; what there is of it can be read."""
            self.version, self.oldest_reader = container.parse_head(self.frames[0], self.payload(self.frames[0]))
        except BaseException:
            self.close()
            raise
        self._images: list[Image] | None = None
        self._chunks: dict[int, list[Frame]] | None = None

    @property
    def content_hash(self) -> str:
        """The hash that names the trace (hex)."""
        return container.content_hash(self.frames)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file that belong to whole frames, without the seek table."""
        return self.frames[-1].end

    @property
    def meta(self) -> dict[str, Any]:
        """What was known of the run when it started: all META frames, later ones add to earlier ones."""
        values: dict[str, Any] = {}
        for frame in container.frames_of(self.frames, b"META"):
            values.update(self._json(frame))
        return values

    @property
    def done(self) -> dict[str, Any] | None:
        """What was known when the run had ended; None if the file ends early."""
        last = self.frames[-1]
        return self._json(last) if last.type == b"DONE" else None

    @property
    def cut(self) -> str:
        """Why the trace stops before its program did, though the file does not end early; empty if it does not."""
        return str((self.done or {}).get("cut", ""))

    def images(self) -> list[Image]:
        """The images of the process, by their numbers, which count from 0."""
        if self._images is None:
            images = [
                _of_frame(frame, Image.parse, self.payload(frame))
                for frame in container.frames_of(self.frames, b"IMAG")
            ]
            for number, (frame, image) in enumerate(zip(container.frames_of(self.frames, b"IMAG"), images)):
                if image.number != number or frame.stream != number:
                    raise TracekitError(f"The trace is damaged: {frame} is not image {number}.")
            self._images = images
        return self._images

    @property
    def build(self) -> tuple[tuple[Any, ...], ...]:
        """What tells the program from others: the hash of each unit, image by image."""
        return tuple(tuple(unit.hash for unit in image.units) for image in self.images())

    def sources(self) -> dict[str, bytes]:
        """The source files that the trace carries: path -> contents."""
        files: dict[str, bytes] = {}
        for frame in container.frames_of(self.frames, b"SRCS"):
            files.update(parse_sources(self.payload(frame)))
        return files

    def streams(self) -> Sequence[int]:
        """The numbers of the streams, ascending."""
        return sorted({frame.stream for frame in container.frames_of(self.frames, b"CHNK")})

    def chunk_frames(self, stream: int | None = None) -> Sequence[Frame]:
        """The CHNK frames of one stream, or of all, in order."""
        if stream is None:
            return container.frames_of(self.frames, b"CHNK")
        if self._chunks is None:
            chunks: defaultdict[int, list[Frame]] = defaultdict(list)
            for frame in container.frames_of(self.frames, b"CHNK"):
                chunks[frame.stream].append(frame)
            self._chunks = chunks
        return self._chunks.get(stream, [])

    def chunk(self, frame: Frame) -> Chunk:
        """The chunk in a CHNK frame."""
        chunk: Chunk = _of_frame(frame, Chunk.parse, self.payload(frame))
        if chunk.records != frame.items:
            raise TracekitError(f"The trace is damaged: {frame} does not hold the {frame.items} records it claims.")
        return chunk

    def chunks(self, stream: int) -> Iterator[Chunk]:
        """The chunks of a stream, in order, one at a time."""
        for frame in self.chunk_frames(stream):
            yield self.chunk(frame)

    def payload(self, frame: Frame) -> bytes:
        """A frame's payload, checked and decompressed; safe to call from several threads."""
        return container.decompress(self.compressed(frame), frame)

    def compressed(self, frame: Frame) -> bytes:
        """A frame's payload as it stands in the file, checked; safe to call from several threads."""
        with self._lock:
            return container.read_compressed(self._file, frame)

    def close(self) -> None:
        """Close the file if this reader opened it."""
        if self._owned:
            self._file.close()

    def __enter__(self) -> TraceReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _json(self, frame: Frame) -> dict[str, Any]:
        try:
            values = json.loads(self.payload(frame))
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise TracekitError(f"The trace is damaged: {frame} holds no JSON object.")
        return values


def _of_frame(frame: Frame, parse: Any, payload: bytes) -> Any:
    """What `parse` makes of a payload; its complaint names the frame."""
    try:
        return parse(payload)
    except TracekitError as error:
        raise TracekitError(f"The trace is damaged: {frame}: {error}") from None


def _open(source: str | Path | bytes | BinaryIO) -> BinaryIO:
    if isinstance(source, bytes):
        return container.in_memory(source)
    if isinstance(source, str) and remote.is_url(source):
        return cast(BinaryIO, remote.RemoteFile(source))
    if isinstance(source, (str, Path)):
        try:
            return Path(source).open("rb")
        except OSError as error:
            raise TracekitError(f"Cannot read {source}: {error.strerror}.") from error
    return source
