"""The chunk codec: records to columns and back, by two predictions for each word position of a record id.

SPEC.md ("CHNK") defines it. The recorder's encoder (recorder/runtime/encoder_scalar.c) makes the same
columns, to the byte.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, MAX_RECORDS, PADDING, SHIFT_AT, THREAD, WINDOW, Chunk, Columns
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.jit.kernel import inlined, kernel

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]

LITERAL = 3
"""The rank of a record whose id is none of the three successors."""

# The codes of words without a residual; the others, up to 7, have residuals of 1, 2, 3, 4, 6 and 8 bytes.
STRIDED = 0
PREDICTED = 1

RESIDUAL_BYTES = 0x86432100
"""A hexadecimal digit for each code, from the lowest: the bytes of its residual."""

# Why the decoder stopped.
END = 0  # all records are decoded
ROOM = 1  # the columns for records or words are full
SLOTS = 2  # the slots have to grow
UNKNOWN_ID = 3
BAD_CODE = 4
OVERRUN = 5
LEFTOVER = 6

_REASONS = {
    UNKNOWN_ID: "has an id that no image explains",
    BAD_CODE: "has codes for more words than it has",
    OVERRUN: "needs more than its columns hold",
    LEFTOVER: "is the last, and its columns hold more than it needs",
}

# Positions in State.at.
RECORD = 0
WORD = 1
LITERAL_AT = 2
CODE = 3
RESIDUAL = 4
PREVIOUS_ID = 5
SLOTS_USED = 6
NEED = 7

# Numbers of a slot.
LAST = 0  # the last word
STRIDE = 1  # it less the one before
REFERENCE = 2
PREDICTOR = 3
SLOT = 4
"""How many there are."""


class State(NamedTuple):
    """What a decoder keeps between batches of one chunk."""

    successors: U4
    """(4 * ids): for each id, the three ids that followed it last, latest first, and 0."""
    first_slot: NDArray[np.int64]
    """(ids): the id's first slot, -1 before its first record in the chunk."""
    slots: U8
    """(4 * slots): last, stride, reference, and predictor of each slot."""
    at: NDArray[np.int64]
    """(8): positions in the chunk and its columns, and scalars."""


@inlined
def _signed(data: NDArray[np.uint8], at: np.uint64, size: np.uint64) -> np.uint64:
    """The little-endian number with a sign in the `size` bytes from `at` on; eight can be read there."""
    low = (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    )
    high = (
        np.uint64(data[at + np.uint64(4)])
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(24)
    )
    shift = np.uint64(64) - np.uint64(8) * size & np.uint64(63)
    return np.uint64(np.int64((low | high << np.uint64(32)) << shift) >> np.int64(shift))


