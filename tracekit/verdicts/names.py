"""Transformations and blockers of a loop as the JSON of a profile shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from tracekit.contexts.names import Json
from tracekit.dependence.names import ProfileNames
from tracekit.dependence.rows import instruction_key
from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag, PhiKind, VariableFlag
from tracekit.program.causes import Causes
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.transformations import Transformation
from tracekit.verdicts.verdicts import Blocker, Judgement


class VerdictNames(ProfileNames):
    """The names of a dependence profile, and of what its verdicts speak of."""

    def source_loop(self, loop: int) -> Json:
        """A loop as it stands in the source (Program.source_loop); made once, so treat it as read-only."""
        if loop not in self._source_loops:
            self._source_loops[loop] = self.program.source_loop(loop)
        return self._source_loops[loop]

    @cached_property
    def _source_loops(self) -> dict[int, Json]:
        return {}

    def transformation(self, transformation: Transformation) -> Json:
        """One transformation: what to do, with which object, by which operator."""
        if transformation.variable != NONE:
            subject = self._variable(transformation.variable)
        elif transformation.phi != NONE:
            subject = self.phi(transformation.phi)
        else:
            subject = self.object(transformation.object)
        return {
            "kind": transformation.kind,
            "object": subject,
            "operator": self.program.text(transformation.operator) if transformation.kind == "reduction" else None,
        }

    def _variable(self, row: int) -> Json:
        """A variable of the source that the optimiser may have put anywhere; a local one with its declaration's place.

        A global one goes by the same name as in memory, so that profiles of two levels of optimisation agree.
        """
        variable = self.program.variables[row]
        name = self.program.text(int(variable["name"]))
        if int(variable["flags"]) & VariableFlag.GLOBAL:
            return {"kind": "global", "name": name}
        return {"kind": "register", "name": name, **self.program.place(int(variable["location"]))}

    def rests_on(self, judgements: Iterable[Judgement]) -> list[Json]:
        """The loads and calls that no iteration changes: the verdict would not hold if one did."""
        ops = sorted({op for judgement in judgements for op in judgement.rests_on})
        return sorted(map(self._read, ops), key=instruction_key)

    def _read(self, op: int) -> Json:
        """A load or call, and the name of the variable that it reads, if it has one."""
        return {**self.instruction(op), "name": self.program.text(int(self.program.ops["name"][op]))}

    def _depends_on(self, exit_row: int) -> list[Json] | None:
        """The loads, calls and variables that decide whether a loop is left at an exit; inductions are left out.

        None if the image does not say.
        """
        loop = int(self.program.blocks["loop"][self.program.loop_exits["source"][exit_row]])
        if loop == NONE or not self._causes.known(loop):
            return None
        ops, phis = self._causes.behind(exit_row)
        reads = sorted(map(self._read, ops), key=instruction_key)
        return [*reads, *(self.phi(phi) for phi in phis if self.program.phis["kind"][phi] != PhiKind.INDUCTION)]

    @cached_property
    def _causes(self) -> Causes:
        return Causes(self.program)

    def not_taken(self, judgements: Iterable[Judgement]) -> list[Json]:
        """The exits, by return or goto, at which the run never left the loop: the verdict would not hold if one did."""
        rows = {row for judgement in judgements for row in judgement.not_taken}
        exits = {(exit_["file"], exit_["line"], exit_["column"]): exit_ for exit_ in map(self._exit, sorted(rows))}
        return [exits[place] for place in sorted(exits)]

    def _exit(self, exit_row: int) -> Json:
        return {"kind": "exit", **self.program.exit_place(exit_row), "depends_on": self._depends_on(exit_row)}

    def blocker(self, blocker: Blocker) -> Json:
        """One obstacle: an instruction, a variable or an exit as source; a destination for dependences only."""
        if blocker.reason is Reason.RECURRENCE:
            source = self.phi(blocker.source)
            if step := self.program.text(int(self.program.phis["operator"][blocker.source])):
                source["advances"] = step
        elif blocker.reason is Reason.EXIT:
            source = self._exit(blocker.source)
        else:
            source = self.instruction(blocker.source)
        destination = self.instruction(blocker.destination) if blocker.destination != NONE else None
        return {"reason": blocker.reason.value, "source": source, "destination": destination}

    def callee(self, op: int) -> str:
        """What a call names: a function, or that it goes through a pointer, or is inline assembly."""
        call = int(self.program.ops["base"][op])
        is_assembly = self.program.calls["flags"][call] & int(CallFlag.INLINE_ASM)
        return self.program.callee_name(call) or ("inline assembly" if is_assembly else "a function through a pointer")

    def entered(self, op: int) -> str:
        """The one function that a call may enter, or else what it names."""
        functions = self.program.call_callees(int(self.program.ops["base"][op]))
        return self.program.function_name(int(functions[0])) if functions.size == 1 else self.callee(op)


_OF_A_COPY = frozenset({"id", "inlined_at"})
"""What tells copies of one instruction of the source apart."""


_PLACE = frozenset({"file", "line", "column", "nearby"})


def as_in_source(value: Any) -> Any:
    """A JSON value without what differs between the copies that inlining made of one text.

    Of a variable whose place is only guessed, from what code is nearest, that is where it is, too.
    """
    if isinstance(value, Mapping):
        if value.get("nearby") and value.get("name"):
            value = {name: part for name, part in value.items() if name not in _PLACE}
        return {name: as_in_source(part) for name, part in value.items() if name not in _OF_A_COPY}
    if isinstance(value, list):
        return [as_in_source(part) for part in value]
    return value
