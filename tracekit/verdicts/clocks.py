"""Which calls of a loop read a clock in the recorded run.

By the program's code nearly every call of a large program may: what it calls reports an error with the time, or calls
through a pointer. The contexts say which functions a call entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import CALLS, PARTLY_BELOW, ContextKind
from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag

if TYPE_CHECKING:
    from tracekit.dependence.profile import DependenceProfile
    from tracekit.program.program import Program


class ClockCalls:
    """Of the calls that may read a clock, those that did, as far as contexts tell."""

    def __init__(self, program: Program, profile: DependenceProfile) -> None:
        self.program = program
        self.nodes = profile.nodes

    def among(self, ops: Sequence[int], loops: Sequence[int]) -> list[int]:
        """Those of the call operations `ops` of one loop that read a clock in any of its nodes `loops`.

        `ops` are all that may, by the program's code. Where a node does not hold all that its loop called (inside a
        recursion), a call that may counts as one that did.
        """
        if not ops or np.isin(self.nodes["kind"][list(loops)], PARTLY_BELOW).any():
            return list(ops)
        flags = self.program.calls["flags"][self.program.ops["base"][list(ops)]]
        itself = {op for op, flag in zip(ops, flags) if flag & CallFlag.CLOCK}
        did = itself.union(*(self._through(node) for node in loops))
        return [op for op in ops if op in did]

    @cached_property
    def _reads_itself(self) -> npt.NDArray[np.bool_]:
        """For each function whether a call in its own text reads a clock: (functions,)."""
        calls = self.program.calls
        blocks = calls["block"][calls["flags"] & int(CallFlag.CLOCK) != 0]
        reads = np.zeros(len(self.program.functions), np.bool_)
        reads[self.program.blocks["function"][blocks]] = True
        return reads

    def _through(self, node: int) -> set[int]:
        """The calls of a loop's own function through which its node reached a function that reads a clock, or may."""
        rows, first = self.nodes, {node: NONE}
        found = set()
        for row in range(node + 1, len(rows)):  # in pre-order
            parent = int(rows["parent"][row])
            if parent not in first:
                break
            kind, through = rows["kind"][row], first[parent]
            if kind in CALLS:
                through = int(rows["call"][row]) if through == NONE else through
                if kind == ContextKind.RECURSION or self._reads_itself[rows["function"][row]]:
                    found.add(through)
            first[row] = through
        return found
