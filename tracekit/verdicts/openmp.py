"""The OpenMP directive that a loop's verdict comes to, where everything that it has to name is known.

A directive is given only if inserting it cannot make a variable shared that has to be private, or leave one behind with
another value; where that is not known, the reason is given instead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tracekit.formats.events import NONE
from tracekit.formats.fortran_sources import is_fortran
from tracekit.formats.image import LoopFlag, PhiKind, TypeClass, VariableFlag
from tracekit.program.shared_loops import shared_loops
from tracekit.program.thread_locals import uses_thread_locals
from tracekit.verdicts.calls_made import CallsMade
from tracekit.verdicts.clauses import FORTRAN, C, Clauses, NoDirective
from tracekit.verdicts.object_clauses import ObjectClauses
from tracekit.verdicts.object_uses import ObjectUses
from tracekit.verdicts.transformations import Transformation
from tracekit.verdicts.variable_clauses import VariableClauses
from tracekit.verdicts.verdicts import Judge, Judgement

if TYPE_CHECKING:
    from tracekit.verdicts.names import VerdictNames

LANGUAGES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".def", ".tcc")
"""How names of files end in which a pragma means something."""


NO_DO = (
    "OpenMP wants a DO construct that steps a local counter, with no other way out, which DO CONCURRENT, "
    "an array assignment and an array constructor are not; write it as one (and compile with -g)"
)


class Directives:
    """Makes directives for the loops of one profile."""

    def __init__(self, judge: Judge, names: VerdictNames) -> None:
        self.judge = judge
        self.program = judge.program
        self.profile = judge.profile
        self.names = names
        self.uses = ObjectUses(judge)
        self.variables = VariableClauses(judge, self.uses)
        self.objects = ObjectClauses(judge, names, self.uses)
        shared = shared_loops(self.program).tolist()
        self.shared = {self._place(loop) for loop in shared}
        self.of_thread = CallsMade(judge, uses_thread_locals(self.program))

    def directive(self, judgements: Collection[Judgement]) -> str:
        """One directive for a loop's copies in all its contexts. Raises NoDirective with the reason."""
        made = {self._of(judgement).text(self._begin(judgement)) for judgement in judgements}
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
        self._check_place(loop)
        self._check_pointees(loop, judgement)
        self._check_alloca(loop)
        if in_source:
            self._check_is_known(loop)
        if in_source and self._is_fortran(loop):
            self._check_do(loop)
        elif in_source:
            self._check_source_head(loop)
        self._check_thread(loop, judgement.node)
        self._check_values(loop)
        if not in_source:
            self._check_shape(loop)
            self.variables.add_optimised(loop, clauses)
        for step in judgement.transformations:
            if step.variable != NONE:
                continue  # with the other variables of the source
            if step.phi != NONE:
                name = self.variables.phi_name(loop, step.phi)
                if in_source:
                    self.variables.check_accumulator(loop, name)
                clauses.reduce(self.program.text(step.operator), name)
            else:
                self.objects.add(loop, judgement.node, step, clauses)
        if in_source:
            self.variables.add(loop, judgement, clauses)
            self.variables.check_order(loop, clauses)
        return clauses

    def _check_pointees(self, loop: int, judgement: Judgement) -> None:
        """Memory that the optimised loop does not store may be what a reduction through a register is of."""
        sums = [step.phi for step in judgement.transformations if step.kind == "reduction" and step.phi != NONE]
        names = {self.program.text(int(self.program.phis["name"][phi])) for phi in sums}
        for row in self.judge.source_variables.rows(loop):
            self.variables.check_pointee(loop, row, names)

    def _check_place(self, loop: int) -> None:
        if not str(self.names.loop(loop)["file"]).endswith(LANGUAGES) and not self._is_fortran(loop):
            raise NoDirective("it stands in no file of C, C++ or Fortran")
        if self._place(loop) in self.shared:
            raise NoDirective("one stands there already, by which OpenMP shares the iterations out to threads")
        if int(self.program.loops["flags"][loop]) & LoopFlag.SIMD:
            raise NoDirective("`omp simd` stands before it; `omp parallel for simd` there gives threads a part each")

    def _check_alloca(self, loop: int) -> None:
        """Compilers make a function of a loop with a directive, at whose end what `alloca` gave is gone."""
        if self.uses.calls_alloca(loop):
            raise NoDirective("its body calls alloca, whose memory would end with each thread's part of the iterations")

    def _place(self, loop: int) -> tuple[str, int, int]:
        """Where a loop stands: of one that OpenMP shares out, at the directive."""
        row = self.names.loop(loop)
        return str(row["file"]), int(row["line"]), int(row["column"])

    def _begin(self, judgement: Judgement) -> str:
        return FORTRAN if self._is_fortran(int(self.profile.nodes["loop"][judgement.node])) else C

    def _is_fortran(self, loop: int) -> bool:
        return is_fortran(str(self.names.loop(loop)["file"]))

    def _check_values(self, loop: int) -> None:
        if int(self.program.loops["flags"][loop]) & LoopFlag.LEAVES_VALUES:
            raise NoDirective("it leaves a value behind that no variable is known for")

    def _check_is_known(self, loop: int) -> None:
        if int(self.program.loops["flags"][loop]) & LoopFlag.LINES_ONLY:
            raise NoDirective("it was built without -g, so its variables are not known; build it with -g, record again")

    def _check_source_head(self, loop: int) -> None:
        if not int(self.program.loops["flags"][loop]) & LoopFlag.FOR_STATEMENT:
            raise NoDirective(
                "OpenMP wants a for statement whose head sets, tests and steps one local counter, "
                "without a cast, with no other way out; write it as one"
            )
        if int(self.program.loops["flags"][loop]) & LoopFlag.PRAGMA:
            raise NoDirective(
                "a pragma about the loop stands before it (such as `#pragma unroll`), which compilers do not take "
                "beside OpenMP's; take it out first"
            )
        if int(self.program.loops["flags"][loop]) & LoopFlag.WORD_IS_MACRO:
            raise NoDirective(
                "a macro of its file has the name of a word of OpenMP's directives (`private`, `for`), which compilers "
                "replace there, too; rename it"
            )
        if int(self.program.loops["flags"][loop]) & LoopFlag.CONSTEXPR:
            raise NoDirective("its function is constexpr, and compilers take no OpenMP there; make it an ordinary one")
        if int(self.program.loops["flags"][loop]) & LoopFlag.BINDING:
            raise NoDirective(
                "it uses a structured binding from outside, which OpenMP compilers (clang) do not take into a parallel "
                "region; give its parts names by variables or references of their own"
            )

    def _check_thread(self, loop: int, node: int) -> None:
        """Of its own unit the pass knows all that it may call, of others the contexts what it did call."""
        called = self.of_thread.among(self.judge.facts.of_thread(loop), [node])
        if int(self.program.loops["flags"][loop]) & LoopFlag.THREAD_LOCAL or called:
            raise NoDirective(
                "it uses a thread-local variable, or one that `threadprivate` names, or a function that it calls does, "
                "and each of OpenMP's threads has one of its own; hand over what it holds by a local variable"
            )

    def _check_do(self, loop: int) -> None:
        """As _check_source_head, for Fortran."""
        flags = int(self.program.loops["flags"][loop])
        if not flags & LoopFlag.FOR_STATEMENT:
            raise NoDirective(NO_DO)
        if flags & LoopFlag.PRAGMA:
            raise NoDirective("a directive stands before it already (`!$omp`, `!dir$`)")
        if flags & LoopFlag.CONSTEXPR:
            raise NoDirective(
                "its procedure is pure or elemental, or DO CONCURRENT holds it, and compilers take no OpenMP there"
            )

    def _check_shape(self, loop: int) -> None:
        """What stands for the head in an image that knows the optimised program only."""
        flags = int(self.program.loops["flags"][loop])
        if not flags & LoopFlag.FOR_STATEMENT:
            raise NoDirective(
                NO_DO
                if self._is_fortran(loop)
                else "it is not known to be a for statement that counts in its head alone; write it as one "
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
