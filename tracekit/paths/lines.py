"""Which source lines a program's blocks stand for, and how often each line ran.

A line ran as often as the block of it that ran most (a loop's head is one line, and its test runs most); copies of a
function, compiled several times or inlined, add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.program.function_names import shortest_name
from tracekit.program.nearest import Nearest
from tracekit.program.program import Program
from tracekit.program.sources import is_system
from tracekit.program.symbols import INLINING_LIMIT

I8 = NDArray[np.int64]

RUNS = (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.SET, OpKind.CALL)
"""Operations that stand where they run; others stand where something is declared."""


class Step(NamedTuple):
    """A line that runs, in the text of the function; of code that was inlined there, also the line in that."""

    line: int
    """Of the function's own text: the call, of inlined code."""
    function: str = ""
    """That was inlined; of the system's, the one around it that is not. Empty: the line is the function's own."""
    inner: int = 0
    """The line in that."""


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

    def _outward(self, leaves: NDArray[np.bool_]) -> I8:
        """For each row of ``locations`` the first of itself and those it was inlined at that is not to be left.

        `leaves`: bool (locations,). The last one, in the function itself, stays.
        """
        inlined = self.program.locations["inlined_at"].astype(np.int64)
        outer = np.where(leaves & (inlined != NONE), inlined, np.arange(len(inlined)))
        found = np.arange(len(inlined))
        for _ in range(INLINING_LIMIT):
            further = outer[found]
            if (further == found).all():
                break
            found = further
        return found

    @cached_property
    def _outermost(self) -> I8:
        """For each row of ``locations`` that of the call in the function itself that was inlined, or itself."""
        return self._outward(np.ones(len(self.program.locations), np.bool_))

    @cached_property
    def _users(self) -> I8:
        """For each row of ``locations`` the innermost one around it, or itself, that is in no system's file."""
        is_hidden = np.array([*map(is_system, self.program.source_names.names), True])
        source = np.minimum(self.program.locations["source"].astype(np.int64), len(is_hidden) - 1)
        return self._outward(is_hidden[source])

    def _step(self, location: int) -> Step:
        rows, outer, inner = self.program.locations, self._outermost[location], self._users[location]
        line = int(rows["line"][outer])
        if inner == outer or not rows["line"][inner]:
            return Step(line)
        return Step(line, self.program.text(int(rows["function"][inner])), int(rows["line"][inner]))

    @cached_property
    def _by_block(self) -> Mapping[int, list[Step]]:
        """The lines of each block, without repetitions side by side."""
        block, location = self._places
        shown = {row: self._step(row) for row in np.unique(location).tolist()}
        by_block: dict[int, list[Step]] = {}
        for number, row in zip(block.tolist(), location.tolist()):
            steps = by_block.setdefault(number, [])
            if not steps or steps[-1] != shown[row]:
                steps.append(shown[row])
        return by_block

    def of_block(self, block: int) -> list[Step]:
        """The lines of a block, in the order of execution; those near it if it has none."""
        steps = self._by_block.get(block)
        if steps is None:
            near = self._nearest.to_block(block)
            return [] if near == NONE else [self._step(near)]
        return steps

    def of_blocks(self, blocks: tuple[int, ...]) -> list[Step]:
        """The lines of blocks one after another, without repetitions side by side."""
        steps = [step for block in blocks for step in self._by_block.get(block, ())]
        return [step for step, _ in groupby(steps)] or (self.of_block(blocks[0]) if blocks else [])

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


def own_lines(steps: Iterable[Step]) -> list[int]:
    """The lines of the function's own text, without repetitions side by side."""
    return [line for line, _ in groupby(step.line for step in steps)]


def inlined_lines(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """What ran of functions that were inlined: ``line`` of the call, ``function``, ``lines`` in it; in that order."""
    parts = groupby(steps, key=lambda step: (step.line, step.function))
    return [
        {"line": line, "function": function, "lines": [step.inner for step in part]}
        for (line, function), part in parts
        if function
    ]


def shown_steps(steps: Iterable[Step]) -> str:
    """Lines as text: `7-8, 12 (next 3-4), 15`."""
    parts: list[str] = []
    plain: list[int] = []
    for line, group in groupby(steps, key=lambda step: step.line):
        inner = [f"{shortest_name(part['function'])} {shown_lines(part['lines'])}" for part in inlined_lines(group)]
        if not inner:
            plain.append(line)
            continue
        if plain:
            parts.append(shown_lines(plain))
            plain = []
        parts.append(f"{line} ({'; '.join(inner)})")
    return ", ".join([*parts, shown_lines(plain)] if plain else parts)


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
