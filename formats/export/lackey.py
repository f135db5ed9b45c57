"""What ``valgrind --tool=lackey --trace-mem=yes`` prints of data: `` L address,size`` and `` S address,size``.

Addresses are hexadecimal, of eight digits at least; sizes decimal. Lackey prints all instructions, too (``I``): here
are those that access something, if they are asked for. What loads and stores one place at once it prints as ``M``: here
are the load and the store.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import DECIMAL_ROOM, HEX_ROOM, put_decimal, put_hex
from tracekit.jit.kernel import inlined, kernel

MOST = 5 + HEX_ROOM + DECIMAL_ROOM
"""Characters of a line at most: 5 beside the numbers."""
MOST_OF_INSTRUCTION = 16 + HEX_ROOM
"""The same of a line for an instruction."""
INSTRUCTION = 4
"""Bytes that an instruction is said to have."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """Accesses of no bytes are left out."""
    at, access = 0, place[0]
    while access < kinds.size and at + MOST <= out.size:
        if sizes[access] != 0:
            at = _put_access(out, at, kinds[access], addresses[access], sizes[access])
        access += 1
    place[0] = access
    return at


@kernel
def encode_instructions(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """The same, each access behind its instruction, which is said to have INSTRUCTION bytes; `counters`: u8."""
    at, access = 0, place[0]
    while access < kinds.size and at + MOST + MOST_OF_INSTRUCTION <= out.size:
        if sizes[access] != 0:
            out[at] = ord("I")
            out[at + 1] = ord(" ")
            out[at + 2] = ord(" ")
            at = _put_address(out, at + 3, counters[access])
            out[at] = ord(",")
            out[at + 1] = ord("0") + INSTRUCTION
            out[at + 2] = ord("\n")
            at = _put_access(out, at + 3, kinds[access], addresses[access], sizes[access])
        access += 1
    place[0] = access
    return at


@inlined
def _put_access(out: Any, at: Any, kind: Any, address: Any, size: Any) -> Any:
    out[at] = ord(" ")
    out[at + 1] = ord("S") if kind == _STORE else ord("L")
    out[at + 2] = ord(" ")
    at = _put_address(out, at + 3, address)
    out[at] = ord(",")
    at = put_decimal(out, at + 1, size)
    out[at] = ord("\n")
    return at + 1


@inlined
def _put_address(out: Any, at: Any, address: Any) -> Any:
    """Eight digits at least."""
    if address >> np.uint64(28) == 0:
        for digit in range(7, 0, -1):
            if address >> np.uint64(4 * digit) == 0:
                out[at] = ord("0")
                at += 1
    return put_hex(out, at, address)
