"""The chunk codec: records to columns and back, by two predictions for each word position of a record id.

SPEC.md ("CHNK") defines it. The recorder's encoder (recorder/runtime/encoder.c) makes the same columns, to the byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, MAX_RECORDS, PADDING, THREAD, Chunk, Columns
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.jit import inlined, kernel

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]

LITERAL = 3
"""The rank of a record whose id is none of the three successors."""

STRIDED, MOVED = range(2)
"""The codes of words without a residual; the others, up to 7, have residuals of 1, 2, 3, 4, 6 and 8 bytes."""

RESIDUAL_BYTES = 0x86432100
"""A hexadecimal digit for each code, from the lowest: the bytes of its residual."""

# Why the decoder stopped.
END, ROOM, SLOTS, UNKNOWN_ID, BAD_CODE, OVERRUN, LEFTOVER = range(7)

_REASONS = {
    UNKNOWN_ID: "has an id that no image explains",
    BAD_CODE: "has codes for more words than it has",
    OVERRUN: "needs more than its columns hold",
    LEFTOVER: "is the last, and its columns hold more than it needs",
}

# Positions in State.at.
RECORD, WORD, LITERAL_AT, CODE, RESIDUAL, PREVIOUS_ID, SLOTS_USED, NEED = range(8)

LAST, STRIDE, OFFSET = range(3)


class State(NamedTuple):
    """What a decoder keeps between batches of one chunk."""

    successors: U4
    """(4 * ids): for each id, the three ids that followed it last, latest first, and 0."""
    first_slot: NDArray[np.int64]
    """(ids): the id's first slot, -1 before its first record in the chunk."""
    slots: U8
    """(3 * slots): last, stride, offset of each slot."""
    at: NDArray[np.int64]
    """(8): positions in the chunk and its columns, and scalars."""
    previous_word: U8
    """(1): the word decoded last."""


@inlined
def _signed(data: NDArray[np.uint8], at: np.uint64, size: np.uint64) -> np.uint64:
    """The little-endian number with a sign in the `size` bytes from `at` on; eight can be read there."""
    low = (np.uint64(data[at]) | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
           | np.uint64(data[at + np.uint64(2)]) << np.uint64(16) | np.uint64(data[at + np.uint64(3)]) << np.uint64(24))
    high = (np.uint64(data[at + np.uint64(4)]) | np.uint64(data[at + np.uint64(5)]) << np.uint64(8)
            | np.uint64(data[at + np.uint64(6)]) << np.uint64(16)
            | np.uint64(data[at + np.uint64(7)]) << np.uint64(24))
    shift = np.uint64(64) - np.uint64(8) * size & np.uint64(63)
    return np.uint64(np.int64((low | high << np.uint64(32)) << shift) >> np.int64(shift))


