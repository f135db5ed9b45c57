"""Writing numbers into a buffer of text, eight digits at once, and taking long accesses apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.jit.cache import CHECKS_ALL_BOUNDS
from tracekit.jit.kernel import Instruction, inlined

LINE = 64
"""Bytes of a cache line; formats that have no sizes get one record for each that an access touches."""
HEX_ROOM, DECIMAL_ROOM = 16, 24
"""Bytes that writing a number may overwrite, however few digits it has."""

EIGHT_DIGITS = 100_000_000
_U8 = np.uint64
_ZEROS = _U8(0x3030303030303030)


def _put_word(typing: Any, out: Any, at: Any, word: Any) -> Any:
    from llvmlite import ir
    from numba.core import types
    from numba.np import arrayobj

    arrays: Any = arrayobj  # Numba's own functions have no types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = arrays.make_array(signature.args[0])(context, builder, arguments[0]).data
        index = context.cast(builder, arguments[1], signature.args[1], types.uintp)
        number = context.cast(builder, arguments[2], signature.args[2], types.uint64)
        place = builder.bitcast(builder.gep(start, [index]), ir.IntType(64).as_pointer())
        builder.store(number, place, align=1)
        return context.get_dummy_value()

    return types.void(out, at, word), generate


@inlined
def _put_bytes(out: Any, at: Any, word: Any) -> None:
    """The same with bounds checks."""
    for k in range(8):
        out[at + k] = word >> _U8(8 * k) & _U8(255)


if TYPE_CHECKING:

    def put_word(out: Any, at: Any, word: Any) -> None:
        """Write the eight bytes of a number, the lowest first, at out[at] (uint8), which need not be aligned."""
else:
    put_word = _put_bytes if CHECKS_ALL_BOUNDS else Instruction(_put_word)


@inlined
def put_hex(out: Any, at: Any, value: Any) -> Any:
    """Write a number in hexadecimal digits, as few as it takes; returns where they end. Needs HEX_ROOM."""
    value = _U8(value)
    if value < _U8(10):
        out[at] = _U8(ord("0")) + value
        return at + 1
    digits = 12 if value >> _U8(44) != 0 else 1  # most addresses have 12
    while digits < 16 and value >> _U8(4 * digits) != 0:
        digits += 1
    value <<= _U8(64 - 4 * digits)
    put_word(out, at, _hex_digits(value >> _U8(32)))
    if digits > 8:
        put_word(out, at + 8, _hex_digits(value & _U8(0xFFFFFFFF)))
    return at + digits


@inlined
def _hex_digits(value: Any) -> Any:
    """The eight digits of a number of 32 bits as the bytes of a word, the first digit lowest."""
    value = value >> _U8(16) | (value & _U8(0xFFFF)) << _U8(32)
    value = value >> _U8(8) & _U8(0xFF000000FF) | (value & _U8(0xFF000000FF)) << _U8(16)
    value = value >> _U8(4) & _U8(0x000F000F000F000F) | (value & _U8(0x000F000F000F000F)) << _U8(8)
    letters = (value + _U8(0x0606060606060606)) >> _U8(4) & _U8(0x0101010101010101)
    return value + _ZEROS + letters * _U8(ord("a") - ord("0") - 10)


@inlined
def put_decimal(out: Any, at: Any, value: Any) -> Any:
    """Write a number in decimal digits, as few as it takes; returns where they end. Needs DECIMAL_ROOM."""
    value = _U8(value)
    if value < _U8(10):
        out[at] = _U8(ord("0")) + value
        return at + 1
    first, others = value, 0  # what is before the others, which are whole words of eight digits
    while first >= _U8(EIGHT_DIGITS):
        first //= _U8(EIGHT_DIGITS)
        others += 1
    digits, least = 1, _U8(10)
    while first >= least:
        digits += 1
        least *= _U8(10)
    put_word(out, at, _decimal_digits(first) >> _U8(8 * (8 - digits)))
    at += digits
    if others == 2:
        put_word(out, at, _decimal_digits(value // _U8(EIGHT_DIGITS) % _U8(EIGHT_DIGITS)))
        at += 8
    if others > 0:
        put_word(out, at, _decimal_digits(value % _U8(EIGHT_DIGITS)))
        at += 8
    return at


@inlined
def _decimal_digits(value: Any) -> Any:
    """The eight digits of a number below EIGHT_DIGITS as the bytes of a word, the first digit lowest.

    Halves of four digits, of these two, of these one: each division is a product, of all parts at once.
    """
    value = value // _U8(10_000) | (value % _U8(10_000)) << _U8(32)
    tens = value * _U8(10_486) >> _U8(20) & _U8(0x0000007F0000007F)
    value = tens | (value - tens * _U8(100)) << _U8(16)
    tens = value * _U8(103) >> _U8(10) & _U8(0x000F000F000F000F)
    return (tens | (value - tens * _U8(10)) << _U8(8)) + _ZEROS


@inlined
def next_piece(address: Any, size: Any, begun: Any, unit: Any) -> Any:
    """The next piece of an access, up to a multiple of `unit` (a power of 2), behind the `begun` bytes (uint64).

    Returns where it starts, and how many bytes are done then: 0 if these are all.
    """
    start = address + begun
    begun += (start | _U8(unit - 1)) - start + _U8(1)
    return start, begun if begun < size else _U8(0)
