"""Variables of which each iteration needs a copy of its own, by the source: the one home of that rule.

A verdict rests on what the program did as it was compiled. The optimiser keeps variables in registers, or deletes
them, and then no dependence shows that the source's iterations share them: the image's table ``variables`` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices
from tracekit.formats.events import NONE
from tracekit.formats.image import LoopFlag, PhiKind, VariableFlag
from tracekit.objects.kinds import ObjectKind
from tracekit.verdicts.transformations import Transformation

if TYPE_CHECKING:
    from tracekit.program.program import Program

BY_RUN = VariableFlag.VARYING | VariableFlag.REACHED
"""Flags of variables of which the source does not show how iterations use them: only the run does."""

HANDED_ON = VariableFlag.SOMETIMES | VariableFlag.USED_AFTER
"""Flags of variables of which an iteration may hand on what one before it has assigned."""

Declared = tuple[str, int] | None
"""File and line of a declaration."""


def copy_kind(flags: int) -> str:
    """What each iteration needs of a variable with these flags (VariableFlag), of a loop with the flag SOURCE.

    ``private`` (as of all memory behind pointers) or ``lastprivate``; nothing if it is the counter, if an iteration may
    read it before it assigns it (what hands that value on is a matter of the verdict), or if only the run can tell.
    """
    if flags & (VariableFlag.INDUCTION | VariableFlag.READ_FIRST | BY_RUN):
        return ""
    is_last = flags & VariableFlag.USED_AFTER and not flags & VariableFlag.POINTEE
    return "lastprivate" if is_last else "private"


class SourceVariables:
    """Adds to a loop's transformations what its source needs beyond them."""

    def __init__(self, program: Program, objects: npt.NDArray[Any]) -> None:
        """`objects`: those of a dependence profile."""
        self.program = program
        self.objects = objects
        self._named: dict[tuple[int, int], tuple[str, Declared]] = {}  # of kind and site of an object

    @cached_property
    def _by_loop(self) -> tuple[Indices, Indices]:
        """The rows of variables sorted by loop, and their loops."""
        loops = self.program.variables["loop"].astype(np.int64)
        order = np.argsort(loops, kind="stable")
        return order, loops[order]

    def rows(self, loop: int) -> list[int]:
        """The rows of variables of a loop, if they are those of its source."""
        if not int(self.program.loops["flags"][loop]) & LoopFlag.SOURCE:
            return []
        order, loops = self._by_loop
        first, last = np.searchsorted(loops, [loop, loop + 1])
        rows: list[int] = order[first:last].tolist()
        return rows

    def complete(self, loop: int, steps: Iterable[Transformation]) -> tuple[Transformation, ...]:
        """The transformations `steps` and those that the source asks for besides, sorted.

        A variable that a step speaks of has no second one; if the step makes it private, its kind is the source's.
        """
        steps = list(steps)
        for row in self.rows(loop):
            if int(self.program.variables["flags"][row]) & VariableFlag.REFERENCE:
                continue  # of memory that the run shows
            kind = copy_kind(int(self.program.variables["flags"][row]))
            of_it = [at for at, step in enumerate(steps) if self._is_about(step, row)]
            if kind and not of_it:
                steps.append(Transformation(kind, NONE, NONE, 0, row))
            elif not of_it and (operator := self._accumulates(row, steps)):
                steps.append(Transformation("reduction", NONE, NONE, operator, row))
            for at in of_it if kind else ():
                if steps[at].kind == "private":
                    steps[at] = steps[at]._replace(kind=kind)
        return tuple(sorted(steps))

    def _accumulates(self, row: int, steps: Iterable[Transformation]) -> int:
        """The operator (offset of its string) by which the source's loop does nothing but accumulate in a variable.

        0 if it does not, or if a reduction of `steps` without a name may be of that variable.
        """
        kind, operator = self.updates.get(row, (0, 0))
        nameless = any(step.phi != NONE and not int(self.program.phis["name"][step.phi]) for step in steps)
        return operator if kind == PhiKind.REDUCTION and not nameless else 0

    def step_of(self, row: int) -> str:
        """What each iteration adds to a variable of the source, if that is a constant: ``+3``; else nothing."""
        kind, operator = self.updates.get(row, (0, 0))
        return self.program.text(operator) if kind == PhiKind.INDUCTION else ""

    def references(self, loop: int, operator: int | None = None) -> list[str]:
        """References and dummy arguments by whose names a loop accumulates, by an operator (offset of its string)."""
        rows = [row for row in self.rows(loop) if int(self.program.variables["flags"][row]) & VariableFlag.REFERENCE]
        return [
            self.program.text(int(self.program.variables["name"][row]))
            for row in rows
            if operator is None or self.program.text(self.updates[row][1]) == self.program.text(operator)
        ]

    @cached_property
    def updates(self) -> dict[int, tuple[int, int]]:
        """Row of variables -> PhiKind, and operator (offset of its string), of what the source does to it."""
        rows = self.program.variable_updates
        return {int(row["variable"]): (int(row["kind"]), int(row["operator"])) for row in rows}

    def row_of(self, loop: int, step: Transformation) -> int:
        """The row of variables that a transformation of a loop is about; NONE if there is none."""
        return next((row for row in self.rows(loop) if self._is_about(step, row)), NONE)

    def _is_about(self, step: Transformation, row: int) -> bool:
        """Is a transformation about a variable? Of what is in a register only the name is known, if that.

        What some iterations only assign, and the loop hands on, is carried: by a reduction without a name if there is
        one.
        """
        if step.variable != NONE:
            return step.variable == row
        name = self.program.text(int(self.program.variables["name"][row]))
        if step.phi != NONE:
            carried = self.program.text(int(self.program.phis["name"][step.phi]))
            return carried == name or (
                not carried and int(self.program.variables["flags"][row]) & HANDED_ON == HANDED_ON
            )
        is_reference = bool(int(self.program.variables["flags"][row]) & VariableFlag.REFERENCE)
        return step.object != NONE and not is_reference and self.is_object(row, step.object)

    def is_object(self, row: int, thing: int) -> bool:
        """Is an object (row of the profile's) a variable (row of variables)?"""
        name = self.program.text(int(self.program.variables["name"][row]))
        kind, site = (int(value) for value in self.objects[thing])
        if (kind, site) not in self._named:
            self._named[kind, site] = self._name_of(kind, site)
        declared = self._declared(int(self.program.variables["location"][row]))
        known, place = self._named[kind, site]
        is_global = bool(int(self.program.variables["flags"][row]) & VariableFlag.GLOBAL)
        return (
            known == name
            and is_global == (kind == ObjectKind.GLOBAL)
            and (place is None or declared is None or place == declared)
        )

    def _name_of(self, kind: int, site: int) -> tuple[str, Declared]:
        """What a variable in memory is called, and where it is declared; no name of other objects."""
        if site == NONE or kind not in (ObjectKind.GLOBAL, ObjectKind.STACK):
            return "", None
        if kind == ObjectKind.GLOBAL:
            row = self.program.globals[site]
            return self.program.text(int(row["source_name"]) or int(row["name"])), self._declared(int(row["location"]))
        op = self.program.ops[site]
        return self.program.text(int(op["name"])), self._declared(int(op["location"]))

    def _declared(self, location: int) -> Declared:
        place = self.program.place(location)
        return (place["file"], place["line"]) if place["line"] else None
