"""Loads and stores in what other tools wrote, read one after the other."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from tracekit.formats.events import CODE

Access = tuple[int, int | None, int, int]
"""Code, program counter, address, size."""

LOAD, STORE = CODE["load"], CODE["store"]


def lackey(text: str) -> Iterator[Access]:
    """What a text of lackey's says."""
    counter = None
    for line in text.split("\n"):
        if line == "" or line.startswith(("==", "--", "##")):
            continue
        match = re.fullmatch(r"(I | L| S| M) ([0-9a-f]{1,16}),([0-9]+)", line)
        assert match is not None, line
        kind, address, size = match[1].strip(), int(match[2], 16), int(match[3])
        if kind == "I":
            counter = address
        if kind in "LM":
            yield LOAD, counter, address, size
        if kind in "SM":
            yield STORE, counter, address, size


def champsim(data: bytes, size: int) -> Iterator[Access]:
    """What instructions of ChampSim's say."""
    for at in range(0, len(data), 64):
        counter, _, _, _, _, *memory = struct.unpack("<QBB2s4s6Q", data[at : at + 64])
        for kind, address in [(LOAD, each) for each in memory[2:]] + [(STORE, each) for each in memory[:2]]:
            if address:
                yield kind, counter, address, min(size, 64 - address % 64)


Entry = tuple[int, int, int]
"""Type, size and value of a record of drmemtrace's."""

INSTRUCTIONS = {10, 11, 12, 13, 14, 15, 16, 29, 30, 31, 48, 49}


def drmemtrace(files: list[list[Entry]], with_kernel: bool) -> list[tuple[int, Access]]:
    """Thread and access, in order of time; of one time, in the order of the files."""
    found: list[tuple[int, int, int, Access]] = []
    for number, entries in enumerate(files):
        time, thread, counter, behind, kernel = 0, 0, None, 0, False
        for kind, size, value in entries:
            if kind == 22:
                thread = value
            elif kind == 28 and size == 2:
                time = max(time, value)
            elif kind == 28 and size in (27, 34):
                kernel = True
            elif kind == 28 and size in (28, 35):
                kernel = False
            elif kind in INSTRUCTIONS:
                counter, behind = value, value + size
            elif kind == 17:
                for length in value.to_bytes(8, "little")[:size]:
                    counter, behind = behind, behind + length
            elif kind in (0, 1) and size and (with_kernel or not kernel):
                found.append((time, number, thread, (STORE if kind else LOAD, counter, value, size)))
    return [(thread, access) for _, _, thread, access in sorted(found, key=lambda row: row[:2])]
