"""What the program says of its loops, whatever a run did: what all profiles of the program are judged by."""

from __future__ import annotations

from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracekit.formats.events import NONE
from tracekit.formats.image import PhiKind
from tracekit.program.causes import Causes
from tracekit.program.clocks import clock_calls
from tracekit.program.loop_graph import LoopGraphs
from tracekit.program.reach import calls_that_reach
from tracekit.program.thread_locals import uses_thread_locals
from tracekit.verdicts.transformations import Transformation, Updates

if TYPE_CHECKING:
    from tracekit.program.program import Program


class Reason(str, Enum):
    """Why a loop is not doall."""

    DEPENDENCE = "dependence"  # source, destination: instructions
    RECURRENCE = "recurrence"  # source: row of phis
    EXIT = "exit"  # source: row of loop_exits
    EXTERNAL = "external"  # source: instruction of the call


class LoopFacts:
    """A loop may stand in thousands of contexts, so every answer is kept."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graphs = LoopGraphs(program)
        self.causes = Causes(program)
        self.needed = lru_cache(maxsize=None)(self._needed)
        self.read = lru_cache(maxsize=None)(self._read)
        self.reductions = lru_cache(maxsize=None)(self._reductions)
        self.calls = lru_cache(maxsize=None)(self._calls)
        self.clocks = lru_cache(maxsize=None)(self._clocks)
        self.of_thread = lru_cache(maxsize=None)(self._of_thread)

    @cached_property
    def _reads_clock(self) -> npt.NDArray[np.bool_]:
        return clock_calls(self.program)

    @cached_property
    def _reaches_thread_locals(self) -> npt.NDArray[np.bool_]:
        return calls_that_reach(self.program, uses_thread_locals(self.program))

    @cached_property
    def updates(self) -> Updates:
        """Its updates of memory."""
        return Updates(self.program)

    def _calls(self, loop: int) -> frozenset[int]:
        """The call operations of a loop."""
        return frozenset(self.graphs[loop].calls.tolist())

    def _clocks(self, loop: int) -> tuple[int, ...]:
        """The call operations of a loop that read a clock, themselves or in what they may enter."""
        calls = self.graphs[loop].calls
        return tuple(calls[self._reads_clock[self.program.ops["base"][calls]]].tolist())

    def _of_thread(self, loop: int) -> tuple[int, ...]:
        """The call operations of a loop that may enter a function which uses thread-local variables, at any depth."""
        calls = self.graphs[loop].calls
        return tuple(calls[self._reaches_thread_locals[self.program.ops["base"][calls]]].tolist())

    def _reductions(self, loop: int) -> frozenset[Transformation]:
        """Those of a loop that registers hold."""
        phis, operators = self.graphs.header_phis(loop, PhiKind.REDUCTION), self.program.phis["operator"]
        return frozenset(Transformation("reduction", phi, NONE, int(operators[phi])) for phi in phis.tolist())

    def _needed(self, loop: int) -> list[tuple[Reason, int, frozenset[int] | None]]:
        """What has to return the same in all iterations, for each recurrence and exit; None: nothing helps."""
        recurrences = self.graphs.header_phis(loop, PhiKind.RECURRENCE).tolist()
        needed = [(Reason.RECURRENCE, phi, self.causes.advances(phi)) for phi in recurrences]
        if self.causes.known(loop):
            needed += [(Reason.EXIT, row, self.causes.leaving(row)) for row in range(*self.graphs.exit_range(loop))]
        else:
            needed += [(Reason.EXIT, row, None) for row in self.graphs.blocking_exits(loop).tolist()]
        return needed

    def _read(self, loop: int) -> frozenset[int]:
        """The loads and calls that any of its recurrences and exits needs."""
        return frozenset().union(*(ops for _, _, ops in self.needed(loop) if ops is not None))
