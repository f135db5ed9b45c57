"""Snapshots of a whole trace, made by a pass over it that delivers nothing: where they are kept, and the nearest one.

They stand in the trace (``tracekit index``), or in the user's cache. The pass is a full replay, with the kernel that
counts events (engine.count_events) and no column but ``kind``: so the state, and what is broken, is to the bit that of
any other replay at that place.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import zstandard

from tracekit import progress
from tracekit.formats.container import frames_of
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.formats.reader import TraceReader
from tracekit.formats.snapshots import blocks_alone, head_of, is_of, parse, with_heap
from tracekit.jit import object_cache
from tracekit.jit.cache import digest
from tracekit.program.program import Program
from tracekit.replay.engine import Replay
from tracekit.replay.snapshot import Block, Snapshot, blocks_of

MOST = 96
"""Snapshots of a trace at most: when there are so many, every other one goes, and from then on half as many come."""

APART = 1 << 22
"""Loads and stores from one snapshot to the next at least: these take a replay some 50 ms."""

BATCH = 1 << 16
"""Events in a batch of the pass: there may be a snapshot behind each."""

LEVEL = 3
"""Of zstd: a tenth of a millisecond for a snapshot of 100 KB."""

MOST_BYTES = 64 << 20
"""Of blocks of heaps in one payload, about, which may have four times as many."""

ACCESSES = tuple(CODE[name] for name in ACCESS_EVENTS)


class Snapshots:
    """The snapshots of a trace, in order; each is made of its payload when it is asked for.

    `payloads` returns those of the SNAP frames by their numbers, of which there are `count`; `trace`: the content hash.
    Raises TracekitError, here and for each snapshot, for what is damaged. What has another layout, or is of another
    trace, is passed over.
    """

    def __init__(self, trace: str, count: int, payloads: Callable[[int], bytes]) -> None:
        self._payloads = payloads
        heads = [(number, head_of(payloads(number))) for number in range(count)]
        own = [(number, head[0]) for number, head in heads if head is not None and is_of(head, trace)]
        self._numbers = [number for number, _ in own]
        self._ends = list(accumulate(int(head["blocks"]) for _, head in own))
        if [int(head["first_block"]) for _, head in own] != [0, *self._ends][: len(own)]:
            raise TracekitError("The trace is damaged: of its snapshots some are missing.")
        placed = [(number, int(head["accesses"])) for number, head in own if head["streams"]]
        self._placed = [number for number, _ in placed]
        self.accesses = [accesses for _, accesses in placed]
        """Of each, the loads and stores before it, ascending."""
        if any(one >= other for one, other in pairwise(self.accesses)):
            raise TracekitError("The trace is damaged: its snapshots are in disorder.")

    @classmethod
    def in_trace(cls, trace: TraceReader) -> Snapshots:
        """Those that stand in the trace."""
        frames = frames_of(trace.frames, b"SNAP")
        return cls(trace.content_hash, len(frames), lambda number: trace.payload(frames[number]))

    @classmethod
    def packed(cls, trace: str, payloads: Sequence[bytes]) -> Snapshots:
        """Those of payloads that :meth:`Collected.payloads` has packed: the caller knows that they are whole."""
        return cls(trace, len(payloads), lambda number: unpacked(payloads[number]))

    def __len__(self) -> int:
        return len(self._placed)

    def __getitem__(self, number: int) -> Snapshot:
        blocks: dict[int, Sequence[Block]] = {}

        def block(wanted: int) -> Block:
            place = bisect_right(self._ends, wanted)
            if place == len(self._numbers):
                raise TracekitError("The trace is damaged: a snapshot has blocks that are not there.")
            if place not in blocks:
                blocks[place] = parse(self._payloads(self._numbers[place])).blocks
            return blocks[place][wanted - self._ends[place]]  # counted from the end

        return Snapshot.of_snap(parse(self._payloads(self._placed[number])), block)

    def __iter__(self) -> Iterator[Snapshot]:
        return (self[number] for number in range(len(self)))

    def before(self, accesses: int) -> Snapshot | None:
        """The last with fewer loads and stores before it; None if there is none: begin at the beginning.

        One with as many may lie behind other events that follow these.
        """
        number = bisect_left(self.accesses, accesses)
        return self[number - 1] if number else None


class Collected:
    """Snapshots of the trace with this content hash that are added in their order, and thinned out.

    Of a heap only the blocks are kept that no other one has.
    """

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self._found: list[tuple[bytes, Sequence[bytes]]] = []
        self._blocks: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, snapshot: Snapshot) -> None:
        """Add one, which lies behind those that were added."""
        names = []
        for block in blocks_of(snapshot.heap):
            content = block.tobytes()
            names.append(hashlib.blake2b(content, digest_size=16).digest())
            if names[-1] not in self._blocks:
                self._blocks[names[-1]] = packed(content)
        self._found.append((packed(snapshot.to_snap(self._trace).build()), names))

    def thin_out(self) -> None:
        """Let every other one go."""
        self._found = self._found[1::2]
        used = {name for _, names in self._found for name in names}
        self._blocks = {name: self._blocks[name] for name in self._blocks if name in used}

    def payloads(self) -> list[bytes]:
        """Those of their SNAP frames, each as a zstd frame that says its size."""
        made: list[bytes] = []
        numbers: dict[bytes, int] = {}
        for state, names in self._found:
            first, size = len(numbers), 0
            new: list[Block] = []
            for name in names:
                if name in numbers:
                    continue
                if size > MOST_BYTES:  # the rest goes into a payload of its own
                    made.append(packed(blocks_alone(self._trace, first, new).build()))
                    first, new, size = len(numbers), [], 0
                numbers[name] = len(numbers)
                new.append(np.frombuffer(unpacked(self._blocks[name]), np.uint64).reshape(2, -1))
                size += new[-1].nbytes
            heap = np.array([numbers[name] for name in names], np.uint32)
            made.append(packed(with_heap(parse(unpacked(state)), heap, first, new).build()))
        return made


def packed(content: bytes) -> bytes:
    """A zstd frame that says its size."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(content)


