"""Descriptors of consecutive stretches of a run: those of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import check, taken
from tracekit.containers.kernels.arena import SPARE, USED
from tracekit.leap.kernels.compressor import Descriptors, finish
from tracekit.leap.kernels.joining import go_on


def joined(states: Sequence[Descriptors], most: int) -> Descriptors:
    """What one compressor would have made of stretches that have these descriptors, at most `most` of a kind each."""
    first, *others = states
    for other in others:
        finish(other)
        streams = int(other.streams.control[USED])
        lines, points = (_by_stream(taken(table), streams) for table in (other.lines, other.points))
        go_on(first, other, *lines, *points, most)
        check(first.streams, first.lines, first.points)
    return first


def _by_stream(rows: NDArray[Any], streams: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of an arena stream by stream, each in its order, and where each stream's begin (one more: the end)."""
    order = np.argsort(rows["stream"], kind="stable")
    return order + SPARE, np.searchsorted(rows["stream"][order], np.arange(streams + 1))
