"""A reader of protocol buffers without any schema (protobuf.dev, "Encoding")."""

from __future__ import annotations

from collections import defaultdict

Fields = dict[int, list[int | bytes]]
"""Number of a field -> its values: numbers, or the bytes of a part."""


def fields(content: bytes) -> Fields:
    """The fields of a message."""
    found: defaultdict[int, list[int | bytes]] = defaultdict(list)
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        value, at = varint(content, at)
        if key & 7 == 2:
            found[key >> 3].append(content[at : at + value])
            at += value
        else:
            assert key & 7 == 0
            found[key >> 3].append(value)
    assert at == len(content)
    return dict(found)


def varint(content: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            return value, at


def numbers(content: bytes) -> list[int]:
    """A packed field."""
    found, at = [], 0
    while at < len(content):
        value, at = varint(content, at)
        found.append(value)
    return found
