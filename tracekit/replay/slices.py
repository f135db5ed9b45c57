"""Time in slices: the loads and stores of a trace, cut into parts of equal length."""

from __future__ import annotations

MOST = 256
"""Slices of a trace at most."""


def slice_bits(accesses: int) -> int:
    """log2 of the accesses in one slice, so that they make at most MOST and, if they can, at least half of it."""
    return max((max(accesses, 1) - 1).bit_length() - MOST.bit_length() + 1, 0)


def slice_count(accesses: int) -> int:
    """The slices that `accesses` make."""
    return -(-accesses >> slice_bits(accesses)) if accesses else 0