@kernel
def decode_kernel(columns: Columns, arity: U4, state: State, chunk_words: int, ids: U4,
                  words: U8) -> tuple[int, int, int]:
    """Decode whole records until `ids` or `words` is full, or the chunk ends.

    arity: (ids) words of each record id, NONE where there is no such record; chunk_words: the words that the
    chunk's header claims. Returns (status, records, words) of this batch; the state is that before the record
    that did not fit. ``state.at[NEED]`` is the room in words, or in slots, that this record needs.
    """
    literals, symbols, codes, residuals = columns
    successors, first_slot, slots, at = state.successors, state.first_slot, state.slots, state.at
    record, literal, code_at = at[RECORD], at[LITERAL_AT], at[CODE]
    residual, residuals_end = np.uint64(at[RESIDUAL]), np.uint64(len(residuals) - PADDING)
    previous_id = np.uint32(at[PREVIOUS_ID])
    previous = state.previous_word[0]
    used = at[SLOTS_USED]
    known = len(arity)
    filled, word_at, claimed = 0, 0, chunk_words - at[WORD]
    status = END
    while record < len(symbols):
        if filled == len(ids):
            status = ROOM
            break
        bits = symbols[record]
        rank = bits >> 6
        bits &= 63
        followed = np.uint64(4) * np.uint64(previous_id)
        if rank < LITERAL:
            number = successors[followed + np.uint64(rank)]
        elif literal < len(literals):
            number = literals[literal]
        else:
            status = OVERRUN
            break
        if number >= known or arity[number] > MAX_ARITY:
            status = UNKNOWN_ID
            break
        count = int(arity[number])
        if word_at + count > claimed or code_at + (count - 1) // 2 > len(codes):
            status = OVERRUN
            break
        if word_at + count > len(words):
            at[NEED] = count
            status = ROOM
            break
        slot = first_slot[number]
        if slot < 0:
            if 3 * (used + count) > len(slots):
                at[NEED] = used + count
                status = SLOTS
                break
            slot = used
            first_slot[number] = slot
            used += count
        if rank > 0:
            if rank >= 2:
                successors[followed + np.uint64(2)] = successors[followed + np.uint64(1)]
            successors[followed + np.uint64(1)] = successors[followed]
            successors[followed] = number
            literal += rank == LITERAL
        row = np.uint64(3 * slot)
        unused = np.uint8(0)
        for k in range(count):
            if k >= 2 and k & 1 == 0:
                unused |= bits
                bits = codes[code_at]
                code_at += 1
            code = bits & 7
            bits >>= 3
            size = np.uint64(RESIDUAL_BYTES >> 4 * code & 15)
            last, stride, offset = slots[row], slots[row + np.uint64(STRIDE)], slots[row + np.uint64(OFFSET)]
            word, moved = last + _signed(residuals, residual, size), previous + offset
            word = moved if code == MOVED else word
            word = last + stride if code == STRIDED else word
            residual += size
            if residual > residuals_end:
                status = OVERRUN
                break
            words[word_at + k] = word
            slots[row], slots[row + np.uint64(STRIDE)], slots[row + np.uint64(OFFSET)] = \
                word, word - last, word - previous
            row += np.uint64(3)
            previous = word
        if status == END and unused | bits:
            status = BAD_CODE
        if status != END:
            break
        ids[filled] = number
        filled += 1
        word_at += count
        previous_id = number
        record += 1
    at[RECORD], at[LITERAL_AT], at[CODE], at[RESIDUAL] = record, literal, code_at, residual
    at[PREVIOUS_ID], at[SLOTS_USED] = previous_id, used
    at[WORD] += word_at
    state.previous_word[0] = previous
    if status == END and (
        literal < len(literals) or code_at < len(codes) or at[WORD] < chunk_words or residual < residuals_end
    ):
        status = LEFTOVER
    return status, filled, word_at


class Decoder:
    """Decodes chunks of one stream, batch by batch, into buffers that it reuses.

    arity: (ids) u4, words of each record id, NONE for ids that no record may have.
    records, words: room of a batch; a record with more words than that makes the room larger.
    """

    def __init__(self, arity: U4, records: int = 1 << 15, words: int = 1 << 16) -> None:
        if bool(np.any((arity != NONE) & (arity > MAX_ARITY))):
            raise TracekitError(f"The trace is damaged: a path has more than {MAX_ARITY} words.")
        self._arity = np.ascontiguousarray(arity, np.uint32)
        self._ids = np.empty(records, np.uint32)
        self._words = np.empty(words, np.uint64)
        self._state = State(np.zeros(4 * len(arity), np.uint32), np.full(len(arity), -1, np.int64),
                            np.zeros(3 * 1024, np.uint64), np.zeros(8, np.int64), np.zeros(1, np.uint64))
        self._chunk: Chunk | None = None

    def start(self, chunk: Chunk) -> None:
        """Begin a chunk: every prediction starts from nothing."""
        state = self._state
        state.successors.fill(0)
        state.first_slot.fill(-1)
        state.slots[: 3 * state.at[SLOTS_USED]] = 0
        state.at.fill(0)
        state.previous_word.fill(0)
        self._chunk = chunk

    def batch(self) -> tuple[U4, U8] | None:
        """The next records of the chunk: ids, and the words of all of them; None at its end.

        Both are views that the next call overwrites. Raises TracekitError if the chunk is damaged.
        """
        while self._chunk is not None:
            status, records, words = decode_kernel(self._chunk.columns, self._arity, self._state, self._chunk.words,
                                                   self._ids, self._words)
            if status not in (END, ROOM, SLOTS):
                raise TracekitError(f"record {int(self._state.at[RECORD])} {_REASONS[status]}")
            if status == END:
                self._chunk = None
            elif status == SLOTS:
                self._grow_slots()
            elif not records:
                self._words = np.empty(max(int(self._state.at[NEED]), 2 * len(self._words)), np.uint64)
            if records or status == END:
                return (self._ids[:records], self._words[:words]) if records else None
        return None

    def _grow_slots(self) -> None:
        """Slots are bounded by the words of the chunk: each belongs to an id that the chunk holds."""
        old = self._state.slots
        slots = np.zeros(max(3 * int(self._state.at[NEED]), 2 * len(old)), np.uint64)
        slots[: len(old)] = old
        self._state = self._state._replace(slots=slots)


