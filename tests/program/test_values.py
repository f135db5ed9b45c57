"""Values as text and JSON show them."""

from __future__ import annotations

import struct

import pytest

from tracekit.formats.image import TypeClass
from tracekit.program.values import shown_value


def shown(value: int, size: int, kind: TypeClass) -> object:
    return shown_value({"size": size, "type_class": kind}, value)


def bits(number: float, form: str = "<d") -> int:
    return int.from_bytes(struct.pack(form, number), "little")


@pytest.mark.parametrize("number", [0.0, 1.5, -2.25, 2.0**-1022, -(2.0**-1022), 1e300])
def test_a_float_is_its_number(number: float) -> None:
    assert shown(bits(number), 8, TypeClass.FLOAT) == number


def test_a_narrow_float_has_its_own_least_number() -> None:
    assert shown(bits(2.0**-126, "<f"), 4, TypeClass.FLOAT) == 2.0**-126
    assert shown(bits(2.0**-127, "<f"), 4, TypeClass.FLOAT) == "0x00400000"


@pytest.mark.parametrize("kept", [7, 0x7FFF12345678, -1])
def test_an_integer_or_pointer_that_is_moved_as_a_float_is_no_float(kept: int) -> None:
    assert shown(kept, 8, TypeClass.FLOAT) == f"{kept & (2**64 - 1):#018x}"


def test_integers_are_signed() -> None:
    assert shown(0xFFFFFFFF, 4, TypeClass.INTEGER) == -1
    assert shown(7, 4, TypeClass.INTEGER) == 7
