"""Which calls of a loop entered certain functions in the recorded run, at any depth.

By the program's code nearly every call of a large program may enter any function: what it calls reports an error, or
calls through a pointer. The contexts say which functions a call entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import CALLS, PARTLY_BELOW, ContextKind
from tracekit.contexts.subtrees import count_around

if TYPE_CHECKING:
    from tracekit.verdicts.verdicts import Judge


class CallsMade:
    """Of the calls that may enter one of `functions` (functions,), those that did, as far as contexts tell."""

    def __init__(self, judge: Judge, functions: npt.NDArray[np.bool_]) -> None:
        self.nodes = judge.profile.nodes
        self.functions = functions
        self._ends = judge.subtree_ends

    def among(self, ops: Sequence[int], loops: Sequence[int]) -> list[int]:
        """Those of the call operations `ops` of one loop by which its nodes `loops` entered one of the functions.

        `ops` are all that may, by the program's code. Where a node does not hold all that its loop called (inside a
        recursion), a call that may counts as one that did.
        """
        if not ops or np.isin(self.nodes["kind"][list(loops)], PARTLY_BELOW).any():
            return list(ops)
        did = set().union(*(self._entering(node) for node in loops))
        return [op for op in ops if op in did]

    def _entering(self, node: int) -> list[int]:
        """The calls of a loop's own function through which its node reached one of the functions, or may have."""
        own = slice(node, self._ends[node])
        first = np.flatnonzero(self._is_call[own] & (self._calls_around[own] == self._calls_around[node] + 1)) + node
        reached = self._reached_before[self._ends[first]] > self._reached_before[first]
        calls: list[int] = self.nodes["call"][first[reached]].tolist()
        return calls

    @cached_property
    def _is_call(self) -> npt.NDArray[np.bool_]:
        return np.isin(self.nodes["kind"], CALLS)

    @cached_property
    def _calls_around(self) -> npt.NDArray[np.int64]:
        """Per node: how many calls are open there, its own included."""
        return count_around(self._ends, self._is_call)

    @cached_property
    def _reached_before(self) -> npt.NDArray[np.int64]:
        """Per node, and behind the last: in how many calls before it one of the functions was entered, or may be."""
        kinds = self.nodes["kind"]
        known = self._is_call & (kinds != ContextKind.RECURSION)
        entered = kinds == ContextKind.RECURSION
        entered[known] = self.functions[self.nodes["function"][known]]
        return np.cumsum([0, *entered])
