"""The kernel that decodes the columns of a chunk into records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, PADDING, SHIFT_AT, WINDOW, Columns
from tracekit.formats.kernels.predictions import (
    LITERAL,
    PREDICTED,
    PREDICTOR,
    REFERENCE,
    RESIDUAL_BYTES,
    SLOT,
    STRIDE,
    STRIDED,
)
from tracekit.jit.kernel import inlined, kernel

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]

# Why the decoder stopped.
END = 0  # all records are decoded
ROOM = 1  # the columns for records or words are full
SLOTS = 2  # the slots have to grow
UNKNOWN_ID = 3
BAD_CODE = 4
OVERRUN = 5
LEFTOVER = 6

# Positions in State.at.
RECORD = 0
WORD = 1
LITERAL_AT = 2
CODE = 3
RESIDUAL = 4
PREVIOUS_ID = 5
SLOTS_USED = 6
NEED = 7


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
    residual, previous_id, used = np.uint64(at[RESIDUAL]), np.uint32(at[PREVIOUS_ID]), at[SLOTS_USED]
    filled, word_at, claimed = np.uint64(0), np.int64(WINDOW), WINDOW + chunk_words - at[WORD]
    status = END
    while record < np.uint64(len(symbols)):
        if filled == np.uint64(len(ids)):
            status = ROOM
            break
        bits = symbols[record]
        rank = bits >> 6
        followed = np.uint64(4) * np.uint64(previous_id)
        if rank < LITERAL:
            number = successors[followed + np.uint64(rank)]
        elif literal < np.uint64(len(literals)):
            number = literals[literal]
        else:
            status = OVERRUN
            break
        status = _why_not(number, arity, codes, words, np.int64(code_at), word_at, claimed, at)
        if status != END:
            break
        count = int(arity[number])
        slot = first_slot[number]
        if slot < 0:
            if SLOT * (used + count) > len(slots):
                at[NEED] = used + count
                status = SLOTS
                break
            slot = used
            first_slot[number] = slot
            _name_predictors(slots, predictors, used, count)
            used += count
        if rank > 0:
            _move_to_front(successors, followed, rank, number)
            literal += np.uint64(rank == LITERAL)
        code_at, residual, status = _decode_words(
            words, word_at, count, slots, slot, bits & 63, codes, code_at, residuals, residual
        )
        if status != END:
            break
        ids[filled] = number
        filled += np.uint64(1)
        word_at += count
        previous_id = number
        record += np.uint64(1)
    at[RECORD], at[LITERAL_AT], at[CODE], at[RESIDUAL] = record, literal, code_at, residual
    at[PREVIOUS_ID], at[SLOTS_USED] = previous_id, used
    at[WORD] += word_at - WINDOW
    if status == END and (_is_left_over(columns, at) or at[WORD] < chunk_words):
        status = LEFTOVER
    return status, int(filled), int(word_at - WINDOW)


@inlined
def _why_not(
    number: Any, arity: U4, codes: Any, words: U8, code_at: Any, word_at: Any, claimed: Any, at: NDArray[np.int64]
) -> Any:
    """END if a record with this id can be decoded, else why not; ``at[NEED]`` if there is no room for its words."""
    if number >= len(arity) or arity[number] > MAX_ARITY:
        return UNKNOWN_ID
    count = int(arity[number])
    if word_at + count > claimed or code_at + (count - 1) // 2 > len(codes):
        return OVERRUN
    if word_at + count > len(words):
        at[NEED] = count
        return ROOM
    return END


@inlined
def _name_predictors(slots: U8, predictors: Any, used: Any, count: Any) -> None:
    """Give the slots of an id's first record the predictors that the chunk names for them."""
    for k in range(used, min(used + count, len(predictors))):
        slots[SLOT * k + PREDICTOR] = predictors[k]


@inlined
def _move_to_front(successors: U4, followed: Any, rank: Any, number: Any) -> None:
    """An id of this rank is the latest successor from now on."""
    if rank >= 2:
        successors[followed + np.uint64(2)] = successors[followed + np.uint64(1)]
    successors[followed + np.uint64(1)] = successors[followed]
    successors[followed] = number


@inlined
def _decode_words(
    words: U8,
    word_at: Any,
    count: Any,
    slots: U8,
    slot: Any,
    bits: Any,
    codes: Any,
    code_at: Any,
    residuals: Any,
    residual: Any,
) -> Any:
    """Write a record's words, from `word_at` on; `bits`: the codes of the first two.

    Returns (code_at, residual, status): where the next record's codes and residuals begin, and END or what is wrong.
    """
    row, unused = np.uint64(SLOT * slot), np.uint8(0)
    for k in range(count):
        if k >= 2 and k & 1 == 0:
            unused |= bits
            bits = codes[code_at]
            code_at += np.uint64(1)
        code = bits & 7
        bits >>= 3
        size = np.uint64(RESIDUAL_BYTES >> 4 * code & 15)
        _decode_word(words, np.uint64(word_at + k), slots, row, code, residuals, residual, size)
        residual += size
        if residual > np.uint64(len(residuals) - PADDING):
            return code_at, residual, OVERRUN
        row += np.uint64(SLOT)
    return code_at, residual, BAD_CODE if unused | bits else END


@inlined
def _decode_word(
    words: U8, place: Any, slots: U8, row: Any, code: Any, residuals: Any, residual: Any, size: Any
) -> None:
    """Write the word at `place`, and what its slot predicts the next one from; `size`: bytes of its residual."""
    last, stride = slots[row], slots[row + np.uint64(STRIDE)]
    predictor = slots[row + np.uint64(PREDICTOR)]
    reference = words[place - np.uint64(1) - (predictor & np.uint64(WINDOW - 1))]
    moved = reference - slots[row + np.uint64(REFERENCE)] << (predictor >> np.uint64(SHIFT_AT))
    word = last + _signed(residuals, residual, size)
    word = last + moved if code == PREDICTED else word
    word = last + stride if code == STRIDED else word
    words[place] = word
    slots[row], slots[row + np.uint64(STRIDE)], slots[row + np.uint64(REFERENCE)] = word, word - last, reference


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


@inlined
def _is_left_over(columns: Columns, at: NDArray[np.int64]) -> Any:
    """Whether the columns hold more than the records that the chunk has took."""
    return (
        at[LITERAL_AT] < len(columns.literals)
        or at[CODE] < len(columns.codes)
        or at[RESIDUAL] < len(columns.residuals) - PADDING
        or at[SLOTS_USED] < len(columns.predictors)
    )
