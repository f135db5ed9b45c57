"""SNAP payloads: where a replay of the trace can begin (SPEC.md, "SNAP")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.limits import DEEPEST

LAYOUT = 1
"""The layout of payloads that is written, and the only one that is read."""

HEAD = np.dtype(
    [
        ("layout", "<u4"),
        ("streams", "<u4"),
        ("first_block", "<u4"),
        ("blocks", "<u4"),
        ("heap", "<u4"),
        ("begun", "<u4"),
        ("running", "<u4"),
        ("reserved", "<u4"),
        ("turn", "<u8"),
        ("limit", "<i8"),
        ("accesses", "<u8"),
        ("trace", "u1", (16,)),
    ]
)

STREAM = np.dtype(
    [
        ("number", "<u4"),
        ("flags", "<u4"),
        ("frames", "<u4"),
        ("iterations", "<u4"),
        ("registers", "<u4"),
        ("objects", "<u4"),
        ("broken", "<u4"),
        ("reserved", "<u4"),
        ("records", "<u8"),
        ("addresses", "<u8"),
        ("blocks", "<u8"),
        ("runs", "<u8"),
    ]
)
# Flags of a stream.
LOST = 1  # records were dropped, and nothing has landed since
MAY_START = 2  # it is its turn to pass a thread_start
CREATED = 4  # its thread_create was delivered

FRAME = np.dtype(
    [
        ("address", "<u8"),
        ("function", "<u4"),
        ("call", "<u4"),
        ("block", "<u4"),
        ("loop", "<u4"),
        ("first_object", "<u4"),
        ("flags", "<u4"),
    ]
)
# Flags of a frame.
ENTERED = 1  # the open call entered instrumented code
TAIL = 2  # the open call is a tail call
LEAVES = 4  # it is one that cannot enter instrumented code
EFFECTS = 8  # a tail call was one that may have effects

OBJECT = np.dtype(
    [("address", "<u8"), ("size", "<u8"), ("op", "<u4"), ("register", "<u4"), ("flags", "<u4"), ("reserved", "<u4")]
)
# Flags of an object.
ENDED = 1

BROKEN = np.dtype([("count", "<u8"), ("first", "<u8"), ("rule", "<u4"), ("reserved", "<u4")])

_U4, _U8 = np.dtype("<u4"), np.dtype("<u8")
ARRAYS = {"frames": FRAME, "iterations": _U8, "registers": _U8, "objects": OBJECT, "broken": BROKEN}
"""Those of a stream, in their order."""


@dataclass(frozen=True)
class StreamState:
    """One stream: its row, of dtype STREAM, and the rows of its arrays."""

    row: NDArray[Any]
    """[1]"""
    frames: NDArray[Any]
    iterations: NDArray[np.uint64]
    registers: NDArray[np.uint64]
    objects: NDArray[Any]
    broken: NDArray[Any]

    def named(self, name: str) -> int:
        """A field of its row."""
        return int(self.row[name][0])


@dataclass(frozen=True)
class Snap:
    """A payload: a state of all streams, or blocks of heaps alone, if it has no streams."""

    head: NDArray[Any]
    """[1] of dtype HEAD"""
    streams: Sequence[StreamState]
    heap: NDArray[np.uint32]
    """The blocks that the heap is made of."""
    blocks: Sequence[NDArray[np.uint64]]
    """Those that stand in this payload: [2, objects], how far each address is from the one before, and sizes."""

    @classmethod
    def of(cls, trace: str, streams: Sequence[StreamState], **fields: int) -> Snap:
        """A payload of the trace with this content hash, without a heap; `fields` of its head."""
        head = np.zeros(1, HEAD)
        head["layout"], head["streams"] = LAYOUT, len(streams)
        head["trace"] = np.frombuffer(bytes.fromhex(trace), np.uint8)
        for name, value in fields.items():
            head[name] = value
        return cls(head, streams, np.empty(0, _U4), [])

    def named(self, name: str) -> int:
        """A field of its head."""
        return int(self.head[name][0])

    def build(self) -> bytes:
        """The payload."""
        counts = np.array([block.shape[1] for block in self.blocks], _U4)
        numbers = counts.tobytes() + self.heap.astype(_U4).tobytes()
        parts = [self.head.tobytes(), numbers, bytes(-len(numbers) % 8)]
        parts += [stream.row.tobytes() for stream in self.streams]
        parts += [getattr(stream, name).tobytes() for stream in self.streams for name in ARRAYS]
        parts += [block.astype(_U8).tobytes() for block in self.blocks]
        return b"".join(parts)


def with_heap(snap: Snap, heap: NDArray[np.uint32], first_block: int, blocks: Sequence[NDArray[np.uint64]]) -> Snap:
    """The payload with a heap of the blocks of these numbers; `blocks`, from `first_block` on, stand in it."""
    head = snap.head.copy()
    head["heap"], head["first_block"], head["blocks"] = len(heap), first_block, len(blocks)
    return Snap(head, snap.streams, heap, blocks)


def blocks_alone(trace: str, first_block: int, blocks: Sequence[NDArray[np.uint64]]) -> Snap:
    """A payload that brings blocks for those behind it."""
    return with_heap(Snap.of(trace, []), np.empty(0, _U4), first_block, blocks)


def head_of(payload: bytes) -> NDArray[Any] | None:
    """The head of a payload, [1] of dtype HEAD; None if it has another layout. Raises TracekitError as :func:`parse`.

    Only that much of the payload is looked at.
    """
    if len(payload) < 4:
        raise _damaged("is too short")
    if int.from_bytes(payload[:4], "little") != LAYOUT:
        return None
    if len(payload) < HEAD.itemsize:
        raise _damaged("is too short")
    return np.frombuffer(payload, HEAD, 1)


def is_of(head: NDArray[Any], trace: str) -> bool:
    """Whether the payload with this head is of the trace with this content hash."""
    return bytes(head["trace"][0]).hex() == trace


def parse(payload: bytes) -> Snap:
    """Read a payload of the layout LAYOUT. Raises TracekitError if its lengths do not add up."""
    head = head_of(payload)
    if head is None:
        raise _damaged("has another layout")
    taking = _Taking(payload, HEAD.itemsize)
    counts = taking.take(_U4, int(head["blocks"][0]))
    heap = taking.take(_U4, int(head["heap"][0]))
    taking.at += -taking.at % 8
    rows = taking.take(STREAM, int(head["streams"][0]))
    streams = [
        StreamState(rows[k : k + 1], **{name: taking.take(dtype, int(row[name])) for name, dtype in ARRAYS.items()})
        for k, row in enumerate(rows)
    ]
    blocks = [taking.take(_U8, 2 * int(count)).reshape(2, -1) for count in counts]
    if taking.at != len(payload):
        raise _damaged("has another length than it says")
    return Snap(head, streams, heap, blocks)


class _Taking:
    """Arrays, one after another in some bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        if count * dtype.itemsize > len(self.data) - self.at:
            raise _damaged("is too short")
        if dtype is not _U8 and dtype is not _U4 and count > DEEPEST:
            raise _damaged("claims more than any program has")
        array: NDArray[Any] = np.frombuffer(self.data, dtype, count, self.at)
        self.at += array.nbytes
        return array


def heap_of(blocks: Iterator[NDArray[np.uint64]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses, ascending, and sizes of the objects in a heap's blocks. Raises TracekitError if they do not ascend."""
    addresses, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for steps, own in blocks:
        addresses.append(np.cumsum(steps, dtype=np.uint64))
        sizes.append(own.astype(np.uint64))
    joined = np.concatenate(addresses)
    if len(joined) and (joined[0] == 0 or bool((joined[1:] <= joined[:-1]).any())):
        raise _damaged("has a heap whose addresses do not ascend")
    return joined, np.concatenate(sizes)


def _damaged(what: str) -> TracekitError:
    return TracekitError(f"The trace is damaged: a snapshot {what}.")
