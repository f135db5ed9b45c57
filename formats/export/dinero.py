"""Dinero IV's text formats: ``-informat D`` (type, address, size) and ``-informat d`` (label, address).

Numbers are hexadecimal. The second has no sizes: Dinero takes each line for an access of a word of 4 bytes, so an
access is a line for each word that it touches.
"""

from __future__ import annotations

from typing import Any

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import put_hex, take_piece
from tracekit.jit.kernel import kernel

WORD = 4
MOST = 40
"""Characters of a line at most: of both numbers 16, and 4 others."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The extended format; accesses of no bytes are left out."""
    at = 0
    while place[0] < kinds.size and at + MOST <= out.size:
        access = place[0]
        place[0] += 1
        if sizes[access] != 0:
            out[at] = ord("w") if kinds[access] == _STORE else ord("r")
            out[at + 1] = ord(" ")
            at = put_hex(out, at + 2, addresses[access])
            out[at] = ord(" ")
            at = put_hex(out, at + 1, sizes[access])
            out[at] = ord("\n")
            at += 1
    return at


@kernel
def encode_words(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The traditional format: 0 reads, 1 writes."""
    at = 0
    while place[0] < kinds.size and at + MOST <= out.size:
        access = place[0]
        if sizes[access] == 0:
            place[0] += 1
            continue
        out[at] = ord("1") if kinds[access] == _STORE else ord("0")
        out[at + 1] = ord(" ")
        at = put_hex(out, at + 2, take_piece(place, addresses[access], sizes[access], WORD))
        out[at] = ord("\n")
        at += 1
    return at
