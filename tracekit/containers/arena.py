"""Arrays in reserved address space, so that no kernel and no author of a module thinks of capacity.

An array of :func:`reserve` has as many rows as anyone could need, filled with zeros; only its pages (4 KiB) that are
touched take memory. An :class:`Arena` hands out its rows one after the other. A kernel never writes out of bounds: of
an arena that is used up it gets the first rows, which nobody reads, and goes on; its driver calls :func:`check` after
each batch, which raises TracekitError.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tracekit.containers import budget
from tracekit.containers.kernels.arena import EXHAUSTED, SPARE, USED, Arena
from tracekit.formats.errors import TracekitError

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if os.uname().sysname == "Linux" else 0)
"""Do not set swap space aside for the mapping; Python names it from 3.13 on, macOS needs no such flag."""

LINE = 64
"""Bytes of a line of the processor's caches."""
HUGE_PAGE = 1 << 21
"""Bytes of a huge page: in one of them rows that are read at random take one entry of the processor's TLB."""
SMALL_PAGES = 1 << 20
"""Bytes at the beginning of a dense array that are left in small pages: a small analysis takes no more memory."""


class Limited(Protocol):
    """An arena, or a structure with its `rows` and `control` that kernels fill likewise."""

    @property
    def rows(self) -> npt.NDArray[Any]:
        """What is handed out."""

    @property
    def control(self) -> npt.NDArray[np.int64]:
        """Elements USED, EXHAUSTED, and others."""


def reserve(dtype: npt.DTypeLike, rows: int, least: int | None = None, dense: bool = False) -> npt.NDArray[Any]:
    """Reserve an array of `rows` zeros of `dtype`, fewer where the system refuses, but at least `least` (default: all).

    `dense`: it fills up from its first row on, and rows are read at random; so it has huge pages where the system has.
    The memory goes back to the system with the last view of the array. Raises TracekitError if it refuses even that.
    """
    row = np.dtype(dtype)
    least = rows if least is None else least
    while True:
        try:
            mapping = _mapping(max(rows * row.itemsize, 1))
            if dense:
                _prefer_huge_pages(mapping, SMALL_PAGES)
            return np.frombuffer(mapping, row, rows)
        except (OSError, OverflowError, ValueError) as error:
            if rows <= least:
                raise TracekitError(
                    f"Ran out of memory: the system refuses {rows * row.itemsize >> 20:,} MiB of "
                    f"address space ({error}).{budget.advice()}"
                ) from error
            rows = max(rows // 2, least)


def _mapping(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        return mmap.mmap(-1, size, flags)
    except OSError:  # an analysis that failed is kept alive by its own error, with some of 128 TiB and 65,530 mappings
        gc.collect()
        return mmap.mmap(-1, size, flags)


def _prefer_huge_pages(mapping: mmap.mmap, first: int) -> None:
    """Ask for huge pages from the byte `first` on, a multiple of the size of a page."""
    if hasattr(mmap, "MADV_HUGEPAGE") and first < len(mapping):
        with contextlib.suppress(OSError):  # a kernel without them
            mapping.madvise(mmap.MADV_HUGEPAGE, first)


def side_by_side(*tables: tuple[int, npt.DTypeLike]) -> list[npt.NDArray[Any]]:
    """Arrays of zeros, each of so many rows of a dtype, that are read at random: together in as few huge pages as do.

    Every access of an analysis may look into each of them, so that small pages would crowd out each other.
    """
    kinds = [(rows, np.dtype(dtype)) for rows, dtype in tables]
    sizes = [-(-rows * dtype.itemsize // LINE) * LINE for rows, dtype in kinds]
    mapping = _mapping((-(-sum(sizes) // HUGE_PAGE) + 1) * HUGE_PAGE)  # one more, to begin at the edge of one
    at = -np.frombuffer(mapping, np.uint8).ctypes.data % HUGE_PAGE
    _prefer_huge_pages(mapping, at)
    made = []
    for (rows, dtype), size in zip(kinds, sizes):
        made.append(np.frombuffer(mapping, dtype, rows, at))
        at += size
    return made


def arena(
    dtype: npt.DTypeLike,
    rows: int = 1 << 32,
    spare: int = SPARE,
    beside: int = 0,
    parts: int = 1,
    dense: bool = False,
) -> Arena:
    """Make an empty arena of at most `rows` rows of `dtype`, and not more than the machine has memory.

    A kernel may take at most `spare` rows at once. Where address space is limited, it has so many `parts` of it for
    its rows and for `beside` bytes of other tables for each (budget.py); `dense` as for :func:`reserve`. Raises
    TracekitError if the system gives none.
    """
    most = max(budget.most(rows, np.dtype(dtype).itemsize, beside, parts), 2 * spare)
    return Arena(reserve(dtype, most, min(most, 2 * spare), dense), np.array([spare, 0], np.int64))


def copied(table: Arena) -> Arena:
    """A copy of an arena, which hands out rows independently."""
    rows = reserve(table.rows.dtype, len(table.rows))
    used = int(table.control[USED])
    rows[:used] = table.rows[:used]
    return Arena(rows, table.control.copy())


def check(*arenas: Limited) -> None:
    """Raise TracekitError if a kernel wanted more rows than one of `arenas` has, or the machine has no memory left."""
    budget.require_memory()
    for table in arenas:
        if table.control[EXHAUSTED]:
            raise TracekitError(
                f"Ran out of memory: {table.rows.nbytes >> 20:,} MiB for the analysis are used up.{budget.advice()}"
            )


def taken(table: Arena) -> npt.NDArray[Any]:
    """The rows that an arena with the usual spare rows has handed out, in order."""
    return table.rows[SPARE : table.control[USED]]


def touched(array: npt.NDArray[Any]) -> int:
    """Bytes of an array of :func:`reserve` that are in memory; all of them where the system does not tell."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    resident = np.zeros(pages, np.uint8)
    try:
        asked = ctypes.CDLL(None).mincore(
            ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), ctypes.c_void_p(resident.ctypes.data)
        )
    except (AttributeError, OSError):
        asked = -1
    return int((resident & 1).sum()) * mmap.PAGESIZE if asked == 0 else array.nbytes
