"""What ``valgrind --tool=lackey --trace-mem=yes`` prints of data: `` L address,size`` and `` S address,size``.

Addresses are hexadecimal, of eight digits at least; sizes decimal. Lackey prints instructions, too (``I``), and what
loads and stores one place at once as ``M``: here are the load and the store.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import put_decimal, put_hex
from tracekit.jit.kernel import kernel

MOST = 48
"""Characters of a line at most: 16 digits, 20 digits, 5 others."""

_STORE = CODE["store"]


@kernel
def encode(kinds: Any, instructions: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """Accesses of no bytes are left out."""
    at = 0
    while place[0] < kinds.size and at + MOST <= out.size:
        access = place[0]
        place[0] += 1
        if sizes[access] != 0:
            out[at] = ord(" ")
            out[at + 1] = ord("S") if kinds[access] == _STORE else ord("L")
            out[at + 2] = ord(" ")
            at += 3
            for digit in range(7, 0, -1):
                if addresses[access] >> np.uint64(4 * digit) == 0:
                    out[at] = ord("0")
                    at += 1
            at = put_hex(out, at, addresses[access])
            out[at] = ord(",")
            at = put_decimal(out, at + 1, sizes[access])
            out[at] = ord("\n")
            at += 1
    return at
