"""The insertion of members into a set map: a pair is taken only while its key's set is within the limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.prefetch import prefetch
from tracekit.containers.maps.keys import tag_of
from tracekit.containers.maps.memory import words_at
from tracekit.containers.maps.table import (
    ADDRESS,
    AHEAD,
    FILLED,
    SHIFT,
    SIZE,
    USED,
    ZERO,
    cell_words,
    claim,
    record_words,
    reserve,
    value_offset,
)
from tracekit.jit.kernel import inlined, kernel


@inlined
def _enter(table: Any, pairs: Any, sizes: Any, source: Any, first: Any) -> None:
    """Insert the key and member at ``source[first]``; `pairs`, `sizes`: the cells, in which there is room."""
    control, end = table.sizes.control, table.sizes.control[SIZE] - cell_words(table.sizes)
    tag = tag_of(table.sizes.key, source, first)
    place, new = claim(table.sizes, sizes, end, control[SHIFT], tag, source, first)
    control[USED] += np.uint64(new)
    at = place + np.uint64(value_offset(table.sizes))
    if np.int64(sizes[at]) > table.limit:
        return
    control, end = table.pairs.control, table.pairs.control[SIZE] - cell_words(table.pairs)
    tag = tag_of(table.pairs.key, source, first)
    place, new = claim(table.pairs, pairs, end, control[SHIFT], tag, source, first)
    control[USED] += np.uint64(new)
    sizes[at] += np.uint64(new)


@kernel
def drain_set(table: Any) -> None:
    """Empty the buffer into the cells."""
    buffer, width = table.pairs.buffer, record_words(table.pairs)
    filled = table.pairs.control[FILLED]
    reserve(table.pairs, filled // width)
    reserve(table.sizes, filled // width)
    pairs = words_at(table.pairs.control[ADDRESS], table.pairs.control[SIZE])
    sizes = words_at(table.sizes.control[ADDRESS], table.sizes.control[SIZE])
    at = ZERO
    while at < filled:
        later = at + np.uint64(AHEAD) * width
        tag = tag_of(table.sizes.key, buffer, later) >> table.sizes.control[SHIFT]
        prefetch(sizes, tag * cell_words(table.sizes))
        tag = tag_of(table.pairs.key, buffer, later) >> table.pairs.control[SHIFT]
        prefetch(pairs, tag * cell_words(table.pairs))
        _enter(table, pairs, sizes, buffer, at)
        at += width
    table.pairs.control[FILLED] = ZERO


@kernel
def absorb_set(table: Any, other: Any) -> None:
    """Insert every member that `other` took; a set that was too large there has enough of them to be so here."""
    drain_set(table)
    drain_set(other)
    reserve(table.pairs, other.pairs.control[USED])
    reserve(table.sizes, other.sizes.control[USED])
    pairs = words_at(table.pairs.control[ADDRESS], table.pairs.control[SIZE])
    sizes = words_at(table.sizes.control[ADDRESS], table.sizes.control[SIZE])
    others, at = words_at(other.pairs.control[ADDRESS], other.pairs.control[SIZE]), ZERO
    while at < other.pairs.control[SIZE]:
        if others[at] != ZERO:
            _enter(table, pairs, sizes, others, at + np.uint64(1))
        at += cell_words(other.pairs)
