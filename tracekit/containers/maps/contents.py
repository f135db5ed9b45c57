"""Kernels that read a table: everything into another one, everything into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.maps.folds import join
from tracekit.containers.maps.keys import key_of_tag
from tracekit.containers.maps.memory import words_at
from tracekit.containers.maps.table import (
    ADDRESS,
    SHIFT,
    SIZE,
    USED,
    ZERO,
    cell_words,
    claim,
    drain,
    reserve,
    value_offset,
)
from tracekit.jit.kernel import inlined, kernel

PIECE = np.uint64(256)
"""Cells of another map for which room is made at a time: their keys may be here already."""


@kernel
def absorb(table: Any, other: Any) -> None:
    """Insert what `other`, a map of the same kind, holds; it keeps it.

    The keys come in the order of their cells. The table is first made as large as the other needs it, or they would
    all crowd into its beginning.
    """
    drain(table)
    drain(other)
    control = table.control
    reserve(table, other.control[USED] - min(control[USED], other.control[USED]))
    others, at = words_at(other.control[ADDRESS], other.control[SIZE]), ZERO
    while at < other.control[SIZE]:
        stop = min(at + PIECE * cell_words(table), other.control[SIZE])
        reserve(table, PIECE)
        _absorb_piece(table, other, others, at, stop)
        at = stop


@inlined
def _absorb_piece(table: Any, other: Any, others: Any, at: Any, stop: Any) -> None:
    """Insert the cells of `other` from `at` to before `stop`."""
    control, stride, offset = table.control, cell_words(table), np.uint64(value_offset(table))
    cells, end, last = words_at(control[ADDRESS], control[SIZE]), control[SIZE] - stride, other.control[SIZE] - stride
    while at < stop:
        if others[at] != ZERO:
            tag = ZERO if len(table.key) == 1 and at == last else others[at]
            place, new = claim(table, cells, end, control[SHIFT], tag, others, at + np.uint64(1))
            control[USED] += np.uint64(new)
            join(table, cells, place + offset, new, other, others, at + offset)
        at += stride


@kernel
def extract(table: Any, keys: Any, values: Any) -> None:
    """Copy the keys to `keys`, uint64 (n, key words), and the value words to `values`, uint64 (n, value words)."""
    control, stride, offset = table.control, cell_words(table), np.uint64(value_offset(table))
    cells, at, row = words_at(control[ADDRESS], control[SIZE]), ZERO, 0
    while at < control[SIZE]:
        if cells[at] != ZERO:
            if len(table.key) == 1:
                keys[row, 0] = key_of_tag(ZERO if at + stride == control[SIZE] else cells[at])
            else:
                for i in range(len(table.key)):
                    keys[row, i] = cells[at + np.uint64(1 + i)]
            for i in range(len(table.value)):
                values[row, i] = cells[at + offset + np.uint64(i)]
            row += 1
        at += stride
