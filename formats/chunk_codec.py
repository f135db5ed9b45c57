"""The chunk codec: records to columns and back, by two predictions for each word position of a record id.

SPEC.md ("CHNK") defines it. The recorder's encoder (recorder/runtime/encoder_scalar.c) makes the same
columns, to the byte.
"""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, MAX_RECORDS, PADDING, THREAD, WINDOW, Chunk, Columns
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.kernels.decoding import (
    BAD_CODE,
    END,
    LEFTOVER,
    NEED,
    OVERRUN,
    RECORD,
    ROOM,
    SLOTS,
    SLOTS_USED,
    UNKNOWN_ID,
    State,
    decode_kernel,
)
from tracekit.formats.kernels.encoding import encode_kernel
from tracekit.formats.kernels.predictions import LITERAL, PREDICTOR, SLOT
from tracekit.jit.caller import Caller

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]

_REASONS = {
    UNKNOWN_ID: "has an id that no image explains",
    BAD_CODE: "has codes for more words than it has",
    OVERRUN: "needs more than its columns hold",
    LEFTOVER: "is the last, and its columns hold more than it needs",
}

RECORDS, WORDS = 1 << 15, 1 << 16
"""Room of a batch."""
WORDS_OF_SHORT = 64


class Decoder:
    """Decodes chunks of one stream, batch by batch, into buffers that it reuses.

    arity: (ids) u4, words of each record id, NONE for ids that no record may have.
    records, words: room of a batch; a record with more words than that makes the room larger. kept: batches that stay
    as they are, the newest one counted, until the next call.
    """

    def __init__(self, arity: U4, records: int = RECORDS, words: int = WORDS, kept: int = 1) -> None:
        if bool(np.any((arity != NONE) & (arity > MAX_ARITY))):
            raise TracekitError(f"The trace is damaged: a path has more than {MAX_ARITY} words.")
        self._arity = np.ascontiguousarray(arity, np.uint32)
        self._ids = np.empty(records, np.uint32)
        self._words = np.zeros(WINDOW + words, np.uint64)
        self._others = deque(
            (np.empty(records, np.uint32), np.zeros(WINDOW + words, np.uint64)) for _ in range(kept - 1)
        )
        self._decoded = 0
        self._state = State(
            np.zeros(4 * len(arity), np.uint32),
            np.full(len(arity), -1, np.int64),
            np.zeros(SLOT * 1024, np.uint64),
            np.zeros(8, np.int64),
        )
        self._chunk: Chunk | None = None
        self._decode = Caller(decode_kernel)

    @classmethod
    def for_chunks(cls, records: int, arity: U4, kept: int = 1) -> Decoder:
        """A decoder for chunks of at most so many records: of thousands of short threads each takes little room."""
        records = min(max(records, 1), RECORDS)
        return cls(arity, records, min(WORDS, WORDS_OF_SHORT + 8 * records), kept)

    def start(self, chunk: Chunk) -> None:
        """Begin a chunk: every prediction starts from nothing."""
        state = self._state
        state.successors.fill(0)
        state.first_slot.fill(-1)
        state.slots[: SLOT * state.at[SLOTS_USED]] = 0
        state.at.fill(0)
        self._words[:WINDOW] = 0
        self._decoded = 0
        self._chunk = chunk

    def batch(self) -> tuple[U4, U8] | None:
        """The next records of the chunk: ids, and the words of all of them; None at its end.

        Both are views that one of the next calls overwrites. Raises TracekitError if the chunk is damaged.
        """
        while self._chunk is not None:
            before = self._words[self._decoded : self._decoded + WINDOW].copy()
            self._others.append((self._ids, self._words))
            self._ids, self._words = self._others.popleft()
            self._words[:WINDOW] = before
            status, records, words = self._decode(
                self._chunk.columns, self._arity, self._state, self._chunk.words, self._ids, self._words
            )
            self._decoded = words
            if status not in (END, ROOM, SLOTS):
                raise TracekitError(f"record {int(self._state.at[RECORD])} {_REASONS[status]}")
            if status == END:
                self._chunk = None
            elif status == SLOTS:
                self._grow_slots()
            elif not records:
                self._grow_words()
            if records or status == END:
                return (self._ids[:records], self._words[WINDOW : WINDOW + words]) if records else None
        return None

    def _grow_words(self) -> None:
        old = self._words
        self._words = np.empty(WINDOW + max(int(self._state.at[NEED]), 2 * len(old)), np.uint64)
        self._words[:WINDOW] = old[:WINDOW]

    def _grow_slots(self) -> None:
        """Slots are bounded by the words of the chunk: each belongs to an id that the chunk holds."""
        old = self._state.slots
        slots = np.zeros(max(SLOT * int(self._state.at[NEED]), 2 * len(old)), np.uint64)
        slots[: len(old)] = old
        self._state = self._state._replace(slots=slots)


