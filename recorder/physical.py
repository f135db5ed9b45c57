"""Page frames of a process, from /proc/PID/pagemap: `record --physical`.

The kernel tells them to who has CAP_SYS_ADMIN; to others it says that pages are there, with frame 0.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError

PAGE = os.sysconf("SC_PAGE_SIZE")
PRESENT = np.uint64(1 << 63)
FRAME = np.uint64((1 << 55) - 1)
AT_ONCE = 1 << 18
"""Entries that are read in one step, 2 MiB."""
LARGEST = 1 << 36
"""Bytes of a region that is looked at; larger ones are reserved addresses."""


def require() -> None:
    """Raise TracekitError if the kernel does not tell page frames."""
    here = ctypes.create_string_buffer(b"touched", 8)
    try:
        entries = _entries("self", ctypes.addressof(here) // PAGE, 1)
    except OSError:
        entries = np.zeros(0, np.uint64)
    if not len(entries) or not int(entries[0] & FRAME):
        raise TracekitError(
            "--physical needs the capability CAP_SYS_ADMIN, without which the kernel hides page frames: "
            "record as root, or leave --physical out"
        )


def _entries(process: int | str, first: int, count: int) -> NDArray[np.uint64]:
    with open(f"/proc/{process}/pagemap", "rb", buffering=0) as file:
        file.seek(8 * first)
        return np.frombuffer(file.read(8 * count), np.uint64)


class Frames:
    """What is known of a process's pages, so that snapshots hold changes only."""

    def __init__(self) -> None:
        self._pages = np.zeros(0, np.int64)
        self._frames = np.zeros(0, np.int64)

    def changes(self, process: int, regions: Sequence[Sequence[Any]]) -> list[list[int]]:
        """Runs [first page, pages, first frame] of pages with consecutive frames since the last call; frame -1: gone.

        ``regions``: as a snapshot has them. Raises OSError if the process is gone.
        """
        pages, frames = self._read(process, regions)
        known = np.full(len(pages), -1, np.int64)
        at = np.searchsorted(self._pages, pages)
        inside = at < len(self._pages)
        inside[inside] = self._pages[at[inside]] == pages[inside]
        known[inside] = self._frames[at[inside]]
        gone = self._pages[~np.isin(self._pages, pages, assume_unique=True)]
        new = known != frames
        self._pages, self._frames = pages, frames
        return _runs(pages[new], frames[new], 1) + _runs(gone, np.full(len(gone), -1, np.int64), 0)

    @staticmethod
    def _read(process: int, regions: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        pages, frames = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for first, end, protection, name in regions:
            if protection[:3] == "---" or "tracekit-pool" in name or end - first > LARGEST or first >> 63:
                continue
            for start in range(first // PAGE, end // PAGE, AT_ONCE):
                entries = _entries(process, start, min(AT_ONCE, end // PAGE - start))
                here = np.flatnonzero(entries & PRESENT)
                pages.append(here + start)
                frames.append((entries[here] & FRAME).astype(np.int64))
        return np.concatenate(pages), np.concatenate(frames)


def _runs(pages: NDArray[np.int64], frames: NDArray[np.int64], step: int) -> list[list[int]]:
    if not len(pages):
        return []
    cuts = np.flatnonzero((np.diff(pages) != 1) | (np.diff(frames) != step)) + 1
    starts = np.concatenate([[0], cuts])
    counts = np.diff(np.concatenate([starts, [len(pages)]]))
    runs: list[list[int]] = np.stack([pages[starts], counts, frames[starts]], axis=1).tolist()
    return runs