@kernel
def decode_kernel(
    columns: Columns, arity: U4, state: State, chunk_words: int, ids: U4, words: U8
) -> tuple[int, int, int]:
    """Decode whole records until `ids` or `words` is full, or the chunk ends.

    words: the first WINDOW are those before this batch, 0 at the start of a chunk; the decoded ones follow.

    arity: (ids) words of each record id, NONE where there is no such record; chunk_words: the words that the
    chunk's header claims. Returns (status, records, words) of this batch; the state is that before the record
    that did not fit. ``state.at[NEED]`` is the room in words, or in slots, that this record needs.
    """
    literals, symbols, codes, residuals, predictors = columns
    successors, first_slot, slots, at = state.successors, state.first_slot, state.slots, state.at
    # Unsigned, for Numba lets a signed index count from the end.
    record, literal, code_at = np.uint64(at[RECORD]), np.uint64(at[LITERAL_AT]), np.uint64(at[CODE])
    residual, residuals_end = np.uint64(at[RESIDUAL]), np.uint64(len(residuals) - PADDING)
    previous_id = np.uint32(at[PREVIOUS_ID])
    used = at[SLOTS_USED]
    known = len(arity)
    records, one = np.uint64(len(symbols)), np.uint64(1)
    filled, word_at, claimed = np.uint64(0), np.int64(WINDOW), WINDOW + chunk_words - at[WORD]
    status = END
    while record < records:
        if filled == np.uint64(len(ids)):
            status = ROOM
            break
        bits = symbols[record]
        rank = bits >> 6
        bits &= 63
        followed = np.uint64(4) * np.uint64(previous_id)
        if rank < LITERAL:
            number = successors[followed + np.uint64(rank)]
        elif literal < np.uint64(len(literals)):
            number = literals[literal]
        else:
            status = OVERRUN
            break
        if number >= known or arity[number] > MAX_ARITY:
            status = UNKNOWN_ID
            break
        count = int(arity[number])
        if word_at + count > claimed or np.int64(code_at) + (count - 1) // 2 > len(codes):
            status = OVERRUN
            break
        if word_at + count > len(words):
            at[NEED] = count
            status = ROOM
            break
        slot = first_slot[number]
        if slot < 0:
            if SLOT * (used + count) > len(slots):
                at[NEED] = used + count
                status = SLOTS
                break
            slot = used
            first_slot[number] = slot
            for k in range(used, min(used + count, len(predictors))):
                slots[SLOT * k + PREDICTOR] = predictors[k]
            used += count
        if rank > 0:
            if rank >= 2:
                successors[followed + np.uint64(2)] = successors[followed + np.uint64(1)]
            successors[followed + np.uint64(1)] = successors[followed]
            successors[followed] = number
            literal += np.uint64(rank == LITERAL)
        row = np.uint64(SLOT * slot)
        unused = np.uint8(0)
        for k in range(count):
            if k >= 2 and k & 1 == 0:
                unused |= bits
                bits = codes[code_at]
                code_at += one
            code = bits & 7
            bits >>= 3
            size = np.uint64(RESIDUAL_BYTES >> 4 * code & 15)
            last, stride = slots[row], slots[row + np.uint64(STRIDE)]
            predictor = slots[row + np.uint64(PREDICTOR)]
            reference = words[np.uint64(word_at + k - 1) - (predictor & np.uint64(WINDOW - 1))]
            moved = reference - slots[row + np.uint64(REFERENCE)] << (predictor >> np.uint64(SHIFT_AT))
            word = last + _signed(residuals, residual, size)
            word = last + moved if code == PREDICTED else word
            word = last + stride if code == STRIDED else word
            residual += size
            if residual > residuals_end:
                status = OVERRUN
                break
            words[np.uint64(word_at + k)] = word
            slots[row], slots[row + np.uint64(STRIDE)], slots[row + np.uint64(REFERENCE)] = word, word - last, reference
            row += np.uint64(SLOT)
        if status == END and unused | bits:
            status = BAD_CODE
        if status != END:
            break
        ids[filled] = number
        filled += one
        word_at += count
        previous_id = number
        record += one
    at[RECORD], at[LITERAL_AT], at[CODE], at[RESIDUAL] = record, literal, code_at, residual
    at[PREVIOUS_ID], at[SLOTS_USED] = previous_id, used
    at[WORD] += word_at - WINDOW
    if status == END and (
        literal < np.uint64(len(literals))
        or code_at < np.uint64(len(codes))
        or at[WORD] < chunk_words
        or residual < residuals_end
        or used < len(predictors)
    ):
        status = LEFTOVER
    return status, int(filled), int(word_at - WINDOW)


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
            status, records, words = decode_kernel(
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


@kernel
def encode_kernel(
    ids: U4,
    words: U8,
    arity: U4,
    first_slot: NDArray[np.int64],
    successors: U4,
    slots: U8,
    columns: Columns,
    counts: NDArray[np.int64],
) -> int:
    """Fill `columns` (room for every record and word) from records; the counts of elements go to `counts` (4).

    first_slot: (ids) each id's first row of `slots`; successors: (ids, 3) is zero, slots: (rows, 4) too, but for their
    predictors.
    Returns how many words the records have, or -1 - k if record k has an unknown id or too few words.
    """
    literals, symbols, codes, residuals, _ = columns
    literal = code_at = residual = at = 0
    previous_id = np.uint32(0)
    for record in range(len(ids)):
        number = ids[record]
        if number >= len(arity) or arity[number] > MAX_ARITY or at + int(arity[number]) > len(words):
            return -1 - record
        rank = 0
        while rank < LITERAL and successors[previous_id, rank] != number:
            rank += 1
        for k in range(min(rank, LITERAL - 1), 0, -1):
            successors[previous_id, k] = successors[previous_id, k - 1]
        successors[previous_id, 0] = number
        previous_id = number
        if rank == LITERAL:
            literals[literal] = number
            literal += 1
        symbols[record] = rank << 6
        for k in range(int(arity[number])):
            row = slots[first_slot[number] + k]
            word = words[at + k]
            before = at + k - 1 - int(row[PREDICTOR] & np.uint64(WINDOW - 1))
            reference = words[before] if before >= 0 else np.uint64(0)
            stride, moved = word - row[LAST], reference - row[REFERENCE] << (row[PREDICTOR] >> np.uint64(SHIFT_AT))
            if stride == row[STRIDE]:
                code = STRIDED
            elif stride == moved:
                code = PREDICTED
            else:
                signed = np.int64(stride)
                code = 2
                while code < 7 and signed >> 8 * (RESIDUAL_BYTES >> 4 * code & 15) - 1 not in (0, -1):
                    code += 1
                for _ in range(RESIDUAL_BYTES >> 4 * code & 15):
                    residuals[residual] = signed & 255
                    signed >>= 8
                    residual += 1
            if k < 2:
                symbols[record] |= code << 3 * k
            elif k & 1 == 0:
                codes[code_at] = code
                code_at += 1
            else:
                codes[code_at - 1] |= code << 3
            row[LAST], row[STRIDE], row[REFERENCE] = word, stride, reference
        at += int(arity[number])
    residuals[residual : residual + PADDING] = 0
    counts[0], counts[1], counts[2], counts[3] = literal, len(ids), code_at, residual + PADDING
    return at


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
