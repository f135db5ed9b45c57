"""What segments begin with, kept in the user's cache: the next analysis of a trace needs no pass ahead.

Of analyses whose modules all say what tells their beginnings from others' (:attr:`Segments.beginnings`). While the pass
ahead goes on it keeps what a segment would begin with wherever another of so many equal parts of the trace is over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tracekit.containers.serialization import deserialized, serialized
from tracekit.formats.reader import TraceReader
from tracekit.jit import object_cache
from tracekit.jit.cache import digest
from tracekit.modules.segments import Segments
from tracekit.segments.ahead import PassAhead
from tracekit.segments.work_item import WorkItem

MOST_BYTES = 1 << 26
"""That are kept for one trace and one kind of analysis; what would take more is not kept."""


class StartCache:
    """Of `parts` equal parts of a trace what each but the first begins with, if an earlier analysis has kept it."""

    def __init__(self, trace: TraceReader, segments: Mapping[str, Segments], parts: int) -> None:
        self._names = sorted(segments, key=lambda name: (segments[name].beginnings or "", name))
        self._may_keep = all(segments[name].beginnings is not None for name in segments)
        records = sum(frame.items for frame in trace.chunk_frames())
        self._waiting = [records * part // parts for part in range(parts - 1, 0, -1)]
        self._made: list[bytes] = []
        self._found: list[bytes] = []
        if self._may_keep:
            beginnings = [(segments[name].beginnings or "").encode() for name in self._names]
            code = [digest(Path(sys.modules[type(segments[name]).__module__].__file__ or "")) for name in self._names]
            code.append(digest(Path(__file__)))
            parted = [trace.content_hash.encode(), str(parts).encode(), *beginnings, *(part.encode() for part in code)]
            self._key = f"beginnings-{object_cache.key_of(parted)}"
            data = object_cache.read(self._key)
            self._found = [] if data is None else deserialized(data)

    @property
    def are_there(self) -> bool:
        """Whether an earlier analysis has kept any."""
        return bool(self._found)

    def items(self) -> Iterator[WorkItem]:
        """What an earlier analysis has kept, in order: from where each begins to the end of the trace."""
        for data in self._found:
            item = WorkItem.from_bytes(data)
            yield WorkItem(item.start, None, {name: item.starts[str(n)] for n, name in enumerate(self._names)})

    def look(self, ahead: PassAhead) -> None:
        """The pass ahead is between two batches: keep what a segment would begin with here, if one is to."""
        if not self._may_keep or not self._waiting or ahead.records < self._waiting[-1]:
            return
        snapshot = ahead.snapshot()
        if snapshot is None:
            return
        while self._waiting and ahead.records >= self._waiting[-1]:
            self._waiting.pop()
        starts = ahead.starts()
        self._made.append(
            WorkItem(snapshot, None, {str(n): starts[name] for n, name in enumerate(self._names)}).to_bytes()
        )
        if sum(map(len, self._made)) > MOST_BYTES:
            self._may_keep = False

    def write(self) -> None:
        """Keep what was found for the next analysis, if all is there."""
        if self._may_keep and self._made and not self._waiting:
            object_cache.write(self._key, serialized(self._made))
            object_cache.forget_unused()
