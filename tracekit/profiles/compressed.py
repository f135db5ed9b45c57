"""Compressed profile files: JSON in one frame of zstd, told by the name in writing and by the first bytes in reading.

Rows of a profile resemble one another, so a large one becomes a small part of its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".zst"
LEVEL = 3
MAGIC = b"\x28\xb5\x2f\xfd"
"""How a frame of zstd begins. A trace begins with another: a skippable frame."""

MAX_BYTES = 16 << 30
"""What a profile decompresses to at most. JSON of that size takes more memory than machines have."""

_PIECE = 1 << 20


class NotWhole(Exception):  # noqa: N818 - the file's fault, told by whoever knows its name
    """Why a compressed file cannot be read."""


def wanted(path: str | Path) -> bool:
    """Whether a file of that name is written compressed."""
    return str(path).endswith(SUFFIX)


def parts(text: Iterable[bytes]) -> Iterator[bytes]:
    """What a compressed file of these parts of text consists of, in pieces."""
    import zstandard

    chunker = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).chunker(chunk_size=_PIECE)
    for part in text:
        yield from chunker.compress(part)
    yield from chunker.finish()  # type: ignore[no-untyped-call]


def first_byte(file: BinaryIO) -> bytes:
    """The first byte of the text in an open file, compressed or not; none if it has none or is damaged."""
    beginning = file.read(len(MAGIC))
    if beginning != MAGIC:
        return beginning[:1]
    import zstandard

    file.seek(0)
    try:
        return zstandard.ZstdDecompressor().stream_reader(file, closefd=False).read(1)
    except zstandard.ZstdError:
        return b""


def text(file: BinaryIO) -> bytes | bytearray:
    """The text in an open file, compressed or not. Raises NotWhole if it is damaged, cut off, or too large."""
    beginning = file.read(len(MAGIC))
    if beginning != MAGIC:
        return beginning + file.read()
    import zstandard

    decompressor = zstandard.ZstdDecompressor().decompressobj()
    whole = bytearray()
    piece = beginning
    try:
        while piece and not decompressor.eof:
            whole += decompressor.decompress(piece)
            if len(whole) > MAX_BYTES:
                raise NotWhole(f"it decompresses to more than {MAX_BYTES >> 30} GiB")
            piece = file.read(_PIECE)
    except zstandard.ZstdError:
        raise NotWhole("its compressed bytes are damaged") from None
    if not decompressor.eof:
        raise NotWhole("its compressed bytes end too early")
    return whole
