"""Dinero IV's text formats: ``-informat D`` (type, address, size) and ``-informat d`` (label, address).

Numbers are hexadecimal. The second has no sizes: Dinero takes each line for an access of a word of 4 bytes, so an
access is a line for each word that it touches. Of the sizes of the first Dinero keeps 16 bits, so a longer access is a
line for each piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import HEX_ROOM, next_piece, put_hex
from tracekit.jit.kernel import kernel

WORD = 4
PIECE = 1 << 15
"""An access of more bytes is cut at the multiples of this, as long as no cache has longer lines."""
MOST = 4 + 2 * HEX_ROOM
"""Characters of a line at most: 4 beside the numbers."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The extended format; accesses of no bytes are left out."""
    at, access, begun = 0, place[0], np.uint64(place[1])
    while access < kinds.size and at + MOST <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        start, size = addresses[access], sizes[access]
        if size > PIECE:
            first = begun
            start, begun = next_piece(start, size, first, PIECE)
            size = (begun if begun != 0 else size) - first
        out[at] = ord("w") if kinds[access] == _STORE else ord("r")
        out[at + 1] = ord(" ")
        at = put_hex(out, at + 2, start)
        out[at] = ord(" ")
        at = put_hex(out, at + 1, size)
        out[at] = ord("\n")
        at += 1
        access += begun == 0
    place[0], place[1] = access, np.int64(begun)
    return at


@kernel
def encode_words(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The traditional format: 0 reads, 1 writes."""
    at, access, begun = 0, place[0], np.uint64(place[1])
    while access < kinds.size and at + MOST <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        start, begun = next_piece(addresses[access], sizes[access], begun, WORD)
        out[at] = ord("1") if kinds[access] == _STORE else ord("0")
        out[at + 1] = ord(" ")
        at = put_hex(out, at + 2, start)
        out[at] = ord("\n")
        at += 1
        access += begun == 0
    place[0], place[1] = access, np.int64(begun)
    return at
