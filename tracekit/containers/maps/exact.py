"""Exact sums of float64: a row of digits per key, wide enough for every bit that a float64 can have.

Floating-point addition depends on its order, so the sums of two workers would. Here a sum is an integer in units of
2**-1074, the least float64, in digits of 32 bits that are kept in 64 so that carries wait; it is rounded once, when it
is read. (Neal, "Fast exact summation using small and large superaccumulators", 2015.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.maps.memory import allocate_zeroed, give_back, words_at
from tracekit.jit.kernel import inlined, kernel

# Words of a map's `control`; those before them are table.py's.
ROWS = 5  # rows in use
ROWS_ADDRESS = 6  # where they are
ROWS_SIZE = 7  # of how many words they consist

DIGITS = 69
"""2,098 bits in digits of 32, and room for the carries of 2**64 additions."""

ADDITIONS = np.uint64(DIGITS)
SPECIAL = np.uint64(DIGITS + 1)
ROW = np.uint64(DIGITS + 3)
"""Words of a row: digits, additions since carries were last passed on, which of inf, -inf, nan were added."""

CARRY_AFTER = np.uint64(1 << 29)
"""An addition changes a digit by less than 2**34, a digit of a row after carries by less than 2**32."""

PLUS_INFINITY, MINUS_INFINITY, NAN = np.uint64(1), np.uint64(2), np.uint64(4)

ONE, TWO = np.uint64(1), np.uint64(2)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
FRACTION_BITS = np.uint64(52)
FRACTION = np.uint64((1 << 52) - 1)
EXPONENT = np.uint64(0x7FF)
INFINITY = EXPONENT << FRACTION_BITS
SIGN = np.uint64(63)


@inlined
def new_row(control: Any) -> Any:
    """Where a new row, a sum of nothing, begins."""
    at = control[ROWS] * ROW
    if at + ROW > control[ROWS_SIZE]:
        _grow_rows(control)
    control[ROWS] += ONE
    return at


@kernel
def _grow_rows(control: Any) -> None:
    size = max(TWO * control[ROWS_SIZE], np.uint64(16) * ROW)
    address = allocate_zeroed(size, np.uint64(8))
    if address == 0:
        raise MemoryError("No memory is left for the sums of a reduction map.")
    old, new = words_at(control[ROWS_ADDRESS], control[ROWS_SIZE]), words_at(address, size)
    for i in range(control[ROWS_SIZE]):
        new[i] = old[i]
    if control[ROWS_SIZE]:
        give_back(control[ROWS_ADDRESS])
    control[ROWS_ADDRESS], control[ROWS_SIZE] = address, size


@inlined
def add_float(control: Any, at: Any, bits: Any) -> None:
    """Add a float64, given as its bits, to the row at `at`."""
    rows = words_at(control[ROWS_ADDRESS], control[ROWS_SIZE])
    exponent, fraction = (bits >> FRACTION_BITS) & EXPONENT, bits & FRACTION
    if exponent == EXPONENT:
        rows[at + SPECIAL] |= NAN if fraction else (MINUS_INFINITY if bits >> SIGN else PLUS_INFINITY)
        return
    if exponent:
        fraction |= ONE << FRACTION_BITS
        exponent -= ONE
    shift, digit = exponent & np.uint64(31), at + (exponent >> np.uint64(5))
    low, high = (fraction & LOW) << shift, (fraction >> HALF) << shift
    if bits >> SIGN:
        rows[digit] -= low & LOW
        rows[digit + ONE] -= (low >> HALF) + (high & LOW)
        rows[digit + TWO] -= high >> HALF
    else:
        rows[digit] += low & LOW
        rows[digit + ONE] += (low >> HALF) + (high & LOW)
        rows[digit + TWO] += high >> HALF
    rows[at + ADDITIONS] += ONE
    if rows[at + ADDITIONS] == CARRY_AFTER:
        _carry(rows, at)


@kernel
def _carry(rows: Any, at: Any) -> None:
    """Bring all digits but the last, which has the sign, into 0 to 2**32 - 1."""
    carry = np.int64(0)
    for i in range(DIGITS - 1):
        digit = np.int64(rows[at + np.uint64(i)]) + carry
        carry = digit >> np.int64(32)
        rows[at + np.uint64(i)] = np.uint64(digit) & LOW
    rows[at + np.uint64(DIGITS - 1)] += np.uint64(carry)
    rows[at + ADDITIONS] = ONE


@kernel
def add_row(control: Any, at: Any, other_control: Any, other_at: Any) -> None:
    """Add a row of another map to the row at `at`."""
    rows = words_at(control[ROWS_ADDRESS], control[ROWS_SIZE])
    others = words_at(other_control[ROWS_ADDRESS], other_control[ROWS_SIZE])
    _carry(rows, at)
    _carry(others, other_at)
    for i in range(DIGITS):
        rows[at + np.uint64(i)] += others[other_at + np.uint64(i)]
    _carry(rows, at)
    rows[at + SPECIAL] |= others[other_at + SPECIAL]


@kernel
def round_rows(control: Any, places: Any, out: Any) -> None:
    """Write the bits of the float64 nearest to the sum in each of the rows at `places`, ties to even, to `out`."""
    rows = words_at(control[ROWS_ADDRESS], control[ROWS_SIZE])
    for i in range(places.size):
        at = places[i]
        special = rows[at + SPECIAL]
        if special == PLUS_INFINITY or special == MINUS_INFINITY:
            out[i] = INFINITY | np.uint64(special == MINUS_INFINITY) << SIGN
        elif special:
            out[i] = INFINITY | ONE
        else:
            _carry(rows, at)
            negative = rows[at + np.uint64(DIGITS - 1)] >> SIGN
            if negative:
                _negate(rows, at)
            out[i] = _nearest(rows, at) | negative << SIGN
            if negative:
                _negate(rows, at)


@inlined
def _negate(rows: Any, at: Any) -> None:
    for i in range(DIGITS):
        rows[at + np.uint64(i)] = -rows[at + np.uint64(i)]
    _carry(rows, at)


@inlined
def _nearest(rows: Any, at: Any) -> Any:
    """The bits of the float64 nearest to a row that is positive and has no carries."""
    top = DIGITS - 1
    while top > 0 and rows[at + np.uint64(top)] == 0:
        top -= 1
    first, length = rows[at + np.uint64(top)], np.uint64(0)
    while first >> length:
        length += ONE
    if top * 32 + np.int64(length) <= 53:
        return rows[at] + (rows[at + ONE] << HALF)  # so small a number is its own bits
    next_digit = rows[at + np.uint64(top - 1)]
    third = rows[at + np.uint64(top - 2)] if top > 1 else np.uint64(0)
    window = (first << HALF | next_digit) << (HALF - length) | third >> length
    below = third & ((ONE << length) - ONE) | window & np.uint64(0x3FF)
    for i in range(top - 2):
        below |= rows[at + np.uint64(i)]
    fraction, half = window >> np.uint64(11), window >> np.uint64(10) & ONE
    if half and (below or fraction & ONE):
        fraction += ONE
    exponent = np.uint64(top * 32) + length - np.uint64(53)
    return min((exponent << FRACTION_BITS) + fraction, INFINITY)
