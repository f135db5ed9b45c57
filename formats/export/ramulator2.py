"""Ramulator 2's LoadStoreTrace: ``LD 0xADDRESS`` and ``ST 0xADDRESS``, one request for each line of 64 bytes."""

from __future__ import annotations

from typing import Any

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import LINE, put_hex, take_piece
from tracekit.jit.kernel import kernel

MOST = 24
"""Characters of a line at most: 16 digits, 6 others."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The first address in each line that an access touches."""
    at = 0
    while place[0] < kinds.size and at + MOST <= out.size:
        access = place[0]
        if sizes[access] == 0:
            place[0] += 1
            continue
        is_store = kinds[access] == _STORE
        out[at] = ord("S") if is_store else ord("L")
        out[at + 1] = ord("T") if is_store else ord("D")
        out[at + 2] = ord(" ")
        out[at + 3] = ord("0")
        out[at + 4] = ord("x")
        at = put_hex(out, at + 5, take_piece(place, addresses[access], sizes[access], LINE))
        out[at] = ord("\n")
        at += 1
    return at
