"""The files of a trace of drmemtrace's: one file, or a folder of them, plain, compressed or archives of chunks."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from tracekit.formats.drmemtrace import CHUNK_FOOTER, ENTRY, ENTRY_32, FOOTER, MARKER
from tracekit.formats.errors import TracekitError
from tracekit.imports.files import BLOCK, pieces

_TRACE = re.compile(r"\.(mem)?trace(\.(zip|gz|xz|zst|lz4))?$")
_UNREADABLE = re.compile(r"\.(mem)?trace\.sz$")
_RAW = re.compile(r"\.raw(\.\w+)?$")
"""What DynamoRIO records, before instructions are decoded from the binaries."""

_FLAWS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What reading a damaged archive raises, or one that is encrypted or compressed in another way."""


def files_of(path: str) -> list[Path]:
    """The trace's files, sorted by name. Raises TracekitError if a folder has none, or one that cannot be read."""
    root = Path(path)
    if not root.is_dir():
        if _RAW.search(root.name):
            raise TracekitError(f"{root} is what DynamoRIO records: make a trace of it with drraw2trace first.")
        return [root]
    folder = root / "trace" if (root / "trace").is_dir() else root
    names = sorted(folder.iterdir())
    compressed = next((name for name in names if _UNREADABLE.search(name.name)), None)
    if compressed is not None:
        raise TracekitError(f"{compressed} is compressed with Snappy: decompress it first.")
    found = [name for name in names if _TRACE.search(name.name)]
    if not found and any(_RAW.search(name.name) for name in names):
        raise TracekitError(f"{folder} holds what DynamoRIO records: make a trace of it with drraw2trace first.")
    if not found:
        raise TracekitError(f"{folder} holds no trace of drmemtrace's: no file ends in .trace or .trace.zip.")
    return found


def opened(path: Path, stack: ExitStack) -> tuple[str, Iterator[bytes]]:
    """A file's name, and what it holds, piece by piece; it is closed with `stack`."""
    try:
        file = stack.enter_context(path.open("rb"))
        is_archive = file.read(4) == b"PK\3\4"
        file.seek(0)
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from None
    return str(path), _chunks(file, str(path)) if is_archive else pieces(file, str(path))


def _chunks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The chunks of an archive one after the other; each ends with a record that says so."""
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as chunk:
                    end = b""
                    while piece := chunk.read(BLOCK):
                        yield piece
                        end = (end + piece[-ENTRY.itemsize :])[-ENTRY.itemsize :]
                if end[:4] not in _ENDS and end[-ENTRY_32.itemsize :][:4] not in _ENDS:
                    raise TracekitError(f"{name} is damaged: {member.filename} does not end as a chunk does.")
    except _FLAWS as error:
        raise TracekitError(f"{name} is damaged: {error or 'it ends too early'}.") from None
    except OSError as error:
        raise TracekitError(f"Cannot read {name}: {error.strerror}.") from None


def _record(kind: int, size: int) -> bytes:
    return kind.to_bytes(2, "little") + size.to_bytes(2, "little")


_ENDS = (_record(MARKER, CHUNK_FOOTER), _record(FOOTER, 0))
