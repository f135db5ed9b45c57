"""How far a segment is while it is analysed, and where it ends: the pass ahead says it meanwhile."""

from __future__ import annotations

import threading

from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Snapshot


class SegmentProgress:
    """Between the thread of the pass ahead and that of one segment."""

    def __init__(self) -> None:
        self.records = 0
        """Replayed so far in the segment; any thread may look."""
        self.explained = ""
        """How it was replayed, once it is over."""
        self.rules_broken = False
        """Whether records as far as its end broke rules of replay, once it is over."""
        self._changed = threading.Condition()
        self._asked: Snapshot | None = None
        self._answer = False
        self._is_over = False

    def end_at(self, stop: Snapshot) -> bool:
        """Have the segment end there; waits for its next batch. Returns whether it will: it may be there already."""
        with self._changed:
            self._asked, self._answer = stop, False
            self._changed.wait_for(lambda: self._asked is None or self._is_over)
            return self._answer

    def look(self, replay: Replay) -> None:
        """The segment is between two batches."""
        if self._asked is not None:
            with self._changed:
                self._answer = replay.stop_at(self._asked)
                self._asked = None
                self._changed.notify_all()

    def close(self) -> None:
        """The segment is over."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
