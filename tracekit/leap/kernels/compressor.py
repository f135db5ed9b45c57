"""The linear compressor of LEAP (Wu et al., CGO 2004, section 4.1).

A *stream* is what one instruction does to the objects of one group: points (object, offset, time), and by themselves
the offsets. Both are described by linear descriptors, [start, stride, count]: a point that does not go on as the
present descriptor does begins a new one, until there are as many as are allowed. What comes then is only counted, and
the least and greatest object and offset, and the greatest common divisor of the distances between offsets are kept.

The descriptor that grows stands in the stream's row, by its last point, so that a point that fits touches nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined, kernel

STREAM = [
    ("accesses", "<i8"),
    ("full", "<u4"),  # POINTS_FULL | LINES_FULL | BEYOND
    ("unused", "<u4"),
    # of the points that no descriptor has room for
    ("granularity", "<i8"),
    ("least_offset", "<i8"),
    ("greatest_offset", "<i8"),
    ("least_object", "<i8"),
    ("greatest_object", "<i8"),
    # the last offset that was described, and the stride and the count of the descriptor that it belongs to
    ("last", "<i8"),
    ("stride", "<i8"),
    ("run", "<i8"),
    # the same of points
    ("object", "<i8"),
    ("offset", "<i8"),
    ("time", "<i8"),
    ("object_stride", "<i8"),
    ("offset_stride", "<i8"),
    ("time_stride", "<i8"),
    ("count", "<i8"),
    ("points", "<u4"),  # descriptors begun
    ("lines", "<u4"),
]
"""Beside the key, access << 32 | group. An access is an instruction's load (2 * instruction) or store (one more)."""
POINTS_FULL = 1
LINES_FULL = 2
BEYOND = 4  # there has been a point that descriptors of one kind had no room for

POINT = np.dtype(
    [
        ("stream", "<i8"),  # row
        ("object", "<i8"),  # of the first point
        ("offset", "<i8"),
        ("time", "<i8"),
        ("object_stride", "<i8"),
        ("offset_stride", "<i8"),
        ("time_stride", "<i8"),
        ("count", "<i8"),
    ]
)
"""A descriptor of points."""
LINE = np.dtype([("stream", "<i8"), ("start", "<i8"), ("stride", "<i8"), ("count", "<i8")])
"""A descriptor of offsets."""


class Descriptors(NamedTuple):
    """Streams, and the descriptors that have ended."""

    streams: HashTable  # STREAM
    points: Arena  # POINT
    lines: Arena  # LINE
    recent: NDArray[np.uint64]  # access: group << 32 | row of its stream, the one used last


@inlined
def access_of(made: Any, instruction: Any, is_store: Any) -> Any:
    """The number of an instruction's load or store; those of no instruction have the last two."""
    return np.int64(min(2 * instruction, made.recent.size - 2) + is_store)


@inlined
def describe(made: Any, access: Any, group: Any, object: Any, offset: Any, time: Any, most: Any) -> None:
    """A load or store; `most`: descriptors of each kind that a stream may have."""
    known = made.recent[np.uint64(access)]
    if np.int64(known >> np.uint64(32)) != group or known == 0:
        row = np.uint64(row_of(made.streams, (np.uint64(access) << np.uint64(32)) | np.uint64(group)))
        known = (np.uint64(group) << np.uint64(32)) | row
        made.recent[np.uint64(access)] = known
    number = known & np.uint64(0xFFFFFFFF)
    stream = made.streams.rows[number]
    stream.accesses += 1
    if stream.full & LINES_FULL == 0:
        if offset - stream.last == stream.stride and stream.run > 1:
            stream.run += 1
            stream.last = offset
        else:
            new_line(made.lines, stream, number, offset, most)
    if stream.full & POINTS_FULL == 0:
        fits = (offset - stream.offset == stream.offset_stride) & (time - stream.time == stream.time_stride)
        if fits and object - stream.object == stream.object_stride and stream.count > 1:
            stream.count += 1
            stream.object = object
            stream.offset = offset
            stream.time = time
        else:
            new_point(made.points, stream, number, object, offset, time, most)
    if stream.full != 0:
        beyond(stream, object, offset)


