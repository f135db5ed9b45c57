"""Hot data streams: what comes again and again in the same order, by heat (Chilimbi, PLDI 2001)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracekit.whomp.grammar import Written

CANDIDATES = 400
"""Rules of a block that are looked at: the hottest."""

Stream = tuple[Any, ...]
"""Symbols: instructions, or what stands for them."""


def candidates(grammar: Written, longest: int) -> Counter[Stream]:
    """Streams of 2 to `longest` symbols, those of the hottest rules of each block, and how often each comes."""
    times: Counter[Stream] = Counter()
    for block in grammar.blocks():
        lengths, counts = block.sizes()
        wanted = np.flatnonzero((lengths >= 2) & (lengths <= longest))
        wanted = wanted[wanted != 0]
        hottest = wanted[np.argsort(-(lengths * counts)[wanted], kind="stable")][:CANDIDATES]
        for rule in hottest.tolist():
            stream = tuple(value for values in grammar.expanded(rule, block) for value in values.tolist())
            times[stream] += int(counts[rule])
    return times


def hottest(times: Mapping[Stream, int], most: int) -> list[tuple[Stream, int]]:
    """At most `most` of the streams that come so often, those of greatest heat first.

    Heat is length times frequency. A stream is left out if it, or what it repeats, is a part of a hotter one.
    """
    chosen: list[tuple[Stream, int]] = []
    for stream, count in sorted(times.items(), key=lambda item: (-len(item[0]) * item[1], item[0])):
        if len(chosen) == most:
            break
        if not any(_is_part(_unit(stream), other) or _unit(stream) == _unit(other) for other, _ in chosen):
            chosen.append((stream, count))
    return chosen


def _unit(stream: Stream) -> Stream:
    """What a stream is repetitions of: itself, if of nothing shorter."""
    for length in range(1, len(stream) // 2 + 1):
        if len(stream) % length == 0 and stream[:length] * (len(stream) // length) == stream:
            return stream[:length]
    return stream


def _is_part(stream: Stream, other: Stream) -> bool:
    length = len(stream)
    return any(other[place : place + length] == stream for place in range(len(other) - length + 1))
