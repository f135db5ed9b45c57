"""Makes the tables of a grammar, and reads what it has written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.arena import arena, reserve
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import USED
from tracekit.whomp.kernels import digrams
from tracekit.whomp.kernels.digrams import Digrams
from tracekit.whomp.kernels.expansion import expand, measure, unpack
from tracekit.whomp.kernels.pending import flush
from tracekit.whomp.kernels.sequitur import CONTROL, NODE, OPENING, RULE, TASK, TOTAL, Grammar, begin
from tracekit.whomp.kernels.writing import write

MOST_NODES = 1 << 29
MOST_VALUES = 1 << 28
TASKS = 1 << 20
OPEN_NODES = 8
"""Rules that a stream follows at once, one inside the other."""
PENDING = 1 << 19
"""Values that are appended at once: while they are, what one grammar needs comes into the processor's caches, once."""
SYMBOL_BYTES = 4
VALUE_BYTES = 8
CHUNK = 1 << 16
"""Values that are expanded at once."""

U4 = NDArray[np.uint32]


def empty_grammar() -> Grammar:
    """A grammar of an empty stream, with address space for MOST_NODES symbols."""
    made = Grammar(
        nodes=arena(NODE, MOST_NODES, spare=1, beside=40, parts=5),
        rules=arena(RULE, MOST_NODES, spare=1, parts=5),
        digrams=_digrams(),
        values=hash_table([], MOST_VALUES, parts=5),
        stack=reserve(TASK, TASKS),
        open=np.zeros(OPEN_NODES, OPENING),
        pending=np.zeros(PENDING, np.uint64),
        written=arena("<u4", 1 << 32, spare=1, parts=5),
        control=np.zeros(CONTROL, np.int64),
    )
    begin(made)
    return made


def _digrams() -> Digrams:
    """A table without entries; keys and places are the same memory, in which buckets begin with a cache line."""
    keys = reserve("u8", 1 << 32, 1 << 16)
    return Digrams(keys, keys.view("u4"), np.zeros(digrams.CONTROL, np.int64))


@dataclass(frozen=True)
class Rules:
    """The rules of one block: bodies one after the other, and where each begins (one more: the end)."""

    symbols: U4
    first: NDArray[np.int64]

    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each rule: how long what it stands for is, and how often that stands in the stream."""
        count = len(self.first) - 1
        uses, order, lengths, counts = (np.zeros(count, np.int64) for _ in range(4))
        measure(self.symbols, self.first, uses, order, lengths, counts)
        return lengths, counts


@dataclass(frozen=True)
class Written:
    """The grammars of a stream, block by block: `written` as ``sequitur.write`` leaves it, and terminals' values."""

    written: U4
    values: NDArray[np.int64]
    length: int

    @classmethod
    def of(cls, grammar: Grammar) -> Written:
        """Of a finished stream."""
        flush(grammar)
        write(grammar)
        values = used_rows(grammar.values)["key"].astype(np.int64)
        return cls(grammar.written.rows[1 : grammar.written.control[USED]].copy(), values, int(grammar.control[TOTAL]))

    def blocks(self) -> Iterator[Rules]:
        """The rules of each block."""
        place = 0
        while place < len(self.written):
            first = np.zeros(int(self.written[place]) + 1, np.int64)
            symbols = np.empty(len(self.written) - place, np.uint32)
            place = int(unpack(self.written, place + 1, first, symbols))
            yield Rules(symbols[: first[-1]].copy(), first)

    def expanded(self, rule: int = 0, of: Rules | None = None) -> Iterator[NDArray[np.int64]]:
        """The stream again, some values at a time; or what one rule of a block stands for."""
        for block in self.blocks() if of is None else [of]:
            stack = np.zeros((len(block.first) + 1, 2), np.int64)
            stack[0] = block.first[rule], block.first[rule + 1]
            control = np.ones(1, np.int64)
            while control[0]:
                out = np.empty(CHUNK, np.int64)
                filled = int(expand(block.symbols, block.first, stack, control, self.values, out))
                if filled:
                    yield out[:filled]

    def size(self) -> dict[str, int]:
        """``symbols`` (of bodies), ``rules``, ``values``, ``bytes`` (a length for each rule, and the values, too)."""
        rules = symbols = 0
        for block in self.blocks():
            rules += len(block.first) - 1
            symbols += len(block.symbols)
        values = len(self.values) - 1
        size = (symbols + rules) * SYMBOL_BYTES + values * VALUE_BYTES
        return {"symbols": symbols, "rules": rules, "values": values, "bytes": size}
