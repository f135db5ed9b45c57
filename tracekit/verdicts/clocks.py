"""Which calls of a loop read a clock in the recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracekit.program.clocks import own_clock_calls
from tracekit.program.reach import functions_with
from tracekit.verdicts.calls_made import CallsMade

if TYPE_CHECKING:
    from tracekit.verdicts.verdicts import Judge


class ClockCalls:
    """Of the calls that may read a clock, those that did, as far as contexts tell."""

    def __init__(self, judge: Judge) -> None:
        self.program = judge.program
        self._itself = own_clock_calls(judge.program)
        self._made = CallsMade(judge, functions_with(judge.program, self._itself))

    def among(self, ops: Sequence[int], loops: Sequence[int]) -> list[int]:
        """Those of the call operations `ops` of one loop that read a clock in any of its nodes `loops`.

        `ops` are all that may, by the program's code.
        """
        did = set(self._made.among(ops, loops))
        return [op for op in ops if op in did or self._itself[self.program.ops["base"][op]]]
