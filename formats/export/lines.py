"""Writing numbers into a buffer of text, and taking long accesses apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.jit.kernel import inlined

LINE = 64
"""Bytes of a cache line; formats that have no sizes get one record for each that an access touches."""


@inlined
def put_hex(out: Any, at: Any, value: Any) -> Any:
    """Write a number in hexadecimal digits, as few as it takes; returns where they end."""
    value = np.uint64(value)
    digits = 12 if value >> np.uint64(44) != 0 else 1  # most addresses have 12
    while digits < 16 and value >> np.uint64(4 * digits) != 0:
        digits += 1
    for place in range(digits):
        digit = (value >> np.uint64(4 * (digits - 1 - place))) & np.uint64(15)
        out[at + place] = digit + (np.uint64(ord("0")) if digit < 10 else np.uint64(ord("a") - 10))
    return at + digits


@inlined
def put_decimal(out: Any, at: Any, value: Any) -> Any:
    """Write a number in decimal digits; returns where they end."""
    value = np.uint64(value)
    digits, rest = 1, value // np.uint64(10)
    while rest != 0:
        digits += 1
        rest //= np.uint64(10)
    for place in range(digits):
        out[at + digits - 1 - place] = np.uint64(ord("0")) + value % np.uint64(10)
        value //= np.uint64(10)
    return at + digits


@inlined
def take_piece(place: Any, address: Any, size: Any, unit: Any) -> Any:
    """Take the next piece of the access at `place`, up to a multiple of `unit` (a power of 2); returns its address."""
    start = address + np.uint64(place[1])
    end = (start | np.uint64(unit - 1)) - start + np.uint64(1)  # bytes up to it
    place[1] += np.int64(end)
    if np.uint64(place[1]) >= size:
        place[0] += 1
        place[1] = 0
    return start
