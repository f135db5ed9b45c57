"""The kernel that encodes records into the columns of a chunk; the recorder's encoders make the same, to the byte."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk import MAX_ARITY, PADDING, SHIFT_AT, WINDOW, Columns
from tracekit.formats.kernels.predictions import (
    LAST,
    LITERAL,
    PREDICTED,
    PREDICTOR,
    REFERENCE,
    RESIDUAL_BYTES,
    STRIDE,
    STRIDED,
)
from tracekit.jit.kernel import inlined, kernel

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]


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
        rank = _rank(successors[previous_id], number)
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
                code = _code_of(np.int64(stride))
                size = RESIDUAL_BYTES >> 4 * code & 15
                for byte in range(size):
                    residuals[residual + byte] = np.int64(stride) >> 8 * byte & 255
                residual += size
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


@inlined
def _rank(successors: U4, number: Any) -> Any:
    """The rank of an id among the three `successors` of the one before, of which it is the latest from now on."""
    rank = 0
    while rank < LITERAL and successors[rank] != number:
        rank += 1
    for k in range(min(rank, LITERAL - 1), 0, -1):
        successors[k] = successors[k - 1]
    successors[0] = number
    return rank


@inlined
def _code_of(stride: Any) -> Any:
    """The code of the shortest residual that holds a stride with its sign."""
    code = 2
    while code < 7 and stride >> 8 * (RESIDUAL_BYTES >> 4 * code & 15) - 1 not in (0, -1):
        code += 1
    return code
