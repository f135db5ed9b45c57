"""A snapshot: where a replay stands between two records of its running stream, so that another can go on from there.

It holds what decides the events that follow: of each stream the stack (frames, iterations of open loops, registers,
stack objects), its place in its records, and what its records broke so far; the heap, the threads that were created,
and whose turn it is. It says nothing of what was asked for: any events and columns may follow.

The states of streams are as they stand in files (formats/snapshots.py): what follows from the program is left out, and
nothing of an array is kept but what means something. ``stream_states.py`` makes them of a replay's, and the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.snapshots import CREATED, Snap, StreamState, heap_of
from tracekit.replay.kernels import layouts

BLOCK_BITS = 18
"""Heap objects in so many bits of addresses are a block: snapshots share those in which nothing has changed."""

Block = NDArray[np.uint64]
"""[2, objects]: how far each address is from the one before, the first from 0, and sizes."""

Heap = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Addresses, ascending, and sizes of the live heap objects."""


@dataclass(frozen=True)
class StreamSnapshot:
    """One stream: its number, the records before its place, and its state."""

    number: int
    records: int
    state: StreamState


@dataclass(frozen=True)
class Turn:
    """Whose turn it is: streams take turns, each up to a ticket."""

    number: int
    """Turns before it."""
    stream: int
    """The number of the stream."""
    limit: int
    """The ticket up to which it may run."""
    begun: int
    """Streams that have had their first turn, or have it now."""


@dataclass(frozen=True)
class Snapshot:
    """See above. `accesses`: loads and stores of all streams before it, in the order of replay."""

    turn: Turn
    streams: Sequence[StreamSnapshot]
    heap: Heap
    accesses: int = 0

    @property
    def records(self) -> int:
        """Records of all streams before it."""
        return sum(stream.records for stream in self.streams)

    @property
    def created(self) -> list[int]:
        """The streams whose thread_create was delivered."""
        return [stream.number for stream in self.streams if stream.state.named("flags") & CREATED]

    def to_snap(self, trace: str) -> Snap:
        """For a file of the trace with this content hash, but for its heap (formats.snapshots.with_heap)."""
        return Snap.of(
            trace,
            [stream.state for stream in self.streams],
            begun=self.turn.begun,
            running=self.turn.stream,
            turn=self.turn.number,
            limit=self.turn.limit,
            accesses=self.accesses,
        )

    @classmethod
    def of_snap(cls, snap: Snap, block: Callable[[int], Block]) -> Snapshot:
        """What a file holds; `block` finds the block of a number. Raises TracekitError if that is no heap."""
        turn = Turn(*(snap.named(name) for name in ("turn", "running", "limit", "begun")))
        streams = [StreamSnapshot(state.named("number"), state.named("records"), state) for state in snap.streams]
        return cls(turn, streams, heap_of(block(int(number)) for number in snap.heap), snap.named("accesses"))


def blocks_of(heap: Heap) -> list[Block]:
    """The blocks of a heap, in order of addresses."""
    addresses, sizes = heap
    borders = np.flatnonzero(np.diff(addresses >> np.uint64(BLOCK_BITS))) + 1
    return [
        np.stack([np.diff(addresses[begin:end], prepend=np.uint64(0)), sizes[begin:end]])
        for begin, end in pairwise([0, *borders.tolist(), len(addresses)])
        if begin < end
    ]


def live_objects(process: layouts.Process) -> Heap:
    """Addresses, ascending, and sizes of the live heap objects."""
    used = np.flatnonzero(process.addresses)
    order = used[np.argsort(process.addresses[used])]
    return process.addresses[order], process.sizes[order]
