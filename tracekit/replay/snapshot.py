"""A snapshot: where a replay stands between two records of its running stream, so that another can go on from there.

It holds what decides the events that follow: of each stream the stack (frames, open loops and their iterations,
registers, stack objects), its place in its records, and what its records broke so far; the heap, the threads that were
created, and whose turn it is. It says nothing of what was asked for: any events and columns may follow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from tracekit.replay.kernels import layouts

LEVEL = 3
"""Of zstd: a tenth of a millisecond for a snapshot of 100 KB."""

BLOCK_BITS = 18
"""Heap objects in so many bits of addresses are a block: snapshots share those in which nothing has changed."""

Blocks = MutableMapping[str, bytes]
"""Blocks of heaps by names that follow from their contents."""

_LAYOUT = {
    "frames": layouts.FRAME_ROW,
    "open_loops": np.dtype(np.uint32),
    "iterations": np.dtype(np.uint64),
    "registers": np.dtype(np.uint64),
    "objects": layouts.OBJECT,
    "scalars": np.dtype(np.int64),
    "violations": np.dtype(np.int64),
}
"""The arrays of a stream's state, as layouts.Stream has them."""


@dataclass(frozen=True)
class StreamSnapshot:
    """One stream: its number, the records before its place, and the parts of its arrays that are in use."""

    number: int
    records: int
    state: layouts.Stream


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
    heap: tuple[NDArray[np.uint64], NDArray[np.uint64]]
    """Addresses, ascending, and sizes of the live heap objects."""
    created: NDArray[np.uint8]
    """As layouts.Process has it."""
    accesses: int = 0

    @property
    def records(self) -> int:
        """Records of all streams before it."""
        return sum(stream.records for stream in self.streams)

    def to_bytes(self, blocks: Blocks) -> bytes:
        """For a file; :meth:`from_bytes` reads it. Blocks of its heap that `blocks` has not yet are put there."""
        turn = self.turn
        head = {
            "turn": [turn.number, turn.stream, turn.limit, turn.begun],
            "accesses": self.accesses,
            "streams": [
                [stream.number, stream.records, *(len(getattr(stream.state, name)) for name in _LAYOUT)]
                for stream in self.streams
            ],
            "heap": list(_put(blocks, *self.heap)),
            "created": len(self.created),
        }
        parts = [json.dumps(head).encode() + b"\n"]
        parts += [getattr(stream.state, name).tobytes() for stream in self.streams for name in _LAYOUT]
        return _packed(*parts, self.created.tobytes())

    @classmethod
    def from_bytes(cls, data: bytes, blocks: Blocks) -> Snapshot:
        """What :meth:`to_bytes` wrote, in the same version of tracekit: the caller knows that it is whole."""
        head, rest = _opened(data)
        arrays = _Arrays(rest)
        streams = [
            StreamSnapshot(number, records, layouts.Stream(**dict(arrays.fields(counts))))
            for number, records, *counts in head["streams"]
        ]
        created = arrays.take(np.dtype(np.uint8), head["created"])
        return cls(Turn(*head["turn"]), streams, _taken(blocks, head["heap"]), created, head["accesses"])


def blocks_of(data: bytes) -> list[str]:
    """The names of the blocks that a snapshot needs."""
    names: list[str] = _opened(data)[0]["heap"]
    return names


def _opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The head of what ``Snapshot.to_bytes`` wrote, and the arrays behind it."""
    line, _, rest = zstandard.ZstdDecompressor().decompress(data).partition(b"\n")
    return json.loads(line), rest


def _packed(*parts: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL).compress(b"".join(parts))


def _put(blocks: Blocks, addresses: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> Iterator[str]:
    """Put the blocks of a heap among others; the names of all of them, in order of addresses."""
    borders = np.flatnonzero(np.diff(addresses >> np.uint64(BLOCK_BITS))) + 1
    for begin, end in pairwise([0, *borders.tolist(), len(addresses)]):
        content = np.concatenate([np.diff(addresses[begin:end], prepend=np.uint64(0)), sizes[begin:end]]).tobytes()
        name = hashlib.blake2b(content, digest_size=8).hexdigest()
        if name not in blocks:
            blocks[name] = _packed(content)
        yield name


def _taken(blocks: Blocks, names: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses and sizes of a heap."""
    addresses = [np.empty(0, np.uint64)]
    sizes = [np.empty(0, np.uint64)]
    for name in names:
        steps, own = np.frombuffer(zstandard.ZstdDecompressor().decompress(blocks[name]), np.uint64).reshape(2, -1)
        addresses.append(np.cumsum(steps, dtype=np.uint64))
        sizes.append(own)
    return np.concatenate(addresses), np.concatenate(sizes)


class _Arrays:
    """Arrays, one after another in some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        array = np.frombuffer(self.data, dtype, count, self.at)
        self.at += array.nbytes
        return array

    def fields(self, counts: Sequence[int]) -> Iterator[tuple[str, NDArray[Any]]]:
        for (name, dtype), count in zip(_LAYOUT.items(), counts, strict=True):
            array = self.take(dtype, count * (2 if name == "violations" else 1))
            yield name, array.reshape(-1, 2) if name == "violations" else array


def in_use(state: layouts.Stream, tables: layouts.Tables) -> layouts.Stream:
    """Copies of the parts of a stream's arrays that mean anything."""
    top = int(state.scalars[layouts.TOP])
    loops = registers = 0
    if top >= 0:
        frame = state.frames[top]
        loops, registers = int(frame["loop_base"]) + int(frame["loops"]), int(frame["register_base"])
        if frame["function"] < len(tables.functions):
            registers += int(tables.functions[frame["function"]]["slots"])
    return layouts.Stream(
        frames=_without_padding(state.frames[: top + 1]),
        open_loops=state.open_loops[:loops].copy(),
        iterations=state.iterations[:loops].copy(),
        registers=state.registers[:registers].copy(),
        objects=_without_padding(state.objects[: state.scalars[layouts.OBJECTS]]),
        scalars=state.scalars.copy(),
        violations=state.violations.copy(),
    )


def _without_padding(rows: NDArray[Any]) -> NDArray[Any]:
    """A copy with zeros between the fields: what stands there is any memory's, and would be kept in files."""
    copy = np.zeros(len(rows), rows.dtype)
    for name in rows.dtype.names or ():
        copy[name] = rows[name]
    return copy


def with_room(part: layouts.Stream, empty: layouts.Stream) -> layouts.Stream:
    """The arrays of `empty`, doubled as often as needed, with those of a snapshot in them.

    The templates that were made are not the new replay's: PATIENCE is that of `empty`.
    """
    filled = {}
    for name in _LAYOUT:
        old, array = getattr(part, name), getattr(empty, name)
        room = len(array)
        while name not in ("scalars", "violations") and room < len(old) + layouts.SPARE:
            room *= 2
        filled[name] = np.zeros((room, *array.shape[1:]), array.dtype)
        filled[name][: len(old)] = old
    filled["scalars"][layouts.PATIENCE] = empty.scalars[layouts.PATIENCE]
    return layouts.Stream(**filled)


def live_objects(process: layouts.Process) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses, ascending, and sizes of the live heap objects."""
    used = np.flatnonzero(process.addresses)
    order = used[np.argsort(process.addresses[used])]
    return process.addresses[order], process.sizes[order]
