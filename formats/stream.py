"""The chunk codec: records to columns and back, by two predictions for each word position of a record id.

SPEC.md ("CHNK") defines it. The recorder's encoder (recorder/runtime/encoder.c) makes the same columns, to the byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, MAX_RECORDS, THREAD, Chunk, Columns
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.jit import kernel

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]

PREDICTED = 8
"""The bit of a symbol that says that every word of the record has code 0."""

LITERAL = 4
"""The symbol of a record whose id is none of the four successors."""

# Why the decoder stopped.
END, ROOM, SLOTS, BAD_SYMBOL, UNKNOWN_ID, BAD_CODE, OVERRUN, LEFTOVER = range(8)

_REASONS = {
    BAD_SYMBOL: "has an impossible symbol",
    UNKNOWN_ID: "has an id that no image explains",
    BAD_CODE: "has an impossible code",
    OVERRUN: "needs more than its columns hold",
    LEFTOVER: "is the last, and its columns hold more than it needs",
}

# Positions in State.at.
RECORD, WORD, LITERAL_AT, CODE, D1, D2, D4, D8, PREVIOUS_ID, SLOTS_USED, NEED = range(11)

LAST, STRIDE, OFFSET, FAVOURITE = range(4)


class State(NamedTuple):
    """What a decoder keeps between batches of one chunk."""

    successors: U4
    """(ids, 4): for each id, the ids that followed it last, latest first."""
    first_slot: NDArray[np.int64]
    """(ids): the id's first row of slots, -1 before its first record in the chunk."""
    slots: U8
    """(rows, 4): last, stride, offset, favourite of each slot."""
    at: NDArray[np.int64]
    """(11): positions in the chunk and its columns, and scalars."""
    previous_word: U8
    """(1): the word decoded last."""


