"""Time in intervals: the loads and stores of a trace, cut into parts of equal length."""

from __future__ import annotations

MOST_INTERVALS = 256
"""Intervals of a trace at most."""


def interval_bits(accesses: int) -> int:
    """log2 of the accesses in one interval, so that there are at most MOST_INTERVALS and, if possible, half as many."""
    return max((max(accesses, 1) - 1).bit_length() - MOST_INTERVALS.bit_length() + 1, 0)


def interval_count(accesses: int) -> int:
    """The number of intervals that `accesses` make."""
    return -(-accesses >> interval_bits(accesses)) if accesses else 0
