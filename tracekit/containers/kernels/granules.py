"""What whole granules of memory have in common: a second shadow, where a word stands for ``1 << WIDE_BITS`` bytes.

Few objects are so large, and the stack is in none of their granules. So the bytes from the first granule to the last
that ever had something stand in the first two elements of an array `control`, and bytes outside of them are not looked
up.

Addresses are int64, with the bits of the program's, and granules int64 numbers. Rows of granules are never divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.shadow import PAGE_BITS, page_of, word_of, writing
from tracekit.jit.kernel import inlined

WIDE_BITS = 15
"""log2 of the bytes of a granule."""
WIDE_PAGES = 1 << (48 - WIDE_BITS + 3 - PAGE_BITS)
"""Pages of the second shadow that its table has to reach."""

# Elements of `control`.
WIDE_START = 0
WIDE_STOP = 1


@inlined
def granule_of(address: Any) -> Any:
    """The granule that a byte is in."""
    return np.int64(np.uint64(address) >> np.uint64(WIDE_BITS))


@inlined
def wide_at(wide: Any, control: Any, address: Any) -> Any:
    """What the shadow `wide` has for the granule of a byte (int64); 0: nothing."""
    found = np.int64(0)
    if control[WIDE_START] <= address < control[WIDE_STOP]:
        place = granule_of(address) << 3
        page = page_of(wide, np.uint64(place) >> np.uint64(PAGE_BITS))
        found = np.int64(wide.rows[np.uint64(wide.granules.size + word_of(page, place))])
    return found


@inlined
def set_wide(wide: Any, control: Any, first: Any, behind: Any, value: Any) -> None:
    """Give the granules first .. behind - 1 a value."""
    start, stop = first << WIDE_BITS, behind << WIDE_BITS
    if control[WIDE_START] != control[WIDE_STOP]:
        start, stop = min(start, control[WIDE_START]), max(stop, control[WIDE_STOP])
    control[WIDE_START], control[WIDE_STOP] = start, stop
    for row in writing(wide, first << 3, (behind - first) << 3):
        wide.rows[row] = value