@kernel
def decode_kernel(columns: Columns, arity: U4, state: State, chunk_words: int, ids: U4,
                  words: U8) -> tuple[int, int, int]:
    """Decode whole records until `ids` or `words` is full, or the chunk ends.

    arity: (ids) words of each record id, NONE where there is no such record; chunk_words: the words that the
    chunk's header claims. Returns (status, records, words) of this batch; the state is that before the record
    that did not fit. ``state.at[NEED]`` is the room in words, or in slots, that this record needs.
    """
    d8, d4, literals, d2, symbols, codes, d1 = columns
    successors, first_slot, slots, at = state.successors, state.first_slot, state.slots, state.at
    record, literal, code_at = at[RECORD], at[LITERAL_AT], at[CODE]
    i1, i2, i4, i8 = at[D1], at[D2], at[D4], at[D8]
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
        symbol = symbols[record]
        rank = symbol & 7
        if symbol > 15 or rank > LITERAL:
            status = BAD_SYMBOL
            break
        if rank < LITERAL:
            number = successors[previous_id, rank]
        elif literal < len(literals):
            number = literals[literal]
        else:
            status = OVERRUN
            break
        if number >= known or arity[number] > MAX_ARITY:
            status = UNKNOWN_ID
            break
        count = int(arity[number])
        coded = symbol & PREDICTED == 0
        if word_at + count > claimed or (coded and code_at + count > len(codes)):
            status = OVERRUN
            break
        if word_at + count > len(words):
            at[NEED] = count
            status = ROOM
            break
        slot = first_slot[number]
        if slot < 0:
            if used + count > len(slots):
                at[NEED] = used + count
                status = SLOTS
                break
            slot = used
            first_slot[number] = slot
            used += count
        if rank > 0:
            if rank >= 3:
                successors[previous_id, 3] = successors[previous_id, 2]
            if rank >= 2:
                successors[previous_id, 2] = successors[previous_id, 1]
            successors[previous_id, 1] = successors[previous_id, 0]
            successors[previous_id, 0] = number
            literal += rank == LITERAL
        if not coded:
            for k in range(count):
                row = slots[slot + k]
                last = row[LAST]
                word = previous + row[OFFSET] if row[FAVOURITE] else last + row[STRIDE]
                words[word_at + k] = word
                row[LAST], row[STRIDE], row[OFFSET] = word, word - last, word - previous
                previous = word
        else:
            for k in range(count):
                row = slots[slot + k]
                last = row[LAST]
                code = codes[code_at + k]
                if code == 0:
                    word = previous + row[OFFSET] if row[FAVOURITE] else last + row[STRIDE]
                elif code == 1:
                    row[FAVOURITE] ^= np.uint64(1)
                    word = previous + row[OFFSET] if row[FAVOURITE] else last + row[STRIDE]
                elif code == 8:
                    if i8 == len(d8):
                        status = OVERRUN
                        break
                    word = d8[i8]
                    i8 += 1
                else:
                    base = last if code <= 4 else previous
                    if code == 2 or code == 5:
                        if i1 == len(d1):
                            status = OVERRUN
                            break
                        word = base + np.uint64(np.int64(d1[i1]))
                        i1 += 1
                    elif code == 3 or code == 6:
                        if i2 == len(d2):
                            status = OVERRUN
                            break
                        word = base + np.uint64(np.int64(d2[i2]))
                        i2 += 1
                    elif code == 4 or code == 7:
                        if i4 == len(d4):
                            status = OVERRUN
                            break
                        word = base + np.uint64(np.int64(d4[i4]))
                        i4 += 1
                    else:
                        status = BAD_CODE
                        break
                words[word_at + k] = word
                row[LAST], row[STRIDE], row[OFFSET] = word, word - last, word - previous
                previous = word
            if status != END:
                break
            code_at += count
        ids[filled] = number
        filled += 1
        word_at += count
        previous_id = number
        record += 1
    at[RECORD], at[LITERAL_AT], at[CODE] = record, literal, code_at
    at[D1], at[D2], at[D4], at[D8] = i1, i2, i4, i8
    at[PREVIOUS_ID], at[SLOTS_USED] = previous_id, used
    at[WORD] += word_at
    state.previous_word[0] = previous
    if status == END and (
        literal < len(literals) or code_at < len(codes) or at[WORD] < chunk_words
        or i1 < len(d1) or i2 < len(d2) or i4 < len(d4) or i8 < len(d8)
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
        self._state = State(np.zeros((len(arity), 4), np.uint32), np.full(len(arity), -1, np.int64),
                            np.zeros((1024, 4), np.uint64), np.zeros(11, np.int64), np.zeros(1, np.uint64))
        self._chunk: Chunk | None = None

    def start(self, chunk: Chunk) -> None:
        """Begin a chunk: every prediction starts from nothing."""
        state = self._state
        state.successors.fill(0)
        state.first_slot.fill(-1)
        state.slots[: state.at[SLOTS_USED]] = 0
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
        """Rows are bounded by the words of the chunk: each slot belongs to an id that the chunk holds."""
        old = self._state.slots
        slots = np.zeros((max(int(self._state.at[NEED]), 2 * len(old)), 4), np.uint64)
        slots[: len(old)] = old
        self._state = self._state._replace(slots=slots)


@kernel
def encode_kernel(ids: U4, words: U8, arity: U4, first_slot: NDArray[np.int64], successors: U4, slots: U8,
                  columns: Columns, counts: NDArray[np.int64]) -> int:
    """Fill `columns` (room for every record and word) from records; the counts of elements go to `counts` (7).

    first_slot: (ids) each id's first row of `slots`; successors: (ids, 4) and slots: (rows, 4) are zero.
    Returns how many words the records have, or -1 - k if record k has an unknown id or too few words.
    """
    d8, d4, literals, d2, symbols, codes, d1 = columns
    i8 = i4 = literal = i2 = code_at = i1 = at = 0
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
        count = int(arity[number])
        predicted = True
        for k in range(count):
            row = slots[first_slot[number] + k]
            word, last = words[at + k], row[LAST]
            strided, moved = word == last + row[STRIDE], word == previous + row[OFFSET]
            own, near = np.int64(word - last), np.int64(word - previous)  # modulo 2^64, then with a sign
            if moved if row[FAVOURITE] else strided:
                code = 0
            elif moved or strided:
                code = 1
                row[FAVOURITE] ^= np.uint64(1)
            elif own == np.int8(own) or near == np.int8(near):
                code = 2 if own == np.int8(own) else 5
                d1[i1] = own if code == 2 else near
                i1 += 1
            elif own == np.int16(own) or near == np.int16(near):
                code = 3 if own == np.int16(own) else 6
                d2[i2] = own if code == 3 else near
                i2 += 1
            elif own == np.int32(own) or near == np.int32(near):
                code = 4 if own == np.int32(own) else 7
                d4[i4] = own if code == 4 else near
                i4 += 1
            else:
                code = 8
                d8[i8] = word
                i8 += 1
            codes[code_at + k] = code
            predicted = predicted and code == 0
            row[LAST], row[STRIDE], row[OFFSET] = word, word - last, word - previous
            previous = word
        at += count
        code_at += 0 if predicted else count
        symbols[record] = rank | (PREDICTED if predicted else 0)
    counts[0], counts[1], counts[2], counts[3] = i8, i4, literal, i2
    counts[4], counts[5], counts[6] = len(ids), code_at, i1
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
    columns = Columns(np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(len(ids), np.uint32),
                      np.empty(room, np.int16), np.empty(len(ids), np.uint8), np.empty(room, np.uint8),
                      np.empty(room, np.int8))
    counts = np.zeros(7, np.int64)
    taken = encode_kernel(
        np.ascontiguousarray(ids, np.uint32), np.ascontiguousarray(words, np.uint64),
        np.ascontiguousarray(arity, np.uint32), first_slot, np.zeros((len(arity), 4), np.uint32),
        np.zeros((int(counted.sum()), 4), np.uint64), columns, counts,
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
