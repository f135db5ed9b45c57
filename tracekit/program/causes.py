"""What the exits of loops depend on, and what their recurrences advance by (formats/SPEC.md, table ``causes``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.formats.image import CauseFlag, CauseKind, CauseOf, LoopFlag, PhiKind
from tracekit.program.clocks import clock_calls
from tracekit.program.loop_graph import Indices

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = npt.NDArray[Any]


class Causes:
    """The causes of a program's exits and recurrences, and which of them a run has to answer for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._rows: dict[CauseOf, Rows] = {}
        self._first: dict[CauseOf, Indices] = {}  # where those of each row that has causes begin, and the last end
        for kind, owners in ((CauseOf.EXIT, program.loop_exits), (CauseOf.PHI, program.phis)):
            rows = program.causes[program.causes["of_kind"] == kind]
            self._rows[kind] = rows[np.argsort(rows["of"], kind="stable")]
            self._first[kind] = np.searchsorted(self._rows[kind]["of"], np.arange(len(owners) + 1))
        self._reads_clock = clock_calls(program)

    def known(self, loop: int) -> bool:
        """Does the image say what the exits of `loop` depend on? Older images do not."""
        return bool(self.program.loops["flags"][loop] & LoopFlag.CAUSES)

    def advances(self, phi: int) -> frozenset[int] | None:
        """The loads and calls that have to return the same in all iterations for a RECURRENCE to be a closed form.

        None if it is no closed form whatever they return.
        """
        causes = self._of(CauseOf.PHI, phi)
        return self._needed(causes) if causes.size else None

    def leaving(self, exit_row: int) -> frozenset[int] | None:
        """The loads and calls that have to return the same in all iterations for their number to be known ahead.

        That is as far as this exit decides it. None if it is not known ahead whatever they return.
        """
        return self._needed(self._of(CauseOf.EXIT, exit_row))

    def never_taken(self, exit_row: int, counts: Indices) -> bool:
        """Does a run, in which each operation ran `counts` times, show that the loop was never left at an exit?

        Only of exits by ``return`` and ``goto``: what a loop is left for by ``break`` is its result.
        """
        causes = self._of(CauseOf.EXIT, exit_row)
        before = counts[causes["index"][causes["kind"] == CauseKind.BEFORE]]
        behind = counts[causes["index"][causes["kind"] == CauseKind.BEHIND]]
        return bool(before.size and np.isin(before, behind).any())

    def behind(self, exit_row: int) -> tuple[list[int], list[int]]:
        """The loads and calls, and the phis of the loop's header, that the decision at an exit depends on."""
        causes = self._of(CauseOf.EXIT, exit_row)
        read = np.isin(causes["kind"], (CauseKind.LOAD, CauseKind.CALL))
        return causes["index"][read].tolist(), causes["index"][causes["kind"] == CauseKind.PHI].tolist()

    def _of(self, kind: CauseOf, of: int) -> Rows:
        """The causes of an exit, or of a phi."""
        first = self._first[kind]
        return self._rows[kind][first[of] : first[of + 1]]

    def _needed(self, causes: Rows) -> frozenset[int] | None:
        """The operations among causes that must not change; None if another cause does."""
        needed: set[int] = set()
        phis = self.program.phis["kind"]
        for kind, flags, index in causes[["kind", "flags", "index"]].tolist():  # mostly a few
            if kind == CauseKind.OTHER:
                return None
            if kind in (CauseKind.LOAD, CauseKind.CALL):
                # What a clock returns is not decided by its arguments and what it loads.
                if not flags & CauseFlag.FIXED or (kind == CauseKind.CALL and self._is_clock(index)):
                    return None
                needed.add(index)
            elif kind == CauseKind.PHI and phis[index] != PhiKind.INDUCTION:
                step = self.advances(index) if phis[index] == PhiKind.RECURRENCE else None
                if step is None:
                    return None
                needed |= step
        return frozenset(needed)

    def _is_clock(self, call: int) -> bool:
        return bool(self._reads_clock[self.program.ops["base"][call]])
