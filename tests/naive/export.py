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
    kept = [access for access in accesses if access[3]]
    if form == "ramulator2-o3":
        return simple_o3(kept, 0)
    if form == "gem5":
        return packets(kept)
    return b"".join(each for access in kept for each in _records(form, *access))


def simple_o3(accesses: Iterable[Access], bubbles: int) -> bytes:
    """Lines of Ramulator 2's SimpleO3: a store stands behind the load before it, if that has none yet."""
    lines: list[list[int]] = []
    for code, _, address, size in accesses:
        for start in pieces(address, size, 64):
            if code == CODE["load"]:
                lines.append([bubbles, start])
            elif lines and len(lines[-1]) == 2:
                lines[-1].append(start)
            else:
                lines.append([bubbles, -1, start])
    return b"".join(" ".join(map(str, line)).encode() + b"\n" for line in lines)


def packets(accesses: Iterable[Access], tick: int = 0) -> bytes:
    """gem5's packets, a nanosecond apart, each behind its length; `tick`: of the first."""
    found = [b"gem5", _delimited(b"\x0a\x08tracekit" + _field(3, 10**12))]
    for code, instruction, address, size in accesses:
        for start in pieces(address, size, 64):
            length = min(address + size, start // 64 * 64 + 64) - start
            command = 4 if code == CODE["store"] else 1
            values = {2: command, 4: length, 1: tick, 3: start, 7: _counter(instruction)}  # by number, in any order
            found.append(_delimited(b"".join(_field(number, value) for number, value in values.items())))
            tick += 1000
    return b"".join(found)


def drmemtrace(accesses: Iterable[Access]) -> list[tuple[int, int, int]]:
    """Instructions and data of drmemtrace: what is longer than a line is one piece for each that it touches."""
    found = []
    for code, instruction, address, size in accesses:
        if size:
            found.append((10, 4, _counter(instruction)))
            starts = list(pieces(address, size, 64)) if size > 64 else [address]
            ends = [*starts[1:], address + size]
            found += [(int(code == CODE["store"]), end - start, start) for start, end in zip(starts, ends)]
    return found


def _field(number: int, value: int) -> bytes:
    """A varint of protocol buffers behind its tag."""
    return bytes([number << 3]) + _varint(value)


def _delimited(message: bytes) -> bytes:
    return _varint(len(message)) + message


def _varint(value: int) -> bytes:
    groups = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def _counter(instruction: int) -> int:
    """The made-up program counter of an instruction."""
    return 0x400000 + 4 * (-1 if instruction == NONE else instruction)


def _records(form: str, code: int, instruction: int, address: int, size: int) -> Iterator[bytes]:
    is_store = code == CODE["store"]
    if form == "xdin":
        starts = list(pieces(address, size, 32768)) if size > 32768 else [address]
        for start, end in zip(starts, [*starts[1:], address + size]):
            yield f"{'w' if is_store else 'r'} {start:x} {end - start:x}\n".encode()
    if form == "lackey-i":
        yield f"I  {_counter(instruction):08x},4\n".encode()
    if form in ("lackey", "lackey-i"):
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
            yield struct.pack("<Q8x6Q", _counter(instruction), *memory)


def packed_pieces(event: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """What `import` makes of an access (stream, code, instruction, address, size) in a file of drmemtrace's."""
    stream, *access = event
    for kind, size, start in drmemtrace([(access[0], access[1], access[2], access[3])]):
        if kind != 10:
            yield stream, access[0], _counter(access[1]), start, size
