"""Places for code that the compiler gave no line: of the instruction nearest to it, in the same block and scope.

Optimisation merges instructions of several lines into one of none, and makes some that stand in no line. Nearest is, in
this order: an instruction of the same block, that of the same scope (function and place of inlining) if the code has
one, the one with the fewest between if there are several; the block itself; the loop around it; the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import EdgeKind, NodeKind

if TYPE_CHECKING:
    from tracekit.program.tables import Tables


class Nearest:
    """The nearest lines of one program's code that has none."""

    def __init__(self, program: Tables) -> None:
        self.program = program
        self._op_block = np.repeat(np.arange(len(program.blocks)), program.blocks["ops"].astype(np.int64))

    def has_line(self, location: int) -> bool:
        """Does a row of ``locations`` (or NONE) say a line?"""
        return location != NONE and bool(self.program.locations["line"][location])

    def to_op(self, op: int) -> int:
        """A row of ``locations`` with a line near an operation; NONE if its whole function has none."""
        block = self._block_of(op)
        if block == NONE:
            return NONE
        scope = self._scope(int(self.program.ops["location"][op]))
        found = self._in_block(block, op, scope)
        return found if found != NONE else self.to_block(block)

    def to_block(self, block: int) -> int:
        """A row of ``locations`` with a line near the end of a block."""
        return next(filter(self.has_line, self._around(block)), NONE)

    def to_loop(self, loop: int) -> int:
        """A row of ``locations`` with a line near the head of a loop."""
        header = int(self.program.loops["header"][loop])
        return self.to_block(header) if header < len(self.program.blocks) else NONE

    def to_phi(self, phi: int, block: int) -> int:
        """A row of ``locations`` with a line near a variable of a loop's header `block`: where it is used, or set."""
        for op in self._beside_phi.get(phi, ()):
            if self.has_line(int(self.program.ops["location"][op])):
                return int(self.program.ops["location"][op])
        return self.to_block(block)

    @cached_property
    def _beside_phi(self) -> dict[int, list[int]]:
        """Row of phis -> the operations that set it through registers, then those that use it so."""
        edges = self.program.edges[self.program.edges["kind"] == EdgeKind.REGISTER]
        beside: dict[int, list[int]] = {}
        for phi_end, op_end in (("to", "from"), ("from", "to")):
            chosen = edges[(edges[f"{phi_end}_kind"] == NodeKind.PHI) & (edges[f"{op_end}_kind"] == NodeKind.OP)]
            for phi, op in zip(chosen[phi_end].tolist(), chosen[op_end].tolist()):
                beside.setdefault(phi, []).append(op)
        return beside

    def _block_of(self, op: int) -> int:
        """The block that has an operation; NONE in tables whose blocks are not in the order of their operations."""
        if op >= self._op_block.size:
            return NONE
        block = int(self._op_block[op])
        row = self.program.blocks[block]
        return block if row["first_op"] <= op < int(row["first_op"]) + int(row["ops"]) else NONE

    def _in_block(self, block: int, op: int, scope: tuple[int, int] | None) -> int:
        """The nearest location of another operation in the block; of the same scope if there is one."""
        first = int(self.program.blocks["first_op"][block])
        others = range(first, first + int(self.program.blocks["ops"][block]))
        places = [int(self.program.ops["location"][other]) for other in sorted(others, key=lambda each: abs(each - op))]
        places = [place for place in places if self.has_line(place)]
        alike = [place for place in places if scope is None or self._scope(place) == scope]
        return next(iter([*alike, *places]), NONE)

    def _around(self, block: int) -> Iterator[int]:
        """Locations from the block outwards."""
        program = self.program
        row = program.blocks[block]
        yield int(row["location"])
        first = int(row["first_op"])
        yield from program.ops["location"][first : first + int(row["ops"])].tolist()
        loop = int(row["loop"])
        while loop != NONE:
            yield int(program.loops["location"][loop])
            loop = int(program.loops["parent"][loop])
        function = int(row["function"])
        if function != NONE:
            yield int(program.functions["location"][function])

    def _scope(self, location: int) -> tuple[int, int] | None:
        """The function in whose text code stands, and where that was inlined; None if it is not known."""
        if location == NONE:
            return None
        row = self.program.locations[location]
        return int(row["function"]), int(row["inlined_at"])
