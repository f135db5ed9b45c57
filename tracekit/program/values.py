"""How a value that a load or store moved is shown: as the number or the address that the program meant."""

from __future__ import annotations

import struct
from typing import Any

from tracekit.formats.image import TypeClass

Shown = int | float | str

LEAST_NORMAL = {4: 2.0**-126, 8: 2.0**-1022}
"""The least number of a float of so many bytes that has all its digits."""


def shown_value(operation: Any, value: int) -> Shown:
    """The value of a row of ``ops``, given as the int64 with its bits (the low ones, if it is narrower).

    Integers are signed, as far as they are a power of two wide; pointers are hexadecimal; a float that JSON has no
    number for, and what is of no such type, is its bits in hexadecimal. So is a subnormal float: compilers copy a union
    as its first member, and an integer or pointer in it reads as one of these.
    """
    size, kind = int(operation["size"]), int(operation["type_class"])
    bits = value & ((1 << (8 * size)) - 1)
    if kind == TypeClass.FLOAT and size in (4, 8):
        number: float = struct.unpack("<f" if size == 4 else "<d", bits.to_bytes(size, "little"))[0]
        is_finite = number - number == 0
        if is_finite and (number == 0 or abs(number) >= LEAST_NORMAL[size]):
            return number
    elif kind == TypeClass.INTEGER:
        return bits - (1 << (8 * size)) if bits >> (8 * size - 1) else bits
    return f"{bits:#0{2 * size + 2}x}"
