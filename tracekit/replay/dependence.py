"""Memory dependences with loop levels and contexts: the engine behind ``camp`` and ``lamp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.replay.contextstate import empty_stream
from tracekit.replay.dependence_profile import (
    ACCESS,
    DEPENDENCE,
    EXPOSED,
    LEVEL,
    LISTED_OBJECTS,
    NODE,
    OBJECT,
    ContextKind,
    DependenceKind,
    DependenceProfile,
    ObjectKind,
)
from tracekit.replay.dependence_result import profile
from tracekit.replay.dependence_state import empty_engine, grow
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.dependence import consume
from tracekit.replay.kernels.engine import OK
from tracekit.replay.program import Program

if TYPE_CHECKING:
    from tracekit.module import EventBatch

__all__ = [
    "ACCESS", "DEPENDENCE", "EXPOSED", "LEVEL", "LISTED_OBJECTS", "NODE", "OBJECT", "ContextKind", "DependenceEngine",
    "DependenceKind", "DependenceProfile", "ObjectKind",
]


class DependenceEngine:
    """Finds the dependences of one replay.

    ``context=True`` is CAMP: accesses are told apart by their path of calls and loops. ``context=False`` is
    LAMP: loops are levels, but contexts are not told apart. The batches of a stream come in order; streams may
    alternate. Dependences are found within a stream; an object that ends ends in the histories of all.

    A dependence holds between two *executions* of instructions. The consecutive events of one atomic operation,
    copy or library call, loads before stores, with no other event between, are one execution, and a store
    does not depend on the loads of its own execution. (Batches of other streams should not come inside one.)
    """

    def __init__(self, program: Program, context: bool, capacity: int = 4096) -> None:
        """Begin without history. `capacity` is the number of rows that tables hold before they first grow."""
        self._capacity = capacity
        self._program = program
        self._engine = empty_engine(program, context, capacity)
        self._streams: dict[int, Stream] = {}

    def feed(self, batch: EventBatch) -> None:
        """Take the events of `batch`. Raises TracekitError if an event's size is impossible."""
        self.feed_columns(batch.stream, batch.kind, batch.subject, batch.address, batch.size)

    def feed_columns(self, number: int, kind: Any, subject: Any, address: Any, size: Any) -> None:
        """Take events of stream `number`, given as columns (u1, u4, u8, u8) of one length."""
        if number not in self._streams:
            self._streams[number] = empty_stream(len(self._streams), min(self._capacity, 256))
        stream = self._streams[number]
        address, size = address.view(np.int64), size.view(np.int64)
        done, status = consume(self._engine, stream, kind, subject, address, size, 0)
        while status != OK:
            self._engine, stream = grow(self._engine, stream, status)
            self._streams[number] = stream
            done, status = consume(self._engine, stream, kind, subject, address, size, done)

    def result(self) -> DependenceProfile:
        """What was found until now; loops that are open count as if they ended here."""
        return profile(self._engine, list(self._streams.values()), len(self._program.ops))