def encode(
    ids: U4, words: U8, arity: U4, thread: int = 0, kind: int = THREAD, predictors: NDArray[np.uint8] | None = None
) -> Chunk:
    """Encode records, `ids` and the `words` of all of them, as one chunk.

    arity: (ids) u4, words of each record id, NONE for ids that no record may have. predictors: u1, of the slots in
    the order of their first words; they say how, never what is encoded. Raises ValueError for
    an unknown id, for words missing or left over, and for more than a chunk may hold.
    """
    if len(ids) > MAX_RECORDS or len(words) > MAX_RECORDS:
        raise ValueError(f"more than {MAX_RECORDS} records or words in one chunk")
    counted = np.where(arity == NONE, 0, arity).astype(np.int64)
    first_slot, slots = _slots(ids, counted, predictors)
    room = len(words)
    columns = Columns(
        np.empty(len(ids), np.uint32),
        np.empty(len(ids), np.uint8),
        np.empty(room, np.uint8),
        np.empty(8 * room + PADDING, np.uint8),
        np.empty(0, np.uint8),
    )
    counts = np.zeros(4, np.int64)
    taken = encode_kernel(
        np.ascontiguousarray(ids, np.uint32),
        np.ascontiguousarray(words, np.uint64),
        np.ascontiguousarray(arity, np.uint32),
        first_slot,
        np.zeros((len(arity), LITERAL), np.uint32),
        slots,
        columns,
        counts,
    )
    if taken < 0:
        raise ValueError(f"record {-1 - taken} has an unknown id, or its words are missing")
    if taken != len(words):
        raise ValueError(f"{len(words) - taken} words belong to no record")
    literals, symbols, codes, residuals = (
        _frozen(column[:count]) for column, count in zip(cast(tuple[Any, ...], columns), counts)
    )
    used = Columns(literals, symbols, codes, residuals, _frozen(_named(predictors)))
    return Chunk(thread, kind, len(ids), len(words), used)


def _named(predictors: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """A copy without the zeros at the end."""
    return np.empty(0, np.uint8) if predictors is None else np.trim_zeros(predictors, "b").astype(np.uint8)


def _slots(ids: U4, counted: NDArray[np.int64], predictors: NDArray[np.uint8] | None) -> tuple[NDArray[np.int64], U8]:
    """Each id's first row of the slots, and these, with their predictors.

    The ids that have records come first, in the order of their first ones; without predictors the order is all one.
    """
    if predictors is None:
        return np.cumsum(counted) - counted, np.zeros((int(counted.sum()), SLOT), np.uint64)
    known = ids[ids < len(counted)]
    present, first = np.unique(known, return_index=True)
    order = np.concatenate([present[np.argsort(first)], np.setdiff1d(np.arange(len(counted)), present)])
    first_slot = np.empty(len(counted), np.int64)
    first_slot[order] = np.cumsum(counted[order]) - counted[order]
    slots = np.zeros((int(counted.sum()), SLOT), np.uint64)
    if predictors is not None:
        slots[: len(predictors), PREDICTOR] = predictors
    return first_slot, slots


def _frozen(column: NDArray[Any]) -> NDArray[Any]:
    """Read-only as a parsed chunk's columns are: for Numba the same type, so that the decoder is compiled once."""
    column.flags.writeable = False
    return column
