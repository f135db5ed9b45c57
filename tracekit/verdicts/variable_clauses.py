"""Clauses for the variables of the source that a loop assigns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NoReturn

import numpy as np

from tracekit.formats.fortran_sources import is_fortran
from tracekit.formats.image import LoopFlag, OpKind, PhiKind, VariableFlag
from tracekit.verdicts.clauses import LOCAL, Clauses, NoDirective
from tracekit.verdicts.object_uses import ObjectUses
from tracekit.verdicts.source_variables import BY_RUN, HANDED_ON
from tracekit.verdicts.verdicts import Judge, Judgement


def check_scope(name: str, flags: int) -> None:
    """Raises NoDirective for a variable of static storage that clauses cannot name, or must not."""
    if flags & VariableFlag.WITHIN:
        raise NoDirective(
            f"{name} is static, or global, and declared inside the loop, so iterations share it and no clause can "
            "name it; declare it before the loop, or without static"
        )
    if flags & VariableFlag.SHARED:
        raise NoDirective(
            f"{name} is a static member of a class, which threads share by OpenMP's rules: no clause takes it; use a "
            "local variable, and store that behind the loop"
        )


def check_class(name: str, flags: int) -> None:
    """Raises NoDirective for a variable of which clauses can make no copies, or none without code of the program."""
    if flags & VariableFlag.NO_COPY:
        raise NoDirective(
            f"a private copy of {name} would run constructors or assignments of its class, or there are none that it "
            "could run; declare it inside the loop"
        )


class VariableClauses:
    """Names variables in clauses; raises NoDirective where no clause says how iterations use one."""

    def __init__(self, judge: Judge, uses: ObjectUses) -> None:
        self.judge = judge
        self.program = judge.program
        self.uses = uses

    def add(self, loop: int, judgement: Judgement, clauses: Clauses) -> None:
        """The variables from outside that the loop assigns in the source, whatever the optimiser has made of them."""
        copies = {step.variable: step for step in judgement.transformations}
        for row in self.judge.source_variables.rows(loop):
            name = self.program.text(int(self.program.variables["name"][row]))
            flags = int(self.program.variables["flags"][row])
            if flags & VariableFlag.REFERENCE:
                continue  # to memory, of which the run shows how iterations use it
            if flags & VariableFlag.NO_REDUCTION and any(
                name in names for key, names in clauses.names.items() if "reduction" in key
            ):
                self._refuse_type(name)
            if any(name in names for names in clauses.names.values()):
                continue  # the run has shown how iterations use it
            if row in copies and copies[row].kind == "reduction":
                self._check_name(name, flags)
                clauses.reduce(self.program.text(copies[row].operator), name)
            elif row in copies:
                self._check_copy(name, flags)
                clauses.add(copies[row].kind, name)
            elif flags & VariableFlag.INDUCTION:  # the counter is private anyway
                self._check_name(name, flags)
                self._check_counter(loop, row, name, flags)
                if flags & VariableFlag.USED_AFTER:
                    self._check_left_counter(name, flags)
                    clauses.add("lastprivate", name)
            else:
                self._check_uncopied(loop, row, name, flags)

    def phi_name(self, loop: int, phi: int) -> str:
        """The name of the variable whose accumulation a phi is; raises NoDirective if a clause cannot have it."""
        name = self.program.text(int(self.program.phis["name"][phi]))
        if not name:
            parted = VariableFlag.READ_FIRST | VariableFlag.NO_REDUCTION
            for row in self.judge.source_variables.rows(loop):  # a part of it may be in the register
                if int(self.program.variables["flags"][row]) & parted == parted:
                    self._refuse_type(self.program.text(int(self.program.variables["name"][row])))
            if self._accumulates_in_memory(loop):
                raise NoDirective(
                    "it accumulates in an array's element, or in other memory that is no variable of its own, and the "
                    f"optimiser keeps that in a register; {LOCAL}"
                )
            raise NoDirective("the name of a variable that it accumulates in is not known (compile with -g -O0)")
        return name

    def _accumulates_in_memory(self, loop: int) -> bool:
        """Is what a loop hands on in a register without a name memory in the source, for no variable can be it?"""
        rows = self.judge.source_variables.rows(loop)
        no_memory = VariableFlag.INDUCTION | VariableFlag.REFERENCE
        flags = [int(each) for each in self.program.variables["flags"][rows] if not each & no_memory]
        may_be = [each & (BY_RUN | VariableFlag.READ_FIRST) or each & HANDED_ON == HANDED_ON for each in flags]
        return bool(int(self.program.loops["flags"][loop]) & LoopFlag.SOURCE) and not any(may_be)

    def check_accumulator(self, loop: int, name: str) -> None:
        """Raises NoDirective unless the loop's text gets to what it accumulates in by that name only."""
        of_it = [
            int(self.program.variables["flags"][row])
            for row in self.judge.source_variables.rows(loop)
            if self.program.text(int(self.program.variables["name"][row])) == name
        ]
        if not of_it:
            raise NoDirective(
                f"it accumulates in {name} through a pointer or in a called function, which a clause does not reach"
            )
        if any(flags & VariableFlag.CALLEE for flags in of_it):
            raise NoDirective(f"a function that it calls uses {name}, too, which no clause reaches")
        if any(flags & VariableFlag.REACHED and not flags & VariableFlag.LENT for flags in of_it):
            raise NoDirective(f"it may use {name} through a pointer, which a clause does not reach")
        for flags in of_it:
            self._check_name(name, flags)

    def check_order(self, loop: int, clauses: Clauses) -> None:
        """Raises NoDirective for extremes in another order than that of the variable's type, which clauses have."""
        for row in self.judge.source_variables.rows(loop):
            name = self.program.text(int(self.program.variables["name"][row]))
            extremes = {*clauses.names.get("reduction(min", ()), *clauses.names.get("reduction(max", ())}
            if name in extremes and int(self.program.variables["flags"][row]) & VariableFlag.OTHER_SIGN:
                raise NoDirective(
                    f"it compares {name} with another signedness than its type has, so that a thread's copy does not "
                    "begin with what is least there; convert what it is compared with to its type"
                )

    def check_pointee(self, loop: int, row: int, sums: Collection[str]) -> None:
        """Raises NoDirective for memory behind a pointer that the run shows nothing of.

        `sums`: names of reductions through registers, "" of one that has none, which may be that memory.
        """
        variable = self.program.variables[row]
        flags = int(variable["flags"])
        if not flags & VariableFlag.POINTEE:
            return
        place = self.program.place(int(variable["location"]))
        nameless = "an argument, or what a pointer leads to" if is_fortran(place["file"]) else "what a pointer leads to"
        name = self.program.text(int(variable["name"])) or nameless
        what = f"{name} ({place['file']}:{place['line']})"
        if name in sums and name in self.judge.source_variables.references(loop):
            return
        if flags & VariableFlag.READ_FIRST and "" in sums:
            raise NoDirective(f"it accumulates in {what}, which is memory of others; {LOCAL}")
        if flags & VariableFlag.READ_FIRST:
            raise NoDirective(f"an iteration may read {what} before it assigns it")
        raise NoDirective(
            f"each iteration assigns {what}, of which no clause makes a copy; use a variable that the loop declares"
        )

    def _refuse_type(self, name: str) -> NoReturn:
        raise NoDirective(
            f"OpenMP's reductions do not take {name}, which is no plain number of at most 8 bytes (clang's code for "
            "wider ones needs another library); accumulate in one, or declare a reduction for its type"
        )

    def _check_name(self, name: str, flags: int) -> None:
        """Raises NoDirective if a clause cannot name a variable by the name that the loop's text has for it."""
        check_scope(name, flags)
        if flags & VariableFlag.RENAMED:
            raise NoDirective(
                f"it has another name for {name}, a reference, a pointer or one with its scope, which no clause has"
            )

    def _check_counter(self, loop: int, row: int, name: str, flags: int) -> None:
        """Raises NoDirective if the loop's body may assign its counter through a pointer.

        Of a WATCHED one in memory the verdict has told. Of one in a register the compiler shows that it found no other
        step than the head's, if that is how all that advances with the loop does; of one whose address is taken
        outside of the loop, too, it may have found reads of it by a pointer, which lead to no thread's own.
        """
        if not flags & VariableFlag.REACHED or flags & VariableFlag.LENT:
            return
        loads, _ = self.judge.counters.by_name(loop, name)
        phis = self.program.phis[self.judge.graphs.header_phis(loop, PhiKind.INDUCTION)]
        steps = [self.program.text(int(phi["operator"])) for phi in phis]
        is_known = flags & VariableFlag.WATCHED if loads.size else steps == [self.judge.source_variables.step_of(row)]
        if flags & VariableFlag.ELSEWHERE and not loads.size:
            raise NoDirective(
                f"the address of the counter {name} is taken outside of the loop, too, and the optimised program does "
                "not show whether the loop reads it through a pointer; build with -O0, or count in another variable"
            )
        if not is_known:
            raise NoDirective(
                f"its body may assign the counter {name} through a pointer or in a called function, and the optimised "
                "program does not show that; build with -O0"
            )

    @staticmethod
    def _check_left_counter(name: str, flags: int) -> None:
        """Raises NoDirective if a loop that leaves its counter to what follows may run no iteration.

        The serial loop has set the counter then; clang's code for ``lastprivate`` has not (gcc's has), and OpenMP
        promises nothing.
        """
        if flags & VariableFlag.SOMETIMES:
            raise NoDirective(
                f"the counter {name} may be read after the loop, and `lastprivate` does not set it if no iteration "
                f"runs; count in a variable that the loop alone uses, and compute {name} behind it"
            )

    def _check_copy(self, name: str, flags: int) -> None:
        """Raises NoDirective if a copy of a variable for each iteration is not what a clause makes."""
        self._check_name(name, flags)
        check_class(name, flags)
        if flags & VariableFlag.CALLEE:
            raise NoDirective(f"a function that it calls uses {name}, too, which no clause reaches")
        if flags & VariableFlag.USED_AFTER and flags & VariableFlag.SOMETIMES:
            raise NoDirective(f"{name} may be read after the loop, and not every iteration assigns it")

    def _check_uncopied(self, loop: int, row: int, name: str, flags: int) -> None:
        """Raises NoDirective unless a variable of which the verdict says nothing needs no clause."""
        if flags & BY_RUN:
            if not self._is_in_memory(loop, name, flags):
                raise NoDirective(
                    f"the optimiser has kept {name} out of memory, so the run does not show how iterations use it; "
                    "build with -O0"
                )
            return  # the run has shown that iterations do not get into each other's way there
        if flags & VariableFlag.CALLEE:
            raise NoDirective(f"a function that it calls uses {name}, too, which no clause reaches")
        self._check_advance(loop, row, name)
        raise NoDirective(f"an iteration may read {name} before it assigns it")

    def _check_advance(self, loop: int, row: int, name: str) -> None:
        """Raises NoDirective with the closed form of a variable that advances beside the counter."""
        phis = self.program.phis[self.judge.graphs.header_phis(loop, PhiKind.INDUCTION)]
        steps = {self.program.text(int(phi["operator"])) for phi in phis if self.program.text(int(phi["name"])) == name}
        steps = (steps | {self.judge.source_variables.step_of(row)}) - {""}
        if len(steps) == 1:
            step = steps.pop()
            raise NoDirective(
                f"an iteration may read {name} before it assigns it; {name} advances by {step.lstrip('+')} in each "
                f"iteration: compute it from the counter, in iteration k, from 0 on, as its value before the loop "
                f"{step[0]} {step[1:]} * k"
            )

    def _is_in_memory(self, loop: int, name: str, flags: int) -> bool:
        """Is the variable in memory, as the program was compiled, so that the run shows how the loop uses it?

        An array of which the loop uses different parts is, if some access in its text is known to be to that array: the
        optimiser may keep the one element in a register that all iterations use. Not across a call that accesses it.
        """
        if flags & VariableFlag.VARYING and all(self.uses.name(op) != name for op in self.uses.operations(loop)):
            return bool(flags & VariableFlag.CALLEE) and self._is_accessed_in_calls(loop, name)
        if flags & VariableFlag.GLOBAL:
            return name in self._global_names
        ops = self.uses.operations_of(int(self.program.loops["function"][loop]))
        rows = self.program.ops[ops.start : ops.stop]
        names: list[int] = rows["name"][rows["kind"] == OpKind.STACK_ALLOC].tolist()
        return any(self.program.text(offset) == name for offset in names)

    def _is_accessed_in_calls(self, loop: int, name: str) -> bool:
        """Does a function that the loop calls, and that is not inlined into it, have an access to the variable?"""
        called = self._called_from(self.uses.operations(loop))
        seen: set[int] = set()
        while called - seen:
            function = (called - seen).pop()
            seen.add(function)
            ops = self.uses.operations_of(function)
            if any(self.uses.name(op) == name for op in ops):
                return True
            called |= self._called_from(ops)
        return False

    def _called_from(self, ops: Iterable[int]) -> set[int]:
        """The functions that these operations enter."""
        kinds, calls = self.program.ops["kind"], self.program.ops["base"]
        entered = [self.program.call_callees(int(calls[op])).tolist() for op in ops if kinds[op] == OpKind.CALL]
        return {function for functions in entered for function in functions}

    @cached_property
    def _global_names(self) -> frozenset[str]:
        offsets: list[int] = np.unique(self.program.globals["source_name"]).tolist()
        return frozenset(map(self.program.text, offsets))

    def add_optimised(self, loop: int, clauses: Clauses) -> None:
        """Local variables from outside that the loop assigns, of an image that knows the optimised program only."""
        rows = self.program.variables[self.program.variables["loop"] == loop]
        for row in rows:
            flags = int(row["flags"])
            if flags & VariableFlag.USED_AFTER:
                clauses.add("lastprivate", self.program.text(int(row["name"])))
            elif not flags & VariableFlag.INDUCTION:  # the counter is private anyway
                clauses.add("private", self.program.text(int(row["name"])))