@inlined
def new_line(lines: Any, stream: Any, number: Any, offset: Any, most: Any) -> None:
    """An offset that does not fit: the second of a descriptor, or the first of the next."""
    if stream.run == 1:
        stream.stride = offset - stream.last
        stream.run = 2
        stream.last = offset
    else:
        if stream.run > 1:
            end_line(lines, stream, number)
        if stream.lines >= most:
            stream.full |= LINES_FULL
            stream.run = 0
        else:
            stream.lines += 1
            stream.run = 1
            stream.last = offset


@inlined
def new_point(points: Any, stream: Any, number: Any, object: Any, offset: Any, time: Any, most: Any) -> None:
    """A point (object, offset, time) that does not fit: the second of a descriptor, or the first of the next."""
    if stream.count == 1:
        stream.object_stride = object - stream.object
        stream.offset_stride = offset - stream.offset
        stream.time_stride = time - stream.time
        stream.count = 2
    else:
        if stream.count > 1:
            end_point(points, stream, number)
        if stream.points >= most:
            stream.full |= POINTS_FULL
            stream.count = 0
            return
        stream.points += 1
        stream.count = 1
    stream.object = object
    stream.offset = offset
    stream.time = time


@inlined
def end_line(lines: Any, stream: Any, number: Any) -> None:
    """Write down the descriptor of offsets that grew."""
    line = lines.rows[take(lines, 1)]
    line.stream = number
    line.stride = stream.stride if stream.run > 1 else 0
    line.start = stream.last - line.stride * (stream.run - 1)
    line.count = stream.run


@inlined
def end_point(points: Any, stream: Any, number: Any) -> None:
    """Write down the descriptor of points that grew."""
    point = points.rows[take(points, 1)]
    steps = stream.count - 1
    point.stream = number
    point.object_stride = stream.object_stride if steps else 0
    point.offset_stride = stream.offset_stride if steps else 0
    point.time_stride = stream.time_stride if steps else 0
    point.object = stream.object - point.object_stride * steps
    point.offset = stream.offset - point.offset_stride * steps
    point.time = stream.time - point.time_stride * steps
    point.count = stream.count


@inlined
def beyond(stream: Any, object: Any, offset: Any) -> None:
    """A point that a descriptor has no room for."""
    if stream.full & BEYOND == 0:
        stream.full |= BEYOND
        stream.least_object = object
        stream.greatest_object = object
        stream.least_offset = offset
        stream.greatest_offset = offset
    if object < stream.least_object:
        stream.least_object = object
    if object > stream.greatest_object:
        stream.greatest_object = object
    granularity, apart = stream.granularity, offset - stream.least_offset
    if granularity & (granularity - 1) != 0 or granularity == 0 or apart & (granularity - 1) != 0:
        stream.granularity = common_divisor(granularity, apart)  # a division, which powers of two do without
    if offset < stream.least_offset:
        stream.least_offset = offset
    if offset > stream.greatest_offset:
        stream.greatest_offset = offset


@inlined
def common_divisor(one: Any, other: Any) -> Any:
    """The greatest common divisor of two numbers, not negative; of 0 and n it is n."""
    one, other = abs(one), abs(other)
    while other != 0:
        one, other = other, one % other
    return one


@kernel
def finish(made: Descriptors) -> None:
    """Write down the descriptors that still grow."""
    for number in range(1, made.streams.control[0]):
        stream = made.streams.rows[number]
        if stream.run > 0:
            end_line(made.lines, stream, number)
            stream.run = 0
        if stream.count > 0:
            end_point(made.points, stream, number)
            stream.count = 0
