"""What the exits of loops depend on, and what their recurrences advance by (formats/SPEC.md, table ``causes``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.image import CauseFlag, CauseKind, CauseOf, LoopFlag, PhiKind
from tracekit.program.clocks import clock_calls
from tracekit.program.loop_graph import Indices

if TYPE_CHECKING:
    from tracekit.program.program import Program


class Causes:
    """The causes of a program's exits and recurrences, and which of them a run has to answer for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._rows: dict[CauseOf, Indices] = {}
        self._owners: dict[CauseOf, Indices] = {}  # beside the rows, ascending
        for kind in CauseOf:
            rows = np.flatnonzero(program.causes["of_kind"] == kind)
            self._rows[kind] = rows[np.argsort(program.causes["of"][rows], kind="stable")]
            self._owners[kind] = program.causes["of"][self._rows[kind]]
        self._reads_clock = clock_calls(program)

    def known(self, loop: int) -> bool:
        """Does the image say what the exits of `loop` depend on? Older images do not."""
        return bool(self.program.loops["flags"][loop] & LoopFlag.CAUSES)

    def advances(self, phi: int) -> Indices | None:
        """The loads and calls that have to return the same in all iterations for a RECURRENCE to be a closed form.

        None if it is no closed form whatever they return.
        """
        rows = self._of(CauseOf.PHI, phi)
        return self._needed(rows) if rows.size else None

    def leaving(self, exit_row: int) -> Indices | None:
        """The loads and calls that have to return the same in all iterations for their number to be known ahead.

        That is as far as this exit decides it. None if it is not known ahead whatever they return.
        """
        return self._needed(self._of(CauseOf.EXIT, exit_row))

    def never_taken(self, exit_row: int, counts: Indices) -> bool:
        """Does a run, in which each operation ran `counts` times, show that the loop was never left at an exit?

        Only of exits by ``return`` and ``goto``: what a loop is left for by ``break`` is its result.
        """
        causes = self.program.causes[self._of(CauseOf.EXIT, exit_row)]
        before = counts[causes["index"][causes["kind"] == CauseKind.BEFORE]]
        behind = counts[causes["index"][causes["kind"] == CauseKind.BEHIND]]
        return bool(before.size and np.isin(before, behind).any())

    def behind(self, exit_row: int) -> tuple[list[int], list[int]]:
        """The loads and calls, and the phis of the loop's header, that the decision at an exit depends on."""
        causes = self.program.causes[self._of(CauseOf.EXIT, exit_row)]
        read = np.isin(causes["kind"], (CauseKind.LOAD, CauseKind.CALL))
        return causes["index"][read].tolist(), causes["index"][causes["kind"] == CauseKind.PHI].tolist()

    def _of(self, kind: CauseOf, of: int) -> Indices:
        rows, owners = self._rows[kind], self._owners[kind]
        return rows[np.searchsorted(owners, of) : np.searchsorted(owners, of, side="right")]

    def _needed(self, rows: Indices) -> Indices | None:
        """The operations among causes that must not change; None if another cause does."""
        causes = self.program.causes[rows]
        kinds, index = causes["kind"], causes["index"].astype(np.int64)
        read = np.isin(kinds, (CauseKind.LOAD, CauseKind.CALL))
        if (kinds == CauseKind.OTHER).any() or not (causes["flags"][read] & CauseFlag.FIXED).all():
            return None
        called = self.program.ops["base"][index[kinds == CauseKind.CALL]]
        if self._reads_clock[called].any():  # its arguments and what it loads do not decide what it returns
            return None
        needed = [index[read]]
        for phi in index[kinds == CauseKind.PHI].tolist():
            if self.program.phis["kind"][phi] == PhiKind.INDUCTION:
                continue
            step = self.advances(phi) if self.program.phis["kind"][phi] == PhiKind.RECURRENCE else None
            if step is None:
                return None
            needed.append(step)
        return np.unique(np.concatenate(needed))
