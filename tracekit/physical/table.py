"""Makes the table of page frames of the snapshots in a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.container import frames_of
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.physical.kernels.frames import UNKNOWN, Frames

I8 = NDArray[np.int64]

MOST_ROWS = 1 << 28
"""More changes of pages than that no trace has."""
REMEMBERED = 1 << 10
"""Pages of which a state remembers what it found; a power of two."""


@dataclass(frozen=True)
class FrameChanges:
    """A snapshot: its time in seconds since the start, and runs [first page, pages, first frame] that are new in it."""

    time: float
    runs: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class PageFrames:
    """Page frames by page and snapshot, as :class:`Frames` has them."""

    taken: I8
    pages: I8
    first: I8
    since: I8
    frames: I8

    def state(self, streams: int) -> Frames:
        """Where nothing of `streams` streams has happened."""
        found = np.full((REMEMBERED, 3), UNKNOWN, np.int64)
        found[:, 1] = -1  # no snapshot
        return Frames(self.taken, self.pages, self.first, self.since, self.frames, np.zeros(streams, np.int64), found)


def read_page_frames(trace: TraceReader) -> PageFrames | None:
    """The page frames of a trace, None if its snapshots have none (`record --physical`)."""
    snapshots = [json.loads(trace.payload(frame)) for frame in frames_of(trace.frames, b"MAPS")]
    changes = [FrameChanges(each["time"], each["frames"]) for each in snapshots if "frames" in each]
    return page_frames(changes) if changes else None


def page_frames(snapshots: Sequence[FrameChanges]) -> PageFrames:
    """The table of some snapshots, at least one, in the order of time.

    A page has at a snapshot the frame that it has there, or else that of the next snapshot in which it has one.
    Raises TracekitError if they claim more pages than there can be.
    """
    rows = [(number, *run) for number, snapshot in enumerate(snapshots) for run in snapshot.runs]
    runs = np.array(rows, np.int64).reshape(-1, 4)
    count = runs[:, 2]
    if len(runs) and (int(count.min()) < 0 or int(count.max()) > MOST_ROWS or int(count.sum()) > MOST_ROWS):
        raise TracekitError("The trace is damaged: its snapshots claim more pages than a program can have.")
    step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    since, page, frame = (np.repeat(runs[:, column], count) for column in (0, 1, 3))
    page, frame = page + step, np.where(frame < 0, UNKNOWN, frame + step)
    order = np.lexsort((since, page))
    since, page, frame = since[order], page[order], frame[order]
    is_first = np.concatenate([[True], page[1:] != page[:-1]])[: len(page)]
    pages, first = page[is_first], np.concatenate([np.flatnonzero(is_first), [len(page)]])
    taken = np.array([round(snapshot.time * 1e9) for snapshot in snapshots], np.int64)
    return PageFrames(np.maximum.accumulate(taken), pages, first, since, _next_known(page, frame))


def _next_known(page: I8, frame: I8) -> I8:
    """Each frame, or, where it is UNKNOWN, the next one of the same page that is not."""
    rows = np.arange(len(frame))
    known: Any = np.where(frame >= 0, rows, len(frame))
    following = np.minimum.accumulate(known[::-1])[::-1]
    taken = np.minimum(following, max(len(frame) - 1, 0))
    is_there = (following < len(frame)) & (page[taken] == page)
    return np.where(is_there, frame[taken], UNKNOWN)
