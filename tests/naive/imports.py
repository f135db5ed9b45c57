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
        if line == "" or line.startswith(("==", "--")):
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
