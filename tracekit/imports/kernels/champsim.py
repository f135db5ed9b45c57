"""Reads ChampSim's ``input_instr``: what an instruction loads, then what it stores, where the address is not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.imports.kernels.records import LOAD, STORE, UNKNOWN, counter_of, has_room, put
from tracekit.jit.kernel import kernel

AT = 0
"""Element of the state: instructions that are read."""
STATE = 1

GOES_ON, DAMAGED = 0, 1
"""What the kernel returns."""

LINE = np.uint64(64)


@kernel
def read(instructions: Any, state: Any, met: Any, out: Any, size: int) -> int:
    """Read `instructions` (rows of INPUT_INSTR) until they end or `out` is full.

    Their accesses are taken to have `size` bytes, fewer where a cache line ends.
    """
    while state[AT] < instructions.size and has_room(out, 6):
        row = instructions[state[AT]]
        if row.is_branch > 1 or row.branch_taken > 1:
            return DAMAGED
        counter = np.int64(UNKNOWN)
        for place in range(6):
            address = row.source_memory[place] if place < 4 else row.destination_memory[place - 4]
            if address != 0:
                if counter == UNKNOWN:
                    counter = np.int64(counter_of(met, row.ip))
                left = LINE - (address & (LINE - np.uint64(1)))
                put(met, out, counter, LOAD if place < 4 else STORE, address, min(np.uint64(size), left))
        state[AT] += 1
    return GOES_ON
