"""Units as traces hold them (SPEC.md, "Units in planes"): tables by bytes of their rows in place of row by row.

Numbers are small, so that most of their upper bytes are zeros, and many grow from row to row. The first bytes of all
rows stand together, then the second bytes, and so on; words of four bytes that grow stand as differences.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import UNIT_IN_PLANES, UNIT_MAGIC, UNIT_VERSION

HEADER = struct.Struct("<8sIIQ")
"""Magic, version, tables, bytes of a unit."""
DIRECTORY = np.dtype([("id", "<u4"), ("row_bytes", "<u2"), ("differences", "<u2"), ("rows", "<u8"), ("offset", "<u8")])
"""A table. `differences` is zero in a unit of rows; in one of planes bit k stands for the word at byte 4 k of a row."""
_WORD = 4
_MOST_WORDS = 16

Bytes = NDArray[np.uint8]


def in_planes(unit: bytes) -> bytes:
    """A unit of rows as one of planes; anything else, and whatever lies outside of it, as it is."""
    return _turned(unit, UNIT_VERSION, UNIT_IN_PLANES, _planes)


def in_rows(unit: bytes) -> bytes:
    """The unit of rows that :func:`in_planes` made one of planes."""
    return _turned(unit, UNIT_IN_PLANES, UNIT_VERSION, _rows)


def _turned(unit: bytes, before: int, after: int, turn: Callable[[Bytes, int, int], tuple[Bytes, int]]) -> bytes:
    if len(unit) < HEADER.size:
        return unit
    magic, version, count, size = HEADER.unpack_from(unit)
    if (magic, version) != (UNIT_MAGIC, before) or count > (len(unit) - HEADER.size) // DIRECTORY.itemsize:
        return unit
    turned = bytearray(unit)
    HEADER.pack_into(turned, 0, magic, after, count, size)
    directory = np.frombuffer(turned, DIRECTORY, count, HEADER.size)
    given = np.frombuffer(unit, np.uint8)
    made = np.frombuffer(turned, np.uint8)
    for number, (_, width, differences, rows, offset) in enumerate(directory.tolist()):
        end = offset + width * rows
        if width > 1 and rows > 1 and end <= len(unit):
            made[offset:end], directory["differences"][number] = turn(given[offset:end], width, differences)
    return bytes(turned)


def _planes(given: Bytes, width: int, differences: int) -> tuple[Bytes, int]:
    """The bytes of a table's rows, plane by plane, and which words are `differences` then, beside those that were."""
    rows = given.reshape(-1, width)
    planes = np.ascontiguousarray(rows.T)
    words = min(width // _WORD, _MOST_WORDS)
    if not words:
        return planes.ravel(), differences
    values = np.ascontiguousarray(rows[:, : words * _WORD]).view("<u4")
    steps = values.copy()
    steps[1:] -= values[:-1]
    of_differences = np.ascontiguousarray(steps.view(np.uint8).T)
    better = _changes(of_differences) < _changes(planes[: words * _WORD])
    for word in np.flatnonzero(better).tolist():
        place = slice(word * _WORD, (word + 1) * _WORD)
        planes[place] = of_differences[place]
        differences |= 1 << word
    return planes.ravel(), differences


def _changes(planes: Bytes) -> NDArray[np.int64]:
    """How often the planes of each word go on with another byte, which compressing them costs."""
    each = np.count_nonzero(planes[:, 1:] != planes[:, :-1], axis=1)
    changes: NDArray[np.int64] = each.reshape(-1, _WORD).sum(axis=1)
    return changes


def _rows(given: Bytes, width: int, differences: int) -> tuple[Bytes, int]:
    """The bytes of a table's planes, row by row, of which no words are `differences` then."""
    rows = given.reshape(width, -1).T.copy()
    for word in range(min(width // _WORD, _MOST_WORDS)):
        if differences >> word & 1:
            part = rows[:, word * _WORD : (word + 1) * _WORD]
            part[:] = np.cumsum(part.copy().view("<u4"), dtype=np.uint32).view(np.uint8).reshape(-1, _WORD)
    return rows.ravel(), 0
