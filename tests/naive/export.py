"""Accesses in the formats of simulators, one line after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from tracekit.formats.events import CODE, NONE

Access = tuple[int, int, int, int]
"""Code, instruction, address, size."""


def pieces(address: int, size: int, unit: int) -> Iterator[int]:
    """The first byte of an access in each unit that it touches."""
    for number in range(address // unit, (address + size - 1) // unit + 1):
        yield max(address, number * unit)


def written(form: str, accesses: Iterable[Access]) -> bytes:
    """What the file holds."""
    return b"".join(each for access in accesses if access[3] for each in _records(form, *access))


def _records(form: str, code: int, instruction: int, address: int, size: int) -> Iterator[bytes]:
    is_store = code == CODE["store"]
    if form == "xdin":
        yield f"{'w' if is_store else 'r'} {address:x} {size:x}\n".encode()
    if form == "lackey":
        yield f" {'S' if is_store else 'L'} {address:08x},{size}\n".encode()
    if form == "din":
        for start in pieces(address, size, 4):
            yield f"{int(is_store)} {start:x}\n".encode()
    if form == "ramulator2":
        for start in pieces(address, size, 64):
            yield f"{'ST' if is_store else 'LD'} {start:#x}\n".encode()
    if form == "champsim":
        for start in pieces(address, size, 64):
            memory = (start, 0, 0, 0, 0, 0) if is_store else (0, 0, start, 0, 0, 0)
            yield struct.pack("<Q8x6Q", 0x400000 + 4 * (-1 if instruction == NONE else instruction), *memory)
