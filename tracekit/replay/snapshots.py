"""Snapshots of a whole trace, made by a pass over it that delivers nothing, and kept in the user's cache.

The pass is a full replay, with the kernel that counts events (engine.count_events) and no column but ``kind``: so the
state, and what is broken, is to the bit that of any other replay at that place.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from tracekit import progress
from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.formats.reader import TraceReader
from tracekit.jit import object_cache
from tracekit.jit.cache import digest
from tracekit.program.program import Program
from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Blocks, Snapshot, blocks_of
from tracekit.replay.totals import trace_totals

MOST = 96
"""Snapshots of a trace at most: when there are so many, every other one goes, and from then on half as many come."""

APART = 1 << 22
"""Loads and stores from one snapshot to the next at least: these take a replay some 50 ms."""

BATCH = 1 << 16
"""Events in a batch of the pass: there may be a snapshot behind each."""

ACCESSES = tuple(CODE[name] for name in ACCESS_EVENTS)


class Snapshots:
    """The snapshots of a trace, in order; each is unpacked when it is asked for."""

    def __init__(self, accesses: Sequence[int], packed: Sequence[bytes], blocks: Blocks) -> None:
        self.accesses = accesses
        """Of each, the loads and stores before it, ascending."""
        self._packed = packed
        self._blocks = blocks

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, number: int) -> Snapshot:
        return Snapshot.from_bytes(self._packed[number], self._blocks)

    def before(self, accesses: int) -> Snapshot | None:
        """The last with fewer loads and stores before it; None if there is none: begin at the beginning.

        One with as many may lie behind other events that follow these.
        """
        number = bisect_left(self.accesses, accesses)
        return self[number - 1] if number else None

    def to_bytes(self) -> bytes:
        """For a file; :meth:`from_bytes` reads it."""
        used = dict.fromkeys(name for part in self._packed for name in blocks_of(part))
        parts = [*self._packed, *(self._blocks[name] for name in used)]
        head = {"accesses": list(self.accesses), "blocks": list(used), "sizes": [len(part) for part in parts]}
        return json.dumps(head).encode() + b"\n" + b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshots:
        """What :meth:`to_bytes` wrote: the caller knows that it is whole."""
        line, _, rest = data.partition(b"\n")
        head = json.loads(line)
        ends = np.cumsum([0, *head["sizes"]]).tolist()
        parts = [rest[begin:end] for begin, end in pairwise(ends)]
        count = len(head["accesses"])
        return cls(head["accesses"], parts[:count], dict(zip(head["blocks"], parts[count:], strict=True)))


def nearest(trace: TraceReader, program: Program, accesses: int) -> Snapshot | None:
    """The last snapshot with fewer loads and stores before it; None if a replay had better begin before all.

    Where none are kept yet they are made, if the place is in the second half of the trace: the pass takes no longer
    than a replay up to there, and the next one is spared it.
    """
    if accesses < APART:
        return None
    key = _key(trace)
    data = object_cache.read(key)
    if data is None:
        if 2 * accesses < trace_totals(trace, program)["accesses"]:
            return None
        data = make(trace, program).to_bytes()
        object_cache.write(key, data)
        object_cache.forget_unused()
    return Snapshots.from_bytes(data).before(accesses)


def _key(trace: TraceReader) -> str:
    return f"snapshots-{object_cache.key_of([trace.content_hash.encode(), _code()])}"


def _code() -> bytes:
    """What tells the code that makes and reads snapshots from that of other versions of tracekit."""
    return digest(Path(__file__)).encode()


def make(trace: TraceReader, program: Program, most: int = MOST) -> Snapshots:
    """Snapshots APART loads and stores from one another, or more where there would be more than `most`."""
    replay = Replay(trace, program, BATCH, columns=())
    seen, last, apart = 0, 0, APART
    found: list[tuple[int, bytes]] = []
    blocks: Blocks = {}
    with progress.step("making snapshots"):
        for events in replay.batches():
            seen += sum(int(np.count_nonzero(events.kind == code)) for code in ACCESSES)
            if seen < last + apart or (snapshot := replay.snapshot(seen)) is None:
                continue
            last = seen
            found.append((seen, snapshot.to_bytes(blocks)))
            if len(found) == most:
                found, apart = found[1::2], 2 * apart
    return Snapshots([accesses for accesses, _ in found], [packed for _, packed in found], blocks)
