"""The OpenMP directive that a loop's verdict comes to, where everything that it has to name is known.

A directive is given only if inserting it cannot make a variable shared that has to be private, or leave one behind with
another value; where that is not known, the reason is given instead.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tracekit.containers.grouping import Indices
from tracekit.contexts.nodes import ContextKind
from tracekit.dependence.profile import DependenceKind
from tracekit.formats.events import NONE
from tracekit.formats.image import LoopFlag, OpKind, PhiKind, TypeClass, VariableFlag
from tracekit.objects.kinds import ObjectKind
from tracekit.verdicts.object_uses import ObjectUses
from tracekit.verdicts.source_variables import BY_RUN, HANDED_ON
from tracekit.verdicts.transformations import Transformation
from tracekit.verdicts.verdicts import Judge, Judgement

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

LOCAL = "accumulate in a local variable, which a `reduction` clause can name, and store that behind the loop"
"""What to do about a sum in one place of memory that no clause names."""

LANGUAGES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".def", ".tcc")
"""How names of files end in which a pragma means something."""


NO_CLAUSE = {
    "argmin": "{name} is what belongs to a minimum: that takes a reduction that the program declares",
    "argmax": "{name} is what belongs to a maximum: that takes a reduction that the program declares",
    "=": "iterations set {name} to one value or leave it alone, which no clause says; write an `or` of a truth value",
}
"""Why a reduction's operator has no clause."""


class NoDirective(Exception):  # noqa: N818 - it is an answer
    """Why no directive can be given, in words for the user."""


class Clauses(NamedTuple):
    """What stands behind ``parallel for``: clause, e.g. ``reduction(+`` -> names."""

    names: dict[str, list[str]]

    def add(self, clause: str, name: str) -> None:
        """Name a variable in a clause, once."""
        if any(name in names for names in self.names.values()):
            if name in self.names.get(clause, ()):
                return
            raise NoDirective(f"two variables called {name} are meant")
        self.names.setdefault(clause, []).append(name)

    def text(self) -> str:
        """The whole directive."""
        clauses = [
            f" {clause}{':' if '(' in clause else '('}{', '.join(sorted(names))})"
            for clause, names in sorted(self.names.items())
        ]
        return "#pragma omp parallel for" + "".join(clauses)


