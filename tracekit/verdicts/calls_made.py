"""Which calls of a loop entered certain functions in the recorded run, at any depth.

By the program's code nearly every call of a large program may enter any function: what it calls reports an error, or
calls through a pointer. The contexts say which functions a call entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import CALLS, PARTLY_BELOW, ContextKind
from tracekit.formats.events import NONE

if TYPE_CHECKING:
    from tracekit.dependence.profile import DependenceProfile


class CallsMade:
    """Of the calls that may enter one of `functions` (functions,), those that did, as far as contexts tell."""

    def __init__(self, profile: DependenceProfile, functions: npt.NDArray[np.bool_]) -> None:
        self.nodes = profile.nodes
        self.functions = functions

    def among(self, ops: Sequence[int], loops: Sequence[int]) -> list[int]:
        """Those of the call operations `ops` of one loop by which its nodes `loops` entered one of the functions.

        `ops` are all that may, by the program's code. Where a node does not hold all that its loop called (inside a
        recursion), a call that may counts as one that did.
        """
        if not ops or np.isin(self.nodes["kind"][list(loops)], PARTLY_BELOW).any():
            return list(ops)
        did = set().union(*(self._through(node) for node in loops))
        return [op for op in ops if op in did]

    def _through(self, node: int) -> set[int]:
        """The calls of a loop's own function through which its node reached one of the functions, or may have."""
        rows, first = self.nodes, {node: NONE}
        found = set()
        for row in range(node + 1, len(rows)):  # in pre-order
            parent = int(rows["parent"][row])
            if parent not in first:
                break
            kind, through = rows["kind"][row], first[parent]
            if kind in CALLS:
                through = int(rows["call"][row]) if through == NONE else through
                if kind == ContextKind.RECURSION or self.functions[rows["function"][row]]:
                    found.add(through)
            first[row] = through
        return found
