"""Time in intervals: the loads and stores of a trace, cut into parts of equal length."""

from __future__ import annotations

from tracekit.jit.kernel import uncached as inlined
from tracekit.modules.ranges import ENDLESS

MOST_INTERVALS = 256
"""Intervals of a trace at most."""


def interval_bits(accesses: int) -> int:
    """log2 of the accesses in one interval, so that there are at most MOST_INTERVALS and, if possible, half as many."""
    return max((max(accesses, 1) - 1).bit_length() - MOST_INTERVALS.bit_length() + 1, 0)


def interval_count(accesses: int) -> int:
    """The number of intervals that `accesses` make."""
    return -(-accesses >> interval_bits(accesses)) if accesses else 0


@inlined
def left_in_interval(time: int, bits: int) -> int:
    """How many loads and stores from `time` on lie in the same interval of ``1 << bits``; those behind the last are one
    interval.
    """
    if time >> bits >= MOST_INTERVALS:
        return ENDLESS
    return (((time >> bits) + 1) << bits) - time
