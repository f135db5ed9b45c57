"""ChampSim's traces: ``input_instr``, 64 bytes for each instruction, little-endian.

A trace of ours has accesses, not machine instructions. So each access is one instruction, without registers, and no
branch is among them; its ``ip`` is made of the number of the instruction in the program. Of an imported trace it is the
program counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import LINE, next_piece
from tracekit.jit.kernel import kernel

INPUT_INSTR = np.dtype(
    [
        ("ip", "<u8"),
        ("is_branch", "u1"),
        ("branch_taken", "u1"),
        ("destination_registers", "u1", 2),
        ("source_registers", "u1", 4),
        ("destination_memory", "<u8", 2),
        ("source_memory", "<u8", 4),
    ]
)
FIRST_IP = 0x400000
"""Of the program's first instruction; code that is not instrumented has the one before."""
STEP = 4
"""Bytes from one instruction to the next."""

_WORDS = INPUT_INSTR.itemsize // 8
_STORED = INPUT_INSTR.fields["destination_memory"][1] // 8  # type: ignore[index]
_LOADED = INPUT_INSTR.fields["source_memory"][1] // 8  # type: ignore[index]
_STORE = CODE["store"]


def encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """An instruction for each line of 64 bytes that an access touches; `counters` are their program counters (u8)."""
    return 8 * int(_encode(kinds, counters, addresses, sizes, place, out.view("<u8")))


def counters(instructions: Any) -> Any:
    """Program counters of instructions of a program whose machine code is not known (u4 -> u8)."""
    made = np.empty(len(instructions), np.uint64)
    _number(instructions.view(np.int32), made)  # NONE is -1
    return made


@kernel
def _number(instructions: Any, made: Any) -> None:
    for place in range(made.size):
        made[place] = np.uint64(FIRST_IP + STEP * np.int64(instructions[place]))


@kernel
def _encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """`out` has been empty, or filled by this before: what no record uses is 0 in it."""
    at, access, begun = 0, place[0], np.uint64(place[1])
    while access < kinds.size and at + _WORDS <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        out[at] = counters[access]
        start, begun = next_piece(addresses[access], sizes[access], begun, LINE)
        is_store = kinds[access] == _STORE
        out[at + _STORED] = start if is_store else np.uint64(0)
        out[at + _LOADED] = np.uint64(0) if is_store else start
        at += _WORDS
        access += begun == 0
    place[0], place[1] = access, np.int64(begun)
    return at
