"""Snapshots in the trace itself: how they get there, and whether they are what a replay has at their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit import progress
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.formats.rewriting import replace_snapshots, require_replaceable
from tracekit.program.program import Program
from tracekit.replay import snapshots
from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.snapshots import ACCESSES, Collected, Snapshots, make
from tracekit.replay.totals import trace_totals

MOST_SHARE = 0.02
"""Of the bytes of a trace that its snapshots take at most: where there would be more, every other one goes."""

ALWAYS_BYTES = 1 << 16
"""They may take so many in any trace: one of regular loops has a few KB, and takes as long to replay as others."""


@dataclass(frozen=True)
class Indexed:
    """What putting snapshots into a trace did to its file; sizes in bytes."""

    snapshots: int
    snapshot_bytes: int
    """Of their frames."""
    trace_bytes: int
    """Of the file without them."""
    is_new: bool
    """False if they were there before."""


def put_into(path: str) -> Indexed:
    """Put snapshots into the trace at `path`, if it has none. The file is replaced by one that holds both.

    Raises TracekitError if the trace ends early, or its file cannot be replaced; then nothing has changed.
    """
    target = require_replaceable(path)
    with TraceReader(target) as trace:
        if not trace.complete:
            raise TracekitError(f"{path} ends early: only a whole trace can be indexed.")
        found = _found(trace)
        if found:
            return Indexed(found, *_bytes(trace), is_new=False)
        program = Program.from_images(trace.images())
        without = _bytes(trace)[1]
        payloads = []
        if trace_totals(trace, program)["accesses"] > snapshots.APART:
            payloads = _bounded(trace, make(trace, program).payloads, max(without * MOST_SHARE, ALWAYS_BYTES))
        if payloads:
            replace_snapshots(trace, target, payloads)
    with TraceReader(target) as trace:
        return Indexed(len(Snapshots.in_trace(trace)), *_bytes(trace), is_new=bool(payloads))


def take_out(path: str) -> int:
    """Take all snapshots out of the trace at `path`. Returns how many frames went. Raises TracekitError as above."""
    target = require_replaceable(path)
    with TraceReader(target) as trace:
        if not trace.complete:
            raise TracekitError(f"{path} ends early: only a whole trace has snapshots.")
        frames = sum(frame.type == b"SNAP" for frame in trace.frames)
        if frames:
            replace_snapshots(trace, target, [])
    return frames


def faults(trace: TraceReader, program: Program) -> Iterator[str]:
    """The snapshots in a trace that are not what a replay has at their places, each as a line."""
    try:
        known = Snapshots.in_trace(trace)
        if not len(known):
            return
        start: Snapshot | None = None
        with progress.step("checking snapshots"):
            for number, snapshot in enumerate(known):
                start = _standing(trace, program, start, snapshot)
                if start is None or not _is_same(start, snapshot):
                    yield f"snapshot {number}, behind {snapshot.accesses:,} accesses, is not what replay has there"
                if start is None:
                    return
    except TracekitError as error:
        yield str(error)


def _found(trace: TraceReader) -> int:
    """How many usable snapshots a trace has; those that are damaged are made anew."""
    try:
        return len(Snapshots.in_trace(trace))
    except TracekitError:
        return 0


def _bytes(trace: TraceReader) -> tuple[int, int]:
    """Of a file: those of its SNAP frames, and the others."""
    own = sum(frame.end - frame.offset for frame in trace.frames if frame.type == b"SNAP")
    return own, trace.file_bytes - own


def _bounded(trace: TraceReader, payloads: list[bytes], most: float) -> list[bytes]:
    """The payloads of so many of the snapshots that they take no more bytes than `most`."""
    while payloads and sum(map(len, payloads)) > most:
        collected = Collected(trace.content_hash)
        for snapshot in Snapshots.packed(trace.content_hash, payloads):
            collected.add(snapshot)
        collected.thin_out()
        payloads = collected.payloads()
    return payloads


def _standing(trace: TraceReader, program: Program, start: Snapshot | None, stop: Snapshot) -> Snapshot | None:
    """Where a replay from one snapshot to the place of another stands at its end."""
    replay = Replay(trace, program, snapshots.BATCH, columns=(), start=start, stop=stop)
    seen = start.accesses if start is not None else 0
    for events in replay.batches(show_progress=False):
        seen += sum(int(np.count_nonzero(events.kind == code)) for code in ACCESSES)
    return replay.snapshot(seen)


def _is_same(one: Snapshot, other: Snapshot) -> bool:
    heaps = zip(one.heap, other.heap, strict=True)
    nobody = bytes(16).hex()
    return one.to_snap(nobody).build() == other.to_snap(nobody).build() and all(np.array_equal(*two) for two in heaps)
