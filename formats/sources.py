"""SRCS payloads: the text of source files, as length-prefixed pairs of path and contents (SPEC.md, "SRCS")."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from tracekit.formats.errors import TracekitError

_LENGTHS = struct.Struct("<IQ")

ROOM = 64 << 20
"""Bytes from which on a payload is complete; a larger file stands alone."""


def build_sources(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """The payloads that hold `files` (path -> contents), in order."""
    parts: list[bytes] = []
    size = 0
    for path, contents in files.items():
        if size and size + len(contents) > ROOM:
            yield b"".join(parts)
            parts, size = [], 0
        name = path.encode()
        parts += [_LENGTHS.pack(len(name), len(contents)), name, contents]
        size += _LENGTHS.size + len(name) + len(contents)
    if parts:
        yield b"".join(parts)


def parse_sources(payload: bytes) -> dict[str, bytes]:
    """Path -> contents. Raises TracekitError if the lengths do not fit the payload."""
    files: dict[str, bytes] = {}
    at = 0
    while at < len(payload):
        if len(payload) - at < _LENGTHS.size:
            raise TracekitError("The trace is damaged: its source files are cut short.")
        name_bytes, content_bytes = _LENGTHS.unpack_from(payload, at)
        at += _LENGTHS.size
        end = at + name_bytes + content_bytes
        if end > len(payload):
            raise TracekitError("The trace is damaged: its source files are cut short.")
        name = payload[at : at + name_bytes].decode("utf-8", "replace")
        files[name] = payload[at + name_bytes : end]
        at = end
    return files
