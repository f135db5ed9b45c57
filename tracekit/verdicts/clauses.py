"""The clauses of an OpenMP directive."""

from __future__ import annotations

from typing import NamedTuple

LOCAL = "accumulate in a local variable, which a `reduction` clause can name, and store that behind the loop"
"""What to do about a sum in one place of memory that no clause names."""

NO_CLAUSE = {
    "argmin": "{name} is what belongs to a minimum: that takes a reduction that the program declares",
    "argmax": "{name} is what belongs to a maximum: that takes a reduction that the program declares",
    "=": "iterations set {name} to one value or leave it alone, which no clause says; write an `or` of a truth value",
}
"""Why a reduction's operator has no clause."""


class NoDirective(Exception):  # noqa: N818 - it is an answer
    """Why no directive can be given, in words for the user."""


C = "#pragma omp parallel for"
FORTRAN = "!$omp parallel do"
"""What a directive begins with."""

FORTRAN_REDUCTIONS = frozenset({"+", "*", "min", "max"})
"""Those that Fortran spells as C does. Others are several of Fortran's, by the variable's type."""


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

    def reduce(self, operator: str, name: str) -> None:
        """Name a variable that iterations accumulate in."""
        if reason := NO_CLAUSE.get("=" if operator.startswith("=") else operator):
            raise NoDirective(reason.format(name=name))
        self.add(f"reduction({operator}", name)

    def text(self, begin: str = C) -> str:
        """The whole directive. Raises NoDirective if its language has no clause for a reduction."""
        for clause in self.names:
            _, is_reduction, operator = clause.partition("reduction(")
            if begin == FORTRAN and is_reduction and operator not in FORTRAN_REDUCTIONS:
                raise NoDirective(
                    f"it accumulates in {', '.join(self.names[clause])} by what C calls `{operator}`; whether that is "
                    "one of Fortran's operators on logicals or a function on integers is not known"
                )
        clauses = [
            f" {clause}{':' if '(' in clause else '('}{', '.join(sorted(names))})"
            for clause, names in sorted(self.names.items())
        ]
        return begin + "".join(clauses)
