"""What one rank sent, received and took part in, in order: from events, and small enough for a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.formats.events import CODE
from tracekit.modules.contract import EventBatch

Ints = npt.NDArray[np.int64]
Json = dict[str, Any]

COMMUNICATOR = CODE["mpi_communicator"]
ENVELOPE = CODE["mpi_envelope"]
SEND = CODE["mpi_send"]
POST = CODE["mpi_post"]
RECEIVE = CODE["mpi_receive"]
COLLECTIVE = CODE["mpi_collective"]

SENDS = ("peer", "tag", "communicator", "bytes", "instruction", "count")
"""Columns of a log's sends, and of its receives: equal messages one after another are one row, `count` of them."""
COLLECTIVES = ("communicator", "operation", "root", "bytes", "instruction", "count")
"""Columns of its collective operations."""


@dataclass
class Log:
    """One rank's part. `rank` is None for a process that is no rank."""

    rank: int | None
    size: int
    sends: Ints  # (n, 6): SENDS; those to one peer, with one tag and communicator, in their order
    receives: Ints  # the same, in the order in which they were posted
    collectives: Ints  # (n, 6): COLLECTIVES; those of one communicator in their order
    communicators: Ints  # (n, 3): number, own rank, ranks; the first one is MPI_COMM_WORLD
    unfinished: int  # receives that were never over
    instructions: list[Json]  # as profiles show them

    def merge_state(self) -> Json:
        """As a profile file keeps it."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @classmethod
    def of(cls, merge_state: Mapping[str, Any]) -> Log:
        """From what :meth:`merge_state` gave."""
        tables = {"sends": 6, "receives": 6, "collectives": 6, "communicators": 3}
        arrays: Json = {
            name: np.array(merge_state[name], np.int64).reshape(-1, width) for name, width in tables.items()
        }
        rest = {name: merge_state[name] for name in ("rank", "size", "unfinished", "instructions")}
        return cls(**arrays, **rest)


@dataclass
class Events:
    """The events of messages as columns, in the order of replay."""

    rows: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    envelopes: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)  # by stream: of its next event

    def take(self, batch: EventBatch) -> None:
        """Note those of a batch: kind, subject, address, size, and communicator and envelope of what has them."""
        at = np.flatnonzero((batch.kind >= COMMUNICATOR) & (batch.kind <= COLLECTIVE))
        if not at.size:
            return
        rows = np.zeros((at.size, 6), np.uint64)
        columns: tuple[npt.NDArray[Any], ...] = (batch.kind, batch.subject, batch.address, batch.size)
        for column, values in enumerate(columns):
            rows[:, column] = values[at]
        held = self.envelopes.get(batch.stream, np.zeros(2, np.uint64))
        before = np.concatenate((held[None], rows[:-1, 2:4]))
        addressed = np.isin(rows[:, 0], (SEND, RECEIVE, COLLECTIVE))
        rows[addressed, 4:] = before[addressed]
        if rows[-1, 0] == ENVELOPE:
            self.envelopes[batch.stream] = rows[-1, 2:4].copy()
        self.rows.append(rows[rows[:, 0] != ENVELOPE])

    def log(self, instruction: Callable[[int], Json]) -> Log:
        """The whole, with the names of instructions."""
        rows = np.concatenate(self.rows) if self.rows else np.zeros((0, 6), np.uint64)
        signed = rows.view(np.int64)
        kind = signed[:, 0]
        known = signed[kind == COMMUNICATOR][:, [2, 1, 3]]
        _name_posts(signed)
        ends = np.isin(kind, (SEND, RECEIVE, COLLECTIVE))
        number, signed[ends, 1] = np.unique(signed[ends, 1], return_inverse=True)
        received = signed[kind == RECEIVE]
        return Log(
            rank=int(known[0, 1]) if len(known) else None,
            size=int(known[0, 2]) if len(known) else 0,
            sends=in_runs(_messages(signed[kind == SEND]), 3),
            receives=in_runs(_messages(received[np.argsort(received[:, 2], kind="stable")]), 3),
            collectives=in_runs(_collectives(signed[kind == COLLECTIVE]), 1),
            communicators=known,
            unfinished=int((kind == POST).sum()) - len(received),
            instructions=[instruction(each) for each in number.tolist()],
        )


def _name_posts(rows: Ints) -> None:
    """A receive is known by the instruction that posted it, not by that which waited for it."""
    posts, received = rows[rows[:, 0] == POST], rows[:, 0] == RECEIVE
    order = np.argsort(posts[:, 2])
    posts = posts[order]
    place = np.searchsorted(posts[:, 2], rows[received, 2])
    known = place < len(posts)
    known[known] = posts[place[known], 2] == rows[received, 2][known]
    rows[np.flatnonzero(received)[known], 1] = posts[place[known], 1]


def _messages(rows: Ints) -> Ints:
    """Peer, tag, communicator, bytes, instruction."""
    peer, tag = rows[:, 5] & 0xFFFF_FFFF, rows[:, 5].view(np.uint64) >> np.uint64(32)
    return np.column_stack((peer, tag.astype(np.int64), rows[:, 4], rows[:, 3], rows[:, 1]))


def _collectives(rows: Ints) -> Ints:
    """Communicator, operation, root (-1: it has none), bytes, instruction."""
    root = rows[:, 5] & 0xFFFF_FFFF
    root[root == 0xFFFF_FFFF] = -1
    return np.column_stack((rows[:, 4], rows[:, 2], root, rows[:, 3], rows[:, 1]))


def in_runs(rows: Ints, keys: int) -> Ints:
    """Rows by their first columns, in their order otherwise; equal ones one after another are one, with their count."""
    if not len(rows):
        return np.zeros((0, rows.shape[1] + 1), np.int64)
    ordered = rows[np.lexsort(tuple(rows[:, column] for column in range(keys - 1, -1, -1)))]
    first = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    begins = np.flatnonzero(first)
    counts = np.diff(np.append(begins, len(ordered)))
    return np.column_stack((ordered[begins], counts))


def sorted_logs(logs: Sequence[Log]) -> list[Log]:
    """By rank; processes that are no rank come last."""
    return sorted(logs, key=lambda log: (log.rank is None, log.rank or 0))
