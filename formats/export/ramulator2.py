"""Ramulator 2's text: LoadStoreTrace's ``LD 0xADDRESS``, ``ST 0xADDRESS``, and SimpleO3's ``bubbles load [store]``.

Both have one request for each line of 64 bytes. SimpleO3 reads decimal numbers: how many instructions without accesses
come first, which a trace does not know (the user says one number for all lines), a load, and a store that follows it. A
load of -1 is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import LINE, put_decimal, put_hex, take_piece
from tracekit.jit.kernel import kernel

MOST = 24
"""Characters of a line at most: 16 digits, 6 others."""
MOST_O3 = 46
"""Characters of what is written for an access at most: the end of a line, two numbers of 20 digits and `-1`."""
LAST = 2**63 - 1
"""The greatest address that the simulator reads."""

HAS_LOAD, BUBBLES = 2, 3
"""Elements of the place: whether the line under way has a load and waits for a store; what each line begins with."""

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


@kernel
def encode_o3(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The same for SimpleO3; a line that has a load is ended by what comes next."""
    at = 0
    while place[0] < kinds.size and at + MOST_O3 <= out.size:
        access = place[0]
        if sizes[access] == 0:
            place[0] += 1
            continue
        is_store = kinds[access] == _STORE
        if place[HAS_LOAD] == 1:
            out[at] = ord(" ") if is_store else ord("\n")
            at += 1
        if not is_store or place[HAS_LOAD] == 0:
            at = put_decimal(out, at, place[BUBBLES])
            out[at] = ord(" ")
            at += 1
            if is_store:
                out[at] = ord("-")
                out[at + 1] = ord("1")
                out[at + 2] = ord(" ")
                at += 3
        at = put_decimal(out, at, take_piece(place, addresses[access], sizes[access], LINE))
        if is_store:
            out[at] = ord("\n")
            at += 1
        place[HAS_LOAD] = np.int64(not is_store)
    return at


def end_o3(place: Any) -> bytes:
    """What the last line lacks."""
    return b"\n" if place[HAS_LOAD] else b""
