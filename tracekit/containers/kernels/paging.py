"""Advice of kernels to the system about their memory: huge pages, and pages that are needed no more (madvise)."""

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
    """Give whole pages of ``rows[first:behind]`` back to the system; rows read again are zero, or as before."""
    if ADVISES and behind > first:
        start = np.uint64(rows.ctypes.data)
        begin = (start + np.uint64(first * rows.itemsize) + PAGE - np.uint64(1)) & ~(PAGE - np.uint64(1))
        end = (start + np.uint64(behind * rows.itemsize)) & ~(PAGE - np.uint64(1))
        if end > begin:
            advise(begin, end - begin, DONT_NEED)
