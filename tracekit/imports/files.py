"""Files in pieces, whether they are compressed or not."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import zstandard

from tracekit import extras
from tracekit.counted import counted
from tracekit.formats.errors import TracekitError

BLOCK = 1 << 20
"""Bytes of a piece at least, but for the last."""

_FED = 1 << 12
"""Bytes that are decompressed at once: of a bomb they come to less than 200 MB."""


def _lz4() -> Any:
    extras.require("lz4", "Reading what is compressed with LZ4")
    from lz4.frame import LZ4FrameDecompressor

    return LZ4FrameDecompressor()


_DECOMPRESSORS: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda: zlib.decompressobj(31)),
    b"\xfd7zXZ\0": ("xz", lzma.LZMADecompressor),
    b"\x28\xb5\x2f\xfd": ("Zstandard", lambda: zstandard.ZstdDecompressor().decompressobj()),
    b"\x04\x22\x4d\x18": ("LZ4", _lz4),
}
"""How files begin that are compressed, with what, and what makes an object that undoes it."""

_ERRORS = (zlib.error, lzma.LZMAError, zstandard.ZstdError, RuntimeError)
"""The last is LZ4's."""


def pieces(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The bytes of a file that is read from its beginning, decompressed if it begins as gzip, xz, Zstandard or LZ4.

    Raises TracekitError if it cannot be read, or what is compressed is damaged or ends too early; the sentence begins
    with `name`.
    """
    try:
        head = file.read(max(map(len, _DECOMPRESSORS)))
        for magic, (form, make) in _DECOMPRESSORS.items():
            if head.startswith(magic):
                yield from _joined(_decompressed(file, head, form, make, name))
                return
        while head:
            yield head
            head = file.read(BLOCK)
    except OSError as error:
        raise TracekitError(f"Cannot read {name}: {error.strerror}.") from None


def _decompressed(file: BinaryIO, data: bytes, form: str, make: Callable[[], Any], name: str) -> Iterator[bytes]:
    """What one or several compressed streams hold that stand one after the other."""
    stream, read = make(), len(data)
    while data:
        try:
            yield stream.decompress(data)
        except _ERRORS as error:
            raise TracekitError(
                f"{name} is damaged: what is compressed with {form} before byte {read:,}: {error}."
            ) from None
        data = (stream.unused_data or b"") if stream.eof else b""
        if stream.eof and (data or (data := file.read(_FED))):
            read += 0 if stream.unused_data else len(data)
            stream = make()
        elif not stream.eof:
            data = file.read(_FED)
            read += len(data)
    if not stream.eof:
        raise TracekitError(f"{name} ends too early, after {counted(read, 'byte')} of what is compressed with {form}.")


def _joined(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes of `parts` in pieces of BLOCK at least; the last may be shorter."""
    waiting: list[bytes] = []
    held = 0
    for part in parts:
        waiting.append(part)
        held += len(part)
        if held >= BLOCK:
            yield b"".join(waiting)
            waiting, held = [], 0
    if held:
        yield b"".join(waiting)
