"""The descriptors of two consecutive stretches of a run, as if the compressor had gone on from one to the other.

A descriptor covers as many points as it can. So where the stretch behind, described by itself, has come to its last
descriptor, a compressor that began with the descriptor before it has come no further: all that it would have described
is known, and so are least and greatest of all that is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import inlined, kernel
from tracekit.leap.kernels.compressor import (
    BEYOND,
    LINES_FULL,
    POINTS_FULL,
    Descriptors,
    beyond,
    common_divisor,
    end_line,
    end_point,
    new_line,
    new_point,
)


@kernel
def go_on(
    made: Descriptors, then: Descriptors, lines: Any, first_line: Any, points: Any, first_point: Any, most: Any
) -> None:
    """Let the streams of `made` go on through those of `then`, whose descriptors have all been written down.

    lines, points: rows of the descriptors of `then`, stream by stream; first_line, first_point: where those of each row
    of its streams begin (one more: the end). most: descriptors of each kind that a stream may have.
    """
    for number in range(1, then.streams.control[USED]):
        other = then.streams.rows[number]
        row = np.uint64(row_of(made.streams, other.key))
        stream = made.streams.rows[row]
        own_lines = lines[first_line[number] : first_line[number + 1]]
        own_points = points[first_point[number] : first_point[number + 1]]
        stream.accesses += other.accesses
        left = min(
            _describe_lines(made.lines, stream, row, then.lines.rows, own_lines, other.accesses, most),
            _describe_points(made.points, stream, row, then.points.rows, own_points, other.accesses, most),
        )
        if left < other.accesses:
            _leave(stream, left, then.points.rows, own_points)
            if other.full & BEYOND:
                beyond(stream, other.least_object, other.least_offset)
                beyond(stream, other.greatest_object, other.greatest_offset)
                stream.granularity = common_divisor(stream.granularity, other.granularity)


@kernel
def _describe_lines(made: Any, stream: Any, row: Any, then: Any, own: Any, accesses: Any, most: Any) -> int:
    """How many offsets fit, of so many accesses, the first of which have the descriptors `own`."""
    fitting = np.int64(0)
    if stream.full & LINES_FULL:
        return 0
    for place in own:
        line = then[place]
        done = np.int64(0)
        while done < line.count:
            offset = line.start + line.stride * done
            if stream.run > 1 and offset - stream.last == stream.stride:
                step = line.count - done if line.stride == stream.stride else np.int64(1)
                stream.run += step
                stream.last = offset + stream.stride * (step - 1)
                done += step
            else:
                new_line(made, stream, row, offset, most)
                if stream.full & LINES_FULL:
                    return int(fitting + done)
                done += 1
        fitting += line.count
    if fitting < accesses:  # the next one did not fit there, so it does not fit here
        end_line(made, stream, row)
        stream.full |= LINES_FULL
        stream.run = 0
    return int(fitting)


@kernel
def _describe_points(made: Any, stream: Any, row: Any, then: Any, own: Any, accesses: Any, most: Any) -> int:
    """How many points (object, offset, time) fit, of so many accesses; the first have the descriptors `own`."""
    fitting = np.int64(0)
    if stream.full & POINTS_FULL:
        return 0
    for place in own:
        point = then[place]
        done = np.int64(0)
        while done < point.count:
            object = point.object + point.object_stride * done
            offset = point.offset + point.offset_stride * done
            time = point.time + point.time_stride * done
            fits = (offset - stream.offset == stream.offset_stride) & (time - stream.time == stream.time_stride)
            if fits and object - stream.object == stream.object_stride and stream.count > 1:
                step = point.count - done if _is_alike(point, stream) else np.int64(1)
                stream.count += step
                stream.object = object + stream.object_stride * (step - 1)
                stream.offset = offset + stream.offset_stride * (step - 1)
                stream.time = time + stream.time_stride * (step - 1)
                done += step
            else:
                new_point(made, stream, row, object, offset, time, most)
                if stream.full & POINTS_FULL:
                    return int(fitting + done)
                done += 1
        fitting += point.count
    if fitting < accesses:
        end_point(made, stream, row)
        stream.full |= POINTS_FULL
        stream.count = 0
    return int(fitting)


@inlined
def _is_alike(point: Any, stream: Any) -> Any:
    """Whether a descriptor has the strides of the one that grows."""
    same = (point.object_stride == stream.object_stride) & (point.offset_stride == stream.offset_stride)
    return same & (point.time_stride == stream.time_stride)


@inlined
def _leave(stream: Any, left: Any, then: Any, own: Any) -> None:
    """Points from number `left` on have no room in descriptors; those behind the descriptors `own` are not here."""
    begun = np.int64(0)
    for place in own:
        point = then[place]
        first, last = max(left - begun, 0), point.count - 1
        if first <= last:
            beyond(stream, point.object + point.object_stride * first, point.offset + point.offset_stride * first)
            after = min(first + 1, last)
            beyond(stream, point.object + point.object_stride * after, point.offset + point.offset_stride * after)
            beyond(stream, point.object + point.object_stride * last, point.offset + point.offset_stride * last)
        begun += point.count
