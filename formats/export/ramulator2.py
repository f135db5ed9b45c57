"""Ramulator 2's text: LoadStoreTrace's ``LD 0xADDRESS``, ``ST 0xADDRESS``, and SimpleO3's ``bubbles load [store]``.

Both have one request for each line of 64 bytes. SimpleO3 reads decimal numbers: how many instructions without accesses
come first, which a trace does not know (the user says one number for all lines), a load, and a store that follows it. A
load of -1 is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import DECIMAL_ROOM, HEX_ROOM, LINE, next_piece, put_decimal, put_hex
from tracekit.jit.kernel import kernel

MOST = 6 + HEX_ROOM
"""Characters of a line at most: 6 beside the number."""
MOST_O3 = 6 + 2 * DECIMAL_ROOM
"""Characters of what is written for an access at most: the ends of two lines, blanks, two numbers and `-1`."""
LAST = 2**63 - 1
"""The greatest address that the simulator reads."""

HAS_LOAD, BUBBLES = 2, 3
"""Elements of the place: whether the line under way has a load and waits for a store; what each line begins with."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The first address in each line that an access touches."""
    at, access, begun = 0, place[0], np.uint64(place[1])
    while access < kinds.size and at + MOST <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        start, begun = next_piece(addresses[access], sizes[access], begun, LINE)
        is_store = kinds[access] == _STORE
        out[at] = ord("S") if is_store else ord("L")
        out[at + 1] = ord("T") if is_store else ord("D")
        out[at + 2] = ord(" ")
        out[at + 3] = ord("0")
        out[at + 4] = ord("x")
        at = put_hex(out, at + 5, start)
        out[at] = ord("\n")
        at += 1
        access += begun == 0
    place[0], place[1] = access, np.int64(begun)
    return at


@kernel
def encode_o3(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The same for SimpleO3; a line that has a load is ended by what comes next."""
    at, access, begun, has_load = 0, place[0], np.uint64(place[1]), place[HAS_LOAD] == 1
    while access < kinds.size and at + MOST_O3 <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        start, begun = next_piece(addresses[access], sizes[access], begun, LINE)
        is_store = kinds[access] == _STORE
        if has_load:
            out[at] = ord(" ") if is_store else ord("\n")
            at += 1
        if not is_store or not has_load:
            at = put_decimal(out, at, place[BUBBLES])
            out[at] = ord(" ")
            at += 1
            if is_store:
                out[at] = ord("-")
                out[at + 1] = ord("1")
                out[at + 2] = ord(" ")
                at += 3
        at = put_decimal(out, at, start)
        if is_store:
            out[at] = ord("\n")
            at += 1
        has_load = not is_store
        access += begun == 0
    place[0], place[1], place[HAS_LOAD] = access, np.int64(begun), np.int64(has_load)
    return at


def end_o3(place: Any) -> bytes:
    """What the last line lacks."""
    return b"\n" if place[HAS_LOAD] else b""
