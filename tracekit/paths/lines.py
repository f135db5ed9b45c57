"""Which source lines a program's blocks stand for, and how often each line ran.

A line ran as often as the block of it that ran most (a loop's head is one line, and its test runs most); copies of a
function, compiled several times or inlined, add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.program.nearest import Nearest
from tracekit.program.program import Program

I8 = NDArray[np.int64]

RUNS = (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.SET, OpKind.CALL)
"""Operations that stand where they run; others stand where something is declared."""

INLINING_LIMIT = 256
"""A damaged table could hold a cycle."""


class Lines:
    """The source lines of one program's blocks, in its functions and where they were inlined."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self.program)

    @cached_property
    def _places(self) -> tuple[I8, I8]:
        """Pairs (block, row of ``locations`` with a line), block by block in the order of execution."""
        program = self.program
        own = np.arange(len(program.blocks))
        if len(program.lines):
            of, beside = program.lines["block"].astype(np.int64), program.lines["location"]
            within = np.arange(len(of))
        else:  # a trace made before there was that table
            of = np.repeat(own, program.blocks["ops"].astype(np.int64))
            ends = np.cumsum(program.blocks["ops"].astype(np.int64))
            within = np.arange(len(of)) - np.repeat(ends - program.blocks["ops"], program.blocks["ops"])
            ops = program.blocks["first_op"].astype(np.int64)[of] + within
            chosen = np.isin(program.ops["kind"][ops], RUNS)
            of, within, beside = of[chosen], within[chosen], program.ops["location"][ops[chosen]]
        block = np.concatenate([own, of])
        order = np.concatenate([np.full(len(own), -1), within])
        location = np.concatenate([program.blocks["location"], beside]).astype(np.int64)
        known = location != NONE
        known[known] = program.locations["line"][location[known]] != 0
        block, order, location = block[known], order[known], location[known]
        sort = np.lexsort((order, block))
        return block[sort], location[sort]

    @cached_property
    def _outermost(self) -> I8:
        """For each row of ``locations`` that of the call in the function itself that was inlined, or itself."""
        inlined = self.program.locations["inlined_at"].astype(np.int64)
        found = np.arange(len(inlined))
        for _ in range(INLINING_LIMIT):
            above = inlined[found]
            if not (above != NONE).any():
                break
            found = np.where(above != NONE, np.where(above != NONE, above, 0), found)
        return found

    @cached_property
    def _by_block(self) -> Mapping[int, list[int]]:
        """The lines of each block in its function's own text, without repetitions side by side."""
        block, location = self._places
        line = self.program.locations["line"][self._outermost[location]]
        by_block: dict[int, list[int]] = {}
        for number, shown in zip(block.tolist(), line.tolist()):
            lines = by_block.setdefault(number, [])
            if not lines or lines[-1] != shown:
                lines.append(shown)
        return by_block

    def of_block(self, block: int) -> list[int]:
        """The lines of a block in the text of its function, in the order of execution; those near it if it has none."""
        lines = self._by_block.get(block)
        if lines is None:
            near = self._nearest.to_block(block)
            return [] if near == NONE else [int(self.program.locations["line"][self._outermost[near]])]
        return lines

    def of_blocks(self, blocks: tuple[int, ...]) -> list[int]:
        """The lines of blocks one after another, without repetitions side by side."""
        lines: list[int] = []
        for block in blocks:
            for line in self._by_block.get(block, ()):
                if not lines or lines[-1] != line:
                    lines.append(line)
        return lines or (self.of_block(blocks[0]) if blocks else [])

    def counts(self, block_counts: I8) -> list[dict[str, Any]]:
        """How often each line of the functions in the images ran: file, line, count; sorted."""
        program = self.program
        block, location = self._places
        function = program.blocks["function"].astype(np.int64)[block]
        linked = program.linked[function]
        block, location, function = block[linked], location[linked], function[linked]
        rows = program.locations[location]
        keys = np.stack(
            [
                rows["source"].astype(np.int64),
                rows["line"].astype(np.int64),
                function,
                rows["inlined_at"].astype(np.int64),
            ]
        )
        if not keys.shape[1]:
            return []
        copies, index = np.unique(keys, axis=1, return_inverse=True)
        greatest = np.zeros(copies.shape[1], np.int64)
        np.maximum.at(greatest, index.reshape(-1), block_counts[block])
        names = program.source_names.names
        counts: dict[tuple[str, int], int] = {}
        for source, line, count in zip(copies[0].tolist(), copies[1].tolist(), greatest.tolist()):
            if source != NONE:
                key = (names[source], line)
                counts[key] = counts.get(key, 0) + count
        return [{"file": file, "line": line, "count": counts[file, line]} for file, line in sorted(counts)]


def shown_lines(lines: list[int]) -> str:
    """Lines as text: those that follow one another as a range."""
    parts: list[str] = []
    at = 0
    while at < len(lines):
        end = at
        while end + 1 < len(lines) and lines[end + 1] == lines[end] + 1:
            end += 1
        parts.append(str(lines[at]) if end == at else f"{lines[at]}-{lines[end]}")
        at = end + 1
    return ", ".join(parts)
