"""What kernels tell the system about their memory."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from tracekit.jit.kernel import Foreign, inlined

ADVISES = sys.platform == "linux"
HUGE_PAGES = 14
"""Linux: MADV_HUGEPAGE. Random rows of a large map cost a walk of the page table each without."""
DONT_NEED = 4
"""Linux: MADV_DONTNEED."""
PAGE = np.uint64(mmap.PAGESIZE)

advise: Any = Foreign("madvise", "int32", "uintp", "uintp", "int32")


@inlined
def release(rows: Any, first: Any, behind: Any) -> None:
    """Give the memory of the rows first .. behind - 1 back to the system; who needs them again finds zeros, or them."""
    if ADVISES and behind > first:
        start = np.uint64(rows.ctypes.data)
        begin = (start + np.uint64(first * rows.itemsize) + PAGE - np.uint64(1)) & ~(PAGE - np.uint64(1))
        end = (start + np.uint64(behind * rows.itemsize)) & ~(PAGE - np.uint64(1))
        if end > begin:
            advise(begin, end - begin, DONT_NEED)
