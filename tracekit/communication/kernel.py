"""What the callbacks of the module communication do: the last store of each byte, and who loads it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import Shadow, read_word, writing
from tracekit.contexts.kernels.roles import Roles
from tracekit.jit.kernel import inlined, kernel

CELL = np.dtype([("writer", "<u4"), ("instruction", "<u4")])
"""The last store of bytes: its stream plus 1, 0 if there is none; and its instruction."""

SUMS = [("loads", "<i8"), ("bytes", "<i8")]


class State(NamedTuple):
    """The last stores, and the sums."""

    memory: Shadow  # CELL
    streams: HashTable  # SUMS by pair of streams: who stored (plus 1) in the upper half, who loads (plus 1)
    pairs: HashTable  # SUMS by pair of instructions of different streams: the store in the upper half, the load
    roles: Roles


@inlined
def stored(state: State, instruction: Any, address: Any, size: Any, stream: Any) -> None:
    """A store."""
    for row in writing(state.memory, address, size):
        cell = state.memory.rows[row]
        cell.writer = stream + 1
        cell.instruction = instruction


@inlined
def loaded(state: State, instruction: Any, address: Any, size: Any, stream: Any) -> None:
    """A load: every word is looked at by itself, and every byte of one whose bytes have different stores."""
    left, before = size, np.int64(-1)
    while left > 0:
        first, last, taken = read_word(state.memory, address, left)
        if first != last:
            taken = np.int64(1)
            first, last, taken = read_word(state.memory, address, taken)
        before = _count(state, first, taken, instruction, stream, before)
        address += taken
        left -= taken


@kernel
def _count(state: State, row: Any, taken: Any, instruction: Any, stream: Any, before: Any) -> Any:
    """Bytes of one load with one last store; `before`: the store of the bytes before, which is counted once."""
    cell = state.memory.rows[row]
    store = np.int64(cell.writer) << 32 | np.int64(cell.instruction)
    is_new = np.int64(store != before)
    key = np.uint64(cell.writer) << np.uint64(32) | np.uint64(stream + 1)
    sums = state.streams.rows[row_of(state.streams, key)]
    sums.loads += is_new
    sums.bytes += taken
    if cell.writer != 0 and cell.writer != stream + 1:
        key = np.uint64(cell.instruction) << np.uint64(32) | np.uint64(instruction)
        pair = state.pairs.rows[row_of(state.pairs, key)]
        pair.loads += is_new
        pair.bytes += taken
    return store


@inlined
def forgotten(state: State, address: Any, size: Any) -> None:
    """The bytes are new: nobody has stored there."""
    clear(state.memory, address, size)
