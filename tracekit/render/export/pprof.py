"""pprof's protocol buffer (github.com/google/pprof, proto/profile.proto), by gzip: all numbers in one file."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Any

from tracekit.render.export.stacks import Frame, samples_of, unit_of

# Numbers of the fields of Profile, and of its parts.
SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRING_TABLE, COMMENT, DEFAULT_SAMPLE_TYPE = 1, 2, 4, 5, 6, 13, 14
TYPE, UNIT = 1, 2
LOCATION_ID, VALUE = 1, 2
ID, LINE = 1, 4
FUNCTION_ID, LINE_NUMBER = 1, 2
NAME, SYSTEM_NAME, FILENAME = 2, 3, 4


class Numbers:
    """Things in the order in which they were first seen, and the number of each, from `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.known: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        """The number of a thing."""
        return self.known.setdefault(thing, self.first + len(self.known))


def write(report: dict[str, Any], table: str) -> bytes:
    """The file's bytes; the same profile gives the same."""
    samples = samples_of(report, table)
    strings, functions, locations = Numbers(0), Numbers(1), Numbers(1)
    strings.of("")
    message = b""
    for metric in samples.metrics:
        kind = number(TYPE, strings.of(metric)) + number(UNIT, strings.of(unit_of(metric)))
        message += part(SAMPLE_TYPE, kind)
    for sample in samples.rows:
        stack = [locations.of(frame) for frame in reversed(sample.frames)]
        message += part(SAMPLE, packed(LOCATION_ID, stack) + packed(VALUE, sample.values))
    frame: Frame
    for frame, place in locations.known.items():
        line = number(FUNCTION_ID, functions.of((frame.name, frame.file))) + number(LINE_NUMBER, frame.line)
        message += part(LOCATION, number(ID, place) + part(LINE, line))
    for (name, file), place in functions.known.items():
        named = number(NAME, strings.of(name)) + number(SYSTEM_NAME, strings.of(name))
        message += part(FUNCTION, number(ID, place) + named + number(FILENAME, strings.of(file)))
    message += number(COMMENT, strings.of(f"tracekit {report['module']}, {samples.name}"))
    message += number(DEFAULT_SAMPLE_TYPE, strings.of(samples.metrics[0]))
    message += b"".join(part(STRING_TABLE, text.encode()) for text in strings.known)
    return gzip.compress(message, mtime=0)


# -- protocol buffers ------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """A number of at most 64 bits, seven in each byte, the lowest first."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """A field of wire type 0; 0 is what a field has that is not there."""
    return varint(field << 3) + varint(value) if value else b""


def part(field: int, content: bytes) -> bytes:
    """A field of wire type 2."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of numbers."""
    return part(field, b"".join(map(varint, values)))