@kernel
def encode_kernel(ids: U4, words: U8, arity: U4, first_slot: NDArray[np.int64], successors: U4, slots: U8,
                  columns: Columns, counts: NDArray[np.int64]) -> int:
    """Fill `columns` (room for every record and word) from records; the counts of elements go to `counts` (4).

    first_slot: (ids) each id's first row of `slots`; successors: (ids, 3) and slots: (rows, 3) are zero.
    Returns how many words the records have, or -1 - k if record k has an unknown id or too few words.
    """
    literals, symbols, codes, residuals = columns
    literal = code_at = residual = at = 0
    previous_id = np.uint32(0)
    previous = np.uint64(0)
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
            stride, offset = word - row[LAST], word - previous
            if stride == row[STRIDE]:
                code = STRIDED
            elif offset == row[OFFSET]:
                code = MOVED
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
            row[LAST], row[STRIDE], row[OFFSET] = word, stride, offset
            previous = word
        at += int(arity[number])
    residuals[residual : residual + PADDING] = 0
    counts[0], counts[1], counts[2], counts[3] = literal, len(ids), code_at, residual + PADDING
    return at


def encode(ids: U4, words: U8, arity: U4, thread: int = 0, kind: int = THREAD) -> Chunk:
    """Encode records, `ids` and the `words` of all of them, as one chunk.

    arity: (ids) u4, words of each record id, NONE for ids that no record may have. Raises ValueError for
    an unknown id, for words missing or left over, and for more than a chunk may hold.
    """
    if len(ids) > MAX_RECORDS or len(words) > MAX_RECORDS:
        raise ValueError(f"more than {MAX_RECORDS} records or words in one chunk")
    counted = np.where(arity == NONE, 0, arity).astype(np.int64)
    first_slot = np.cumsum(counted) - counted
    room = len(words)
    columns = Columns(np.empty(len(ids), np.uint32), np.empty(len(ids), np.uint8), np.empty(room, np.uint8),
                      np.empty(8 * room + PADDING, np.uint8))
    counts = np.zeros(4, np.int64)
    taken = encode_kernel(
        np.ascontiguousarray(ids, np.uint32), np.ascontiguousarray(words, np.uint64),
        np.ascontiguousarray(arity, np.uint32), first_slot, np.zeros((len(arity), LITERAL), np.uint32),
        np.zeros((int(counted.sum()), 3), np.uint64), columns, counts,
    )
    if taken < 0:
        raise ValueError(f"record {-1 - taken} has an unknown id, or its words are missing")
    if taken != len(words):
        raise ValueError(f"{len(words) - taken} words belong to no record")
    used = Columns(*(_frozen(column[:count]) for column, count in zip(cast(tuple[Any, ...], columns), counts)))
    return Chunk(thread, kind, len(ids), len(words), used)


def _frozen(column: NDArray[Any]) -> NDArray[Any]:
    """Read-only as a parsed chunk's columns are: for Numba the same type, so that the decoder is compiled once."""
    column.flags.writeable = False
    return column
