"""Exact sums of float64: a row of digits per key, wide enough for every bit that a float64 can have.

Floating-point addition depends on its order, so the sums of two workers would. Here a sum is an integer in units of
2**-1074, the least float64, in digits of 32 bits that are kept in 64 so that carries wait; it is rounded once, when it
is read. (Neal, "Fast exact summation using small and large superaccumulators", 2015.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.maps.memory import allocate_zeroed, give_back, words_at

ROWS, ROWS_ADDRESS, ROWS_SIZE = 5, 6, 7
"""Words of a map's `control`: rows in use, where they are, and of how many words they consist."""

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
def copy_row(control: Any, at: Any, out: Any) -> None:
    """Copy the row at `at` to `out`, uint64, ROW words."""
    rows = words_at(control[ROWS_ADDRESS], control[ROWS_SIZE])
    for i in range(ROW):
        out[i] = rows[at + np.uint64(i)]


def rounded(row: NDArray[np.uint64]) -> float:
    """The float64 that is nearest to the sum (ties to even): ``math.fsum`` of what was added, or an infinity or nan."""
    special = int(row[DIGITS + 1])
    if special & int(NAN) or special == int(PLUS_INFINITY | MINUS_INFINITY):
        return float("nan")
    if special:
        return float("inf") if special == int(PLUS_INFINITY) else float("-inf")
    total: int = sum(digit << 32 * i for i, digit in enumerate(row[:DIGITS].view(np.int64).tolist()) if digit)
    try:
        return float(total / (1 << 1074))
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
