"""In which slice of the run's time an access lies."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracekit.jit.kernel import inlined

UNTIMED = -1
"""The slice of what a stream does where no time is known."""


class TimeSlices(NamedTuple):
    """How far each stream is, and the slices of its parts: the same number of accesses each."""

    done: Any  # int64 (streams): accesses so far, of those that are counted
    first: Any  # int64 (streams + 1): the first part of each stream
    slices: Any  # int64 (parts): the slice of time of each part; those of a stream end with one UNTIMED
    bits: Any  # int64 (1): log2 of the accesses in a part
    counted: Any  # uint8 (instructions): whether hand-overs count an instruction's accesses


@inlined
def next_slice(time_slices: TimeSlices, stream: int, instruction: int) -> int:
    """The slice of the next access of a stream, or UNTIMED; the access is over then."""
    if stream >= time_slices.done.size:
        return UNTIMED
    done = time_slices.done[stream]
    if instruction >= time_slices.counted.size or time_slices.counted[instruction] != 0:
        time_slices.done[stream] = done + 1
    part = min(time_slices.first[stream] + (done >> time_slices.bits[0]), time_slices.first[stream + 1] - 1)
    found: int = time_slices.slices[part]
    return found