class Directives:
    """Makes directives for the loops of one profile."""

    def __init__(self, judge: Judge, names: VerdictNames) -> None:
        self.judge = judge
        self.program = judge.program
        self.profile = judge.profile
        self.names = names
        self.uses = ObjectUses(judge)

    def directive(self, judgements: Collection[Judgement]) -> str:
        """One directive for a loop's copies in all its contexts. Raises NoDirective with the reason."""
        made = {self._of(judgement).text() for judgement in judgements}
        if len(made) > 1:
            raise NoDirective("its contexts need different clauses")
        return made.pop()

    def accumulates_floats(self, judgements: Collection[Judgement]) -> bool:
        """Does a reduction by + or * of floating-point numbers go on?"""
        return any(
            self._is_of_floats(judgement.node, step)
            for judgement in judgements
            for step in judgement.transformations
            if step.kind == "reduction" and self.program.text(step.operator) in ("+", "*")
        )

    def _is_of_floats(self, node: int, step: Transformation) -> bool:
        """Does a reduction accumulate floating-point numbers? Where its variable's type is not known, accesses tell."""
        loop = int(self.profile.nodes["loop"][node])
        row = self.judge.source_variables.row_of(loop, step)
        if row != NONE and int(self.program.variables["flags"][row]) & VariableFlag.WHOLE:
            return False
        if step.object != NONE:
            ops = self.uses.users(node, step.object)
            ops = ops[self.judge.facts.updates.operator[ops] == step.operator]
        else:
            graph = self.judge.graphs[loop]
            ops = graph.nodes[graph.nodes < len(self.program.ops)]
        return bool((self.program.ops["type_class"][ops] == TypeClass.FLOAT).any())

    def _of(self, judgement: Judgement) -> Clauses:
        loop = int(self.profile.nodes["loop"][judgement.node])
        clauses = Clauses({})
        in_source = bool(int(self.program.loops["flags"][loop]) & LoopFlag.SOURCE)
        self._check_place(loop, is_summed=any(map(self._is_of_memory, judgement.transformations)))
        if in_source:
            self._check_source_head(loop)
        else:
            self._check_shape(loop)
            self._variables(loop, clauses)
        for step in judgement.transformations:
            if step.variable != NONE:
                continue  # with the other variables of the source
            if step.phi != NONE:
                name = self._phi_name(loop, step.phi)
                if in_source:
                    self._check_accumulator(loop, name)
                self._reduce(name, step, clauses)
            else:
                self._object(loop, judgement.node, step, clauses)
        if in_source:
            self._source_variables(loop, judgement, clauses)
            self._check_order(loop, clauses)
        return clauses

    def _check_place(self, loop: int, *, is_summed: bool) -> None:
        if not str(self.names.loop(loop)["file"]).endswith(LANGUAGES):
            raise NoDirective("it stands in no file of C or C++")
        if int(self.program.loops["flags"][loop]) & LoopFlag.SIMD:
            raise NoDirective("`omp simd` stands before it; `omp parallel for simd` there gives threads a part each")
        for row in self.judge.source_variables.rows(loop):
            self._check_pointee(row, is_summed=is_summed)
        if int(self.program.loops["flags"][loop]) & LoopFlag.LEAVES_VALUES:
            raise NoDirective("it leaves a value behind that no variable is known for")

    def _check_source_head(self, loop: int) -> None:
        if not int(self.program.loops["flags"][loop]) & LoopFlag.FOR_STATEMENT:
            raise NoDirective(
                "OpenMP wants a for statement whose head sets, tests and steps one local counter, "
                "with no other way out; write it as one"
            )
        if int(self.program.loops["flags"][loop]) & LoopFlag.PRAGMA:
            raise NoDirective(
                "a pragma about the loop stands before it (such as `#pragma unroll`), which compilers do not take "
                "beside OpenMP's; take it out first"
            )
        if int(self.program.loops["flags"][loop]) & LoopFlag.BINDING:
            raise NoDirective(
                "it uses a structured binding from outside, which OpenMP compilers (clang) do not take into a parallel "
                "region; give its parts names by variables or references of their own"
            )

    def _check_shape(self, loop: int) -> None:
        """What stands for the head in an image that knows the optimised program only."""
        flags = int(self.program.loops["flags"][loop])
        if not flags & LoopFlag.FOR_STATEMENT:
            raise NoDirective(
                "it is not known to be a for statement that counts in its head alone; write it as one "
                "(and compile with -g)"
            )
        inductions = self.judge.graphs.header_phis(loop, PhiKind.INDUCTION)
        if not flags & LoopFlag.COUNTABLE or not inductions.size:
            raise NoDirective(
                "the optimised program, all that this trace knows, does not show how its head counts; build it again "
                "with -g, and record again"
            )
        if inductions.size > 1:
            counters = ", ".join(
                sorted(self.program.text(int(self.program.phis["name"][phi])) or "a value" for phi in inductions)
            )
            raise NoDirective(f"{counters} all advance with it; compute all but its counter from the counter")

    def _reduce(self, name: str, step: Transformation, clauses: Clauses) -> None:
        operator = self.program.text(step.operator)
        if operator in NO_CLAUSE:
            raise NoDirective(NO_CLAUSE[operator].format(name=name))
        clauses.add(f"reduction({operator}", name)

    def _phi_name(self, loop: int, phi: int) -> str:
        name = self.program.text(int(self.program.phis["name"][phi]))
        if not name:
            parted = VariableFlag.READ_FIRST | VariableFlag.NO_REDUCTION
            for row in self.judge.source_variables.rows(loop):  # a part of it may be in the register
                if int(self.program.variables["flags"][row]) & parted == parted:
                    self._refuse_type(self.program.text(int(self.program.variables["name"][row])))
            if self._accumulates_in_memory(loop):
                raise NoDirective(
                    "it accumulates in an array's element, or in other memory, that the optimiser keeps in a register, "
                    f"and which no clause names; {LOCAL}"
                )
            raise NoDirective("the name of a variable that it accumulates in is not known (compile with -g -O0)")
        return name

    def _accumulates_in_memory(self, loop: int) -> bool:
        """Is what a loop hands on in a register without a name memory in the source, for no variable can be it?"""
        rows = self.judge.source_variables.rows(loop)
        flags = [int(each) for each in self.program.variables["flags"][rows] if not each & VariableFlag.INDUCTION]
        may_be = [each & (BY_RUN | VariableFlag.READ_FIRST) or each & HANDED_ON == HANDED_ON for each in flags]
        return bool(int(self.program.loops["flags"][loop]) & LoopFlag.SOURCE) and not any(may_be)

    def _refuse_type(self, name: str) -> NoReturn:
        raise NoDirective(
            f"OpenMP's reductions do not take {name}, which is no plain number; accumulate in one, or declare a "
            "reduction for its type"
        )

    def _check_accumulator(self, loop: int, name: str) -> None:
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

    def _check_name(self, name: str, flags: int) -> None:
        """Raises NoDirective if a clause cannot name a variable by the name that the loop's text has for it."""
        self._check_scope(name, flags)
        if flags & VariableFlag.RENAMED:
            raise NoDirective(
                f"it has another name for {name}, a reference, a pointer or one with its scope, which no clause has"
            )

    def _check_order(self, loop: int, clauses: Clauses) -> None:
        """Raises NoDirective for extremes in another order than that of the variable's type, which clauses have."""
        for row in self.judge.source_variables.rows(loop):
            name = self.program.text(int(self.program.variables["name"][row]))
            extremes = {*clauses.names.get("reduction(min", ()), *clauses.names.get("reduction(max", ())}
            if name in extremes and int(self.program.variables["flags"][row]) & VariableFlag.OTHER_SIGN:
                raise NoDirective(
                    f"it compares {name} with another signedness than its type has, so that a thread's copy does not "
                    "begin with what is least there; convert what it is compared with to its type"
                )

    def _check_scope(self, name: str, flags: int) -> None:
        """Raises NoDirective for a static variable of the loop's own body."""
        if flags & VariableFlag.WITHIN:
            raise NoDirective(
                f"{name} is static and declared inside the loop, so iterations share it and no clause can name it; "
                "declare it before the loop, or without static"
            )

    def _source_variables(self, loop: int, judgement: Judgement, clauses: Clauses) -> None:
        """The variables from outside that the loop assigns in the source, whatever the optimiser has made of them."""
        copies = {step.variable: step for step in judgement.transformations}
        for row in self.judge.source_variables.rows(loop):
            name = self.program.text(int(self.program.variables["name"][row]))
            flags = int(self.program.variables["flags"][row])
            if flags & VariableFlag.NO_REDUCTION and any(
                name in names for key, names in clauses.names.items() if "reduction" in key
            ):
                self._refuse_type(name)
            if any(name in names for names in clauses.names.values()):
                continue  # the run has shown how iterations use it
            if row in copies and copies[row].kind == "reduction":
                self._check_name(name, flags)
                self._reduce(name, copies[row], clauses)
            elif row in copies:
                self._check_copy(name, flags)
                clauses.add(copies[row].kind, name)
            elif flags & VariableFlag.INDUCTION:  # the counter is private anyway
                self._check_name(name, flags)
                self._check_counter(loop, row, name, flags)
                if flags & VariableFlag.USED_AFTER:
                    clauses.add("lastprivate", name)
            else:
                self._check_uncopied(loop, row, name, flags)

    def _check_counter(self, loop: int, row: int, name: str, flags: int) -> None:
        """Raises NoDirective if the loop's body may assign its counter through a pointer.

        Of a WATCHED one in memory the verdict has told. Of one in a register the compiler shows that it found no other
        step than the head's, if that is how all that advances with the loop does.
        """
        if not flags & VariableFlag.REACHED or flags & VariableFlag.LENT:
            return
        loads, _ = self.judge.counters.by_name(loop, name)
        phis = self.program.phis[self.judge.graphs.header_phis(loop, PhiKind.INDUCTION)]
        steps = [self.program.text(int(phi["operator"])) for phi in phis]
        is_known = flags & VariableFlag.WATCHED if loads.size else steps == [self.judge.source_variables.step_of(row)]
        if not is_known:
            raise NoDirective(
                f"its body may assign the counter {name} through a pointer or in a called function, and the optimised "
                "program does not show that; build with -O0"
            )

    def _is_of_memory(self, step: Transformation) -> bool:
        """May a reduction through a register be of memory that the optimiser keeps there? It has no name then."""
        return step.kind == "reduction" and step.phi != NONE and not int(self.program.phis["name"][step.phi])

    def _check_pointee(self, row: int, *, is_summed: bool) -> None:
        """Raises NoDirective for memory behind a pointer that the run shows nothing of."""
        variable = self.program.variables[row]
        flags = int(variable["flags"])
        if not flags & VariableFlag.POINTEE:
            return
        place = self.program.place(int(variable["location"]))
        name = self.program.text(int(variable["name"])) or "what a pointer leads to"
        what = f"{name} ({place['file']}:{place['line']})"
        if flags & VariableFlag.READ_FIRST and is_summed:
            raise NoDirective(f"it accumulates in {what}, which no clause names; {LOCAL}")
        if flags & VariableFlag.READ_FIRST:
            raise NoDirective(f"an iteration may read {what} before it assigns it")
        raise NoDirective(
            f"each iteration assigns {what}, of which no clause makes a copy; use a variable that the loop declares"
        )

    def _check_copy(self, name: str, flags: int) -> None:
        """Raises NoDirective if a copy of a variable for each iteration is not what a clause makes."""
        self._check_name(name, flags)
        if flags & VariableFlag.CALLEE:
            raise NoDirective(f"a function that it calls uses {name}, too, which no clause reaches")
        if flags & VariableFlag.USED_AFTER and flags & VariableFlag.SOMETIMES:
            raise NoDirective(f"{name} may be read after the loop, and not every iteration assigns it")

    def _check_uncopied(self, loop: int, row: int, name: str, flags: int) -> None:
        """Raises NoDirective unless a variable of which the verdict says nothing needs no clause."""
        if flags & BY_RUN:
            is_global, is_varying = bool(flags & VariableFlag.GLOBAL), bool(flags & VariableFlag.VARYING)
            if not self._is_in_memory(loop, name, is_global, is_varying):
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

    def _is_in_memory(self, loop: int, name: str, is_global: bool, is_varying: bool) -> bool:
        """Is the variable in memory, as the program was compiled, so that the run shows how the loop uses it?

        An array of which the loop uses different parts is, if some access in its text is known to be to that array: the
        optimiser may keep the one element in a register that all iterations use.
        """
        if is_varying and all(self.uses.name(op) != name for op in self.uses.operations(loop)):
            return False
        if is_global:
            return name in self._global_names
        function = self.program.functions[self.program.loops["function"][loop]]
        ops = self.program.ops[int(function["first_op"]) :][: int(function["ops"])]
        names: list[int] = ops["name"][ops["kind"] == OpKind.STACK_ALLOC].tolist()
        return any(self.program.text(offset) == name for offset in names)

    @cached_property
    def _global_names(self) -> frozenset[str]:
        offsets: list[int] = np.unique(self.program.globals["source_name"]).tolist()
        return frozenset(map(self.program.text, offsets))

    def _variables(self, loop: int, clauses: Clauses) -> None:
        """Local variables from outside that the loop assigns, of an image that knows the optimised program only."""
        rows = self.program.variables[self.program.variables["loop"] == loop]
        for row in rows:
            flags = int(row["flags"])
            if flags & VariableFlag.USED_AFTER:
                clauses.add("lastprivate", self.program.text(int(row["name"])))
            elif not flags & VariableFlag.INDUCTION:  # the counter is private anyway
                clauses.add("private", self.program.text(int(row["name"])))

    # -- memory ------------------------------------------------------------------------------------

    def _object(self, loop: int, node: int, step: Transformation, clauses: Clauses) -> None:
        """A reduction of, or private copies of, an object of memory."""
        kind = ObjectKind(int(self.profile.objects["kind"][step.object])) if step.object != NONE else ObjectKind.UNKNOWN
        shown = self.names.object(step.object)
        if kind not in (ObjectKind.GLOBAL, ObjectKind.STACK):
            what = "a sum in" if step.kind == "reduction" else "a private copy of"
            memory = "heap memory" if kind == ObjectKind.HEAP else "such memory"
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
        if not name:
            raise NoDirective("memory that it uses has no name: the compiler made it, or it was built without -g")
        if kind == ObjectKind.STACK and (
            self.uses.is_of_a_call_inside(node, step.object) or self._is_declared_inside(loop, shown["site"])
        ):
            return  # private already, whoever uses it
        if kind == ObjectKind.STACK and self.uses.is_of_a_caller(loop, step.object):
            raise NoDirective(f"{name} is a variable of {shown['site']['function']}, which no clause here can name")
        if (row := self.judge.source_variables.row_of(loop, step)) != NONE:
            self._check_scope(name, int(self.program.variables["flags"][row]))
        self._check_size(kind, step.object, name)
        users = self.uses.users(node, step.object)
        is_lent = kind == ObjectKind.STACK and self._is_lent(loop, step)
        self._check_users_reached(loop, name, users, is_lent)
        if step.kind == "reduction":
            self._check_only_accumulated(loop, step, name, users)
            self._reduce(name, step, clauses)
            return
        clauses.add(self._copy_clause(loop, node, step, name, users, is_lent), name)

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

    def _by_hand(self, node: int, step: Transformation) -> str:
        """What to do about memory that no clause reaches."""
        if step.kind != "reduction" or self.program.text(step.operator) not in ATOMIC:
            return "do it by hand"
        users = self.uses.users(node, step.object)
        if self._is_one_place(node, users):
            return LOCAL
        stores = users[np.isin(self.program.ops["kind"][users], (OpKind.STORE, OpKind.ATOMIC))]
        rows = (self.names.instruction(op) for op in stores.tolist())
        known = {(row["file"], row["line"], row["column"]) for row in rows if row["line"] and not row.get("nearby")}
        if not known or len(known) > MOST_PLACES:
            return "put `#pragma omp atomic` before each statement that updates it"
        places = ", ".join(f"{file}:{line}:{column}" for file, line, column in sorted(known))
        return f"put `#pragma omp atomic` before the statement that updates it ({places})"

    def _is_one_place(self, node: int, users: Indices) -> bool:
        """Has each execution of a loop one place only of what these instructions update, once in each iteration?

        Then each hands on to the next iteration alone, and no more often than there are iterations.
        """
        levels, dependences = self.profile.levels, self.profile.dependences
        levels = levels[(levels["node"] == node) & levels["inter"]]
        rows = dependences[levels["dependence"]]
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
            raise NoDirective(f"a copy of {name} for each thread, {size:,} bytes, is too large for its stack")

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
