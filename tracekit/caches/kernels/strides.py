"""A prefetcher that learns by how much the addresses of each instruction advance (Chen and Baer, 1995)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.jit.kernel import inlined

STRIDES = np.dtype([("last", "<i8"), ("stride", "<i8"), ("same", "<i8")])
"""Of each instruction of each core: the last address, how far it was from the one before, how often in a row so."""

STEADY = 2
"""Strides in a row that are the same, before they are believed."""


@inlined
def next_line(table: Any, core: Any, instruction: Any, address: Any, shift: Any) -> Any:
    """The line to prefetch, after an access of the line of `address` itself: that line if there is none to prefetch.

    It is the one a stride ahead; with strides of less than a line the next one in that direction.
    """
    row = table[core, instruction]
    stride = address - row.last
    row.last = address
    if stride == row.stride:
        row.same = min(row.same + 1, STEADY)
    else:
        row.stride = stride
        row.same = 0
    line = address >> shift
    if stride == 0 or row.same < STEADY:
        return line
    if abs(stride) >= 1 << shift:
        return (address + stride) >> shift
    return line + (1 if stride > 0 else -1)