def unpacked(data: bytes) -> bytes:
    """What :func:`packed` was given: the caller knows that it is whole."""
    return zstandard.ZstdDecompressor().decompress(data)


# -- where they are kept ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """What is known of a trace in the user's cache."""

    payloads: list[bytes]
    apart: int
    """Loads and stores from one to the next at least."""
    reach: int
    """Of the places behind so many loads and stores, none has one that is not known."""

    def snapshots(self, trace: TraceReader) -> Snapshots:
        """Its snapshots."""
        return Snapshots.packed(trace.content_hash, self.payloads)

    def to_bytes(self) -> bytes:
        """For a file; :meth:`from_bytes` reads it."""
        head = {"apart": self.apart, "reach": self.reach, "sizes": [len(payload) for payload in self.payloads]}
        return json.dumps(head).encode() + b"\n" + b"".join(self.payloads)

    @classmethod
    def from_bytes(cls, data: bytes) -> Kept:
        """What :meth:`to_bytes` wrote: the caller knows that it is whole."""
        line, _, rest = data.partition(b"\n")
        head = json.loads(line)
        ends = accumulate(head["sizes"], initial=0)
        return cls([rest[begin:end] for begin, end in pairwise(ends)], head["apart"], head["reach"])


def nearest(trace: TraceReader, program: Program, accesses: int) -> Snapshot | None:
    """The last snapshot with fewer loads and stores before it; None if a replay had better begin before all.

    Where none are known yet up to that place, they are made: the pass takes no longer than a replay up to there, and
    the next one is spared it.
    """
    if accesses < APART:
        return None
    found = Snapshots.in_trace(trace)
    if not len(found):
        key = _key(trace)
        data = object_cache.read(key)
        kept = None if data is None else Kept.from_bytes(data)
        if kept is None or kept.reach < accesses:
            kept = make(trace, program, accesses, kept)
            object_cache.write(key, kept.to_bytes())
            object_cache.forget_unused()
        found = kept.snapshots(trace)
    return found.before(accesses)


def _key(trace: TraceReader) -> str:
    return f"snapshots-{object_cache.key_of([trace.content_hash.encode(), _code()])}"


def _code() -> bytes:
    """What tells the code that makes and reads snapshots from that of other versions of tracekit."""
    return digest(Path(__file__)).encode()


EVERYWHERE = 1 << 62
"""The reach of snapshots of the whole trace."""


def make(
    trace: TraceReader, program: Program, reach: int = EVERYWHERE, known: Kept | None = None, most: int = MOST
) -> Kept:
    """Snapshots up to a place, APART loads and stores from one another, or more where there would be more than `most`.

    known: those up to an earlier place, made with the same `most`.
    """
    collected = Collected(trace.content_hash)
    start: Snapshot | None = None
    apart = APART if known is None else known.apart
    for start in known.snapshots(trace) if known is not None else ():
        collected.add(start)
    replay = Replay(trace, program, BATCH, columns=(), start=start)
    seen = last = start.accesses if start is not None else 0
    with progress.step("making snapshots"):
        for events in replay.batches():
            seen += sum(int(np.count_nonzero(events.kind == code)) for code in ACCESSES)
            if seen >= last + apart and (snapshot := replay.snapshot(seen)) is not None:
                last = seen
                collected.add(snapshot)
                if len(collected) == most:
                    collected.thin_out()
                    apart *= 2
            if seen >= reach:
                return Kept(collected.payloads(), apart, reach)
    return Kept(collected.payloads(), apart, EVERYWHERE)
