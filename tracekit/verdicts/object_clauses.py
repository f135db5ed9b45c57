"""Clauses for the objects of memory that a loop uses, or what to do where none reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.grouping import Indices
from tracekit.contexts.nodes import ContextKind
from tracekit.counted import counted
from tracekit.dependence.profile import DependenceKind
from tracekit.formats.events import NONE
from tracekit.formats.fortran_sources import is_fortran
from tracekit.formats.image import OpKind, VariableFlag
from tracekit.objects.kinds import ObjectKind
from tracekit.verdicts.clauses import LOCAL, Clauses, NoDirective
from tracekit.verdicts.object_uses import ObjectUses
from tracekit.verdicts.transformations import Transformation
from tracekit.verdicts.variable_clauses import check_class, check_scope
from tracekit.verdicts.verdicts import Judge

if TYPE_CHECKING:
    from tracekit.verdicts.names import VerdictNames

LARGEST_COPY = 1 << 19
"""Bytes of one object that a directive may give each thread a copy of."""

LARGEST_REGISTER = 16
"""Bytes of a variable that a register may hold."""

MOST_PLACES = 3
"""So many places of updates are named."""

ATOMIC = ("+", "*", "&", "|", "^")
"""Operators of updates that `omp atomic` takes in C and C++, in every version."""

ATOMIC_DIRECTIVE = {False: "#pragma omp atomic", True: "!$omp atomic"}
"""By whether the language is Fortran."""

NAMED = (*ATOMIC, "&&", "||", "min", "max")
"""Operators of reductions that a clause has."""


def _is_a_block(name: str) -> bool:
    """Has the optimiser made a global variable of what the source allocates, because it does so once?"""
    return name.endswith(".body")


class ObjectClauses:
    """Names objects in clauses; raises NoDirective for those that no clause reaches."""

    def __init__(self, judge: Judge, names: VerdictNames, uses: ObjectUses) -> None:
        self.judge = judge
        self.program = judge.program
        self.profile = judge.profile
        self.names = names
        self.uses = uses

    def add(self, loop: int, node: int, step: Transformation, clauses: Clauses) -> None:
        """A reduction of, or private copies of, an object of memory."""
        if references := self._references(loop, node, step):
            for name in references:
                clauses.reduce(self.program.text(step.operator), name)
            return
        kind = ObjectKind(int(self.profile.objects["kind"][step.object])) if step.object != NONE else ObjectKind.UNKNOWN
        shown = self.names.object(step.object)
        is_heap = kind == ObjectKind.HEAP or (kind == ObjectKind.GLOBAL and _is_a_block(shown["name"]))
        if is_heap or kind not in (ObjectKind.GLOBAL, ObjectKind.STACK):
            what = f"{self._result(step)} in" if step.kind == "reduction" else "a private copy of"
            memory = "heap memory" if is_heap else "such memory"
            raise NoDirective(f"no clause makes {what} {memory}; {self._by_hand(node, step)}")
        if kind == ObjectKind.STACK and self.uses.is_of_an_inlined_call(loop, step.object):
            return  # an iteration has its own
        name = shown["name"]
        is_temporary = kind == ObjectKind.STACK and not name and not shown["site"]["column"]
        if is_temporary and self._is_declared_inside(loop, shown["site"]):
            return  # the compiler has made it for an expression in the loop's body: the pass has looked
        if kind == ObjectKind.STACK and step.kind != "reduction" and self._is_counter(loop, shown):
            return  # private anyway
        self._check_users_known(loop, node)
        is_of_optimiser = (
            kind == ObjectKind.GLOBAL and "." in name
        )  # a part of a variable, say: no source has such names
        if not name or is_of_optimiser:
            raise NoDirective("memory that it uses has no name: the compiler made it, or it was built without -g")
        if kind == ObjectKind.STACK and (
            self.uses.is_of_a_call_inside(node, step.object) or self._is_declared_inside(loop, shown["site"])
        ):
            return  # private already, whoever uses it
        if kind == ObjectKind.STACK and self.uses.is_of_a_caller(loop, step.object):
            raise NoDirective(
                f"{name} is a variable of {shown['site']['function']}, used here through a pointer, a reference or an "
                f"argument; {self._by_hand(node, step)}"
            )
        if (row := self.judge.source_variables.row_of(loop, step)) != NONE:
            flags = int(self.program.variables["flags"][row])
            check_scope(name, flags)
            if step.kind != "reduction":
                check_class(name, flags)
        self._check_size(kind, step.object, name)
        users = self.uses.users(node, step.object)
        is_lent = kind == ObjectKind.STACK and self._is_lent(loop, step)
        self._check_users_reached(loop, name, users, is_lent)
        if step.kind == "reduction":
            self._check_only_accumulated(loop, step, name, users)
            clauses.reduce(self.program.text(step.operator), name)
            return
        clauses.add(self._copy_clause(loop, node, step, name, users, is_lent), name)

    def _references(self, loop: int, node: int, step: Transformation) -> list[str]:
        """The references of C++ and dummy arguments of Fortran by whose names alone a loop accumulates in an object.

        Empty if anything in the loop, or that it calls, uses the object in another way.
        """
        if step.kind != "reduction" or step.object == NONE:
            return []
        if not self.judge.source_variables.references(loop, step.operator):
            return []
        self._check_users_known(loop, node)
        names = set()
        for op in self.uses.users(node, step.object).tolist():  # others of another operator have a step of their own
            operator = int(self.judge.facts.updates.operator[op]) if self.judge.facts.updates.triple[op] >= 0 else 0
            name = self.uses.reference(op) if operator and self.uses.is_text_of(loop, op) else ""
            if name not in self.judge.source_variables.references(loop, operator):
                return []
            names |= {name} if operator == step.operator else set()
        return sorted(names)

    def _copy_clause(self, loop: int, node: int, step: Transformation, name: str, users: Indices, is_lent: bool) -> str:
        """The clause that gives each thread its copy of an object; raises NoDirective if what is lost is read."""
        if step.kind == "lastprivate" and self._is_always_assigned(loop, step):
            return "lastprivate"
        if self.uses.is_read_after(node, step.object) or self._may_leave_by_register(loop, step):
            if self.uses.is_always_stored(loop, node, step.object, users):
                return "lastprivate"
            if step.kind == "same value":
                raise NoDirective(
                    f"{name} is read after the loop, and not every iteration stores it; accumulate it with || in a "
                    "local variable, or store it atomically: it is the same value each time"
                )
            raise NoDirective(f"{name} is read after the loop, which a private copy is lost to")
        # What functions read of it may be from before the loop.
        is_read = (
            is_lent
            or self.uses.has_other_loads(loop, name, users)
            or self.uses.may_read_parts_from_before(users)
            or self.judge.privates.is_read_before_written(step.object, node)
        )
        return "firstprivate" if is_read else "private"

    def _check_users_reached(self, loop: int, name: str, users: Indices, is_lent: bool) -> None:
        """Raises NoDirective unless each use is by the object's name, in the loop's text or, if lent, by callees."""
        for op in users.tolist():
            if is_lent and self.program.ops["kind"][op] == OpKind.CALL:
                continue  # of the library, which is given the address there
            place = self.names.instruction(op)
            if not self.uses.is_text_of(loop, op):
                if is_lent:
                    continue
                raise NoDirective(
                    f"{name} is also used in {place['function']}, which a clause does not reach "
                    f"({place['file']}:{place['line']})"
                )
            if not self.uses.is_by_name(op, name):
                raise NoDirective(
                    f"{name} is used through a pointer or a reference, or by a longer name, at "
                    f"{place['file']}:{place['line']}"
                )

    def _result(self, step: Transformation) -> str:
        """What a reduction makes, in words."""
        operator = self.program.text(step.operator)
        return {"min": "a minimum", "max": "a maximum"}.get(operator, "a sum" if operator in ATOMIC else "a reduction")

    def _by_hand(self, node: int, step: Transformation) -> str:
        """What to do about memory that no clause reaches."""
        if step.kind != "reduction":
            return "declare or allocate it inside the loop, or one for each thread"
        users = self.uses.users(node, step.object)
        operator = self.program.text(step.operator)
        if operator in NAMED and (self._is_one_number(step.object, users) or self._is_one_place(node, users)):
            return LOCAL
        if operator not in ATOMIC:
            return "let each thread accumulate in memory of its own, and join these behind the loop"
        atomic = ATOMIC_DIRECTIVE[is_fortran(str(self.names.loop(int(self.profile.nodes["loop"][node]))["file"]))]
        stores = users[np.isin(self.program.ops["kind"][users], (OpKind.STORE, OpKind.ATOMIC))]
        rows = (self.names.instruction(op) for op in stores.tolist())
        known = {(row["file"], row["line"], row["column"]) for row in rows if row["line"] and not row.get("nearby")}
        if not known or len(known) > MOST_PLACES:
            return f"put `{atomic}` before each statement that updates it"
        places = ", ".join(f"{file}:{line}:{column}" for file, line, column in sorted(known))
        return f"put `{atomic}` before the statement that updates it ({places})"

    def _is_one_number(self, thing: int, users: Indices) -> bool:
        """Is an object a variable that each of these instructions touches as a whole?"""
        kind = ObjectKind(int(self.profile.objects["kind"][thing])) if thing != NONE else ObjectKind.UNKNOWN
        is_variable = kind in (ObjectKind.STACK, ObjectKind.GLOBAL)
        return is_variable and bool((self.program.ops["size"][users] == self.uses.size(kind, thing)).all())

    def _is_one_place(self, node: int, users: Indices) -> bool:
        """Has each execution of a loop one place only of what these instructions update, once in each iteration?

        Then each hands on to the next iteration alone, and no more often than there are iterations.
        """
        levels = self.profile.levels.carried
        levels = levels[levels["node"] == node]
        rows = self.profile.dependences[levels["dependence"]]
        levels = levels[(rows["kind"] == DependenceKind.RAW) & np.isin(rows["destination"], users)]
        iterations = self.profile.nodes["iterations"][node]
        return bool(levels.size and (levels["max_distance"] == 1).all() and (levels["carried"] <= iterations).all())

    def _is_counter(self, loop: int, shown: dict[str, Any]) -> bool:
        """Is a stack object the loop's counter? It lies in memory where functions that the loop calls read it there."""
        variables = self.program.variables[self.judge.source_variables.rows(loop)]
        counters = variables[variables["flags"] & VariableFlag.INDUCTION != 0]
        places = [(self.program.text(int(row["name"])), self.program.place(int(row["location"]))) for row in counters]
        return any(
            name == shown["name"] and (place["file"], place["line"]) == (shown["site"]["file"], shown["site"]["line"])
            for name, place in places
        )

    def _check_size(self, kind: ObjectKind, thing: int, name: str) -> None:
        """Copies lie on the threads' stacks."""
        size = self.uses.size(kind, thing)
        if size > LARGEST_COPY:
            raise NoDirective(f"a copy of {name} for each thread, {counted(size, 'byte')}, is too large for its stack")

    def _check_only_accumulated(self, loop: int, step: Transformation, name: str, users: Indices) -> None:
        """A clause gives each thread a copy of the whole object, begun empty: all of it has to be accumulated."""
        kind = ObjectKind(int(self.profile.objects["kind"][step.object]))
        if (
            kind == ObjectKind.GLOBAL
            and self.uses.size(kind, step.object) not in self.program.ops["size"][users]
            and self.program.globals["type"][self.profile.objects["site"][step.object]]
        ):
            raise NoDirective(f"{name} is a structure; accumulate in a variable of its own")
        updates = self.judge.facts.updates
        named = [op for op in self.uses.operations(loop) if self.uses.name(op) == name]
        touching = np.union1d(users, np.array(named, np.int64))
        alien = touching[(updates.triple[touching] < 0) | (updates.operator[touching] != step.operator)]
        if alien.size:
            place = self.names.instruction(int(alien[0]))
            raise NoDirective(
                f"the loop also uses elements of {name} that it does not accumulate in "
                f"({place['file']}:{place['line']}); accumulate in a local variable, or atomically"
            )
        if np.unique(self.program.ops[["size", "type_class"]][touching]).size > 1:
            raise NoDirective(f"{name} holds values of different types; accumulate in variables of their own")

    def _check_users_known(self, loop: int, node: int) -> None:
        """Inside a recursion the profile has one context for all that is called, by whichever loop."""
        kind = self.profile.nodes["kind"][node]
        if kind == ContextKind.RECURSIVE_LOOP:
            raise NoDirective("the loop comes back to itself by recursion: it is not known which of its calls use what")
        calls = self.program.ops["base"][self.judge.graphs[loop].calls]
        if kind == ContextKind.RECURSION_LOOP and any(self.program.call_callees(call).size for call in calls.tolist()):
            raise NoDirective("it runs inside a recursion, where it is not known what the functions that it calls use")

    def _is_declared_inside(self, loop: int, site: dict[str, object]) -> bool:
        """Does a stack object's declaration stand in the loop? An object without a place is one of the function's."""
        row = self.names.loop(loop)
        line = site["line"]
        assert isinstance(line, int)
        if not line or line == row["line"] or site.get("nearby"):
            raise NoDirective(
                "it is not known whether a local array or structure, or a temporary of the compiler, is declared "
                "inside the loop"
            )
        return bool(site["file"] == row["file"] and row["line"] < line <= int(self.program.loops["end_line"][loop]))

    def _is_lent(self, loop: int, step: Transformation) -> bool:
        """Do functions use a local variable only through the address that the loop's text gives them?"""
        row = self.judge.source_variables.row_of(loop, step)
        return row != NONE and bool(int(self.program.variables["flags"][row]) & VariableFlag.LENT)

    def _may_leave_by_register(self, loop: int, step: Transformation) -> bool:
        """May the optimiser keep what the loop leaves in a variable in a register, so that no load after it is seen?"""
        row = self.judge.source_variables.row_of(loop, step)
        if row == NONE or not int(self.program.variables["flags"][row]) & VariableFlag.USED_AFTER:
            return False
        kind = ObjectKind(int(self.profile.objects["kind"][step.object]))
        return self.uses.size(kind, step.object) <= LARGEST_REGISTER

    def _is_always_assigned(self, loop: int, step: Transformation) -> bool:
        """Does every iteration assign the variable that a step is about, by its source?"""
        row = self.judge.source_variables.row_of(loop, step)
        return row != NONE and not int(self.program.variables["flags"][row]) & VariableFlag.SOMETIMES
