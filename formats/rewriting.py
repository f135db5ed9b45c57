"""Puts snapshots into a trace's file, or takes them out: the file is replaced when the new one is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import zstandard

from tracekit.formats import container
from tracekit.formats.container import Frame
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.formats.remote import is_url
from tracekit.formats.snapshots import LAYOUT


def require_replaceable(path: str) -> Path:
    """The file that a path names, behind links. Raises TracekitError if its contents cannot be replaced."""
    if is_url(path):
        raise TracekitError(f"{path} is not a file of this machine: fetch it, and index the copy.")
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from error
    if not stat.S_ISREG(mode):
        raise TracekitError(f"{path} is no regular file, which alone can be indexed.")
    # Replacing needs the folder alone; a file that its owner has made read-only shall stay as it is all the same.
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise TracekitError(f"{path} is read-only: make it writable, or index a copy.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise TracekitError(f"{path} cannot be replaced: the folder that it lies in is read-only.")
    return target


def replace_snapshots(trace: TraceReader, target: Path, payloads: Sequence[bytes]) -> int:
    """Write the trace to `target`, its own file, with these SNAP payloads, zstd frames, in place of those that it has.

    Those that have another layout stay. Returns the bytes that the file has then. Raises TracekitError for a frame that
    fails its checksum, and if the file cannot be written; then nothing has changed.
    """
    try:
        with _replacing(target) as file:
            return _write(trace, payloads, file)
    except OSError as error:
        raise TracekitError(f"Cannot write {target}: {error.strerror}.") from error


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file beside `target` that takes its place at the end; it goes if anything is raised."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        with contextlib.suppress(OSError):  # only its owner, or root, can
            found = target.stat()
            os.chown(name, found.st_uid, found.st_gid)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _write(trace: TraceReader, payloads: Sequence[bytes], file: BinaryIO) -> int:
    kept = [frame for frame in trace.frames if frame.type != b"SNAP" or not _is_known(trace, frame)]
    written: list[Frame] = []
    end = 0
    for frame in kept:
        if frame.type == b"DONE":
            for data in payloads:
                end = _add(file, written, end, _snap(data), data)
        end = _add(file, written, end, frame, trace.compressed(frame))
    table = container.seek_table(written)
    file.write(table)
    return end + len(table)


def _add(file: BinaryIO, written: list[Frame], offset: int, frame: Frame, data: bytes) -> int:
    """Write a frame as the next one. Returns the offset behind it."""
    placed = replace(frame, offset=offset, sequence=len(written))
    file.write(placed.header())
    file.write(data)
    written.append(placed)
    return placed.end


def _snap(data: bytes) -> Frame:
    return Frame(0, b"SNAP", 0, 0, 0, zstandard.frame_content_size(data), len(data), zlib.crc32(data))


def _is_known(trace: TraceReader, frame: Frame) -> bool:
    """Whether a SNAP frame has the layout that is written now, or is none."""
    try:
        layout = trace.payload(frame)[:4]
    except TracekitError:
        return True
    return len(layout) < 4 or int.from_bytes(layout, "little") == LAYOUT
