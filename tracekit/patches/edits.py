"""What inserting a directive changes in the text of a file: the directive, and in C a constant for the loop's bound.

OpenMP wants a bound that does not change while the loop runs. One that the program loads again in each iteration
(`i < grid->nx`) is kept in a constant before the loop; the run has shown that no iteration changes it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection
from itertools import takewhile
from typing import NamedTuple

from tracekit.formats.fortran_sources import is_fortran
from tracekit.patches.do_statement import check_before_do, lines_before_do
from tracekit.patches.for_statement import SHARED_OUT, ForStatement, HasDirective, Refused, for_statement
from tracekit.patches.tokens import Token, tokens

PLUS_PLUS = (".cc", ".cpp", ".cxx", ".c++", ".C", ".hh", ".hpp", ".hxx", ".tcc")


_OPENMP = re.compile(r"\bpragma\s+omp\b")


class Wanted(NamedTuple):
    """A directive for the loop at a place."""

    line: int
    column: int  # in bytes, from 1
    pragma: str
    hoists: bool  # the loop's test loads its bound


class Edit(NamedTuple):
    """text[start:end] becomes `new`."""

    start: int
    end: int
    new: str


class Source:
    """The text of a file, one letter for each byte."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._tokens: list[Token] | None = None
        self._taken: set[str] = set()

    def start_of(self, wanted: Wanted) -> int:
        """Where the loop stands in the text. Raises Refused if the text is too short."""
        if not 0 < wanted.line <= len(self.lines) or wanted.column < 1:
            raise Refused("no loop stands there in the text")
        return self.lines[wanted.line - 1] + wanted.column - 1

    def edits(self, wanted: Wanted) -> list[Edit]:
        """The changes that insert a directive. Raises Refused where that cannot be done surely."""
        start = self.start_of(wanted)
        if is_fortran(self.name):
            at, lines = lines_before_do(self.name, self.text, start, wanted.pragma)
            return [Edit(at, at, "".join(line + self.newline for line in lines))]
        loop = for_statement(self.text, start)
        before = self._before(start)
        bound = self.text[slice(*loop.bound)]
        hoists = wanted.hoists and _names(bound)
        if hoists and (before not in (";", "{", "}", "#", "") or self._may_be_jumped_over()):
            return self._braced(start, loop, wanted.pragma, bound)
        if hoists:
            declaration, edit = self._constant(loop, bound)
            return [self._lines_before(start, [declaration, wanted.pragma]), edit]
        return [self._lines_before(start, [wanted.pragma])]

    def has_directive(self, wanted: Wanted) -> bool:
        """Does one of OpenMP's stand before the loop already?"""
        try:
            if is_fortran(self.name):
                check_before_do(self.name, self.text, self.start_of(wanted))
            else:
                self._before(self.start_of(wanted))
        except HasDirective:
            return True
        except Refused:
            pass
        return False

    def _before(self, start: int) -> str:
        """The token before the loop. Raises Refused if the loop has a pragma already, or an attribute."""
        if self._tokens is None:
            self._tokens = tokens(self.text)
        at = bisect_left(self._tokens, start, key=lambda token: token.start)
        if at == len(self._tokens) or self._tokens[at].start != start:
            raise Refused("it stands in a comment, a literal or a line of the preprocessor")
        if not at:
            return ""
        last = self._tokens[at - 1]
        lines = takewhile(lambda token: token.text == "#", reversed(self._tokens[:at]))  # `#endif`, and what it closes
        pragmas = [text for text in (self.text[line.start : line.end] for line in lines) if "pragma" in text]
        if any(_OPENMP.search(text) for text in pragmas):
            raise HasDirective(SHARED_OUT)
        if pragmas or any(each.text == "_Pragma" for each in self._tokens[at - 4 : at]):
            raise Refused("a pragma stands before it already")
        if last.text == "]":
            raise Refused("an attribute stands before it")
        return last.text

    def _may_be_jumped_over(self) -> bool:
        """C++ refuses to jump over a declaration that sets a value."""
        assert self._tokens is not None
        return self.name.endswith(PLUS_PLUS) and any(
            token.text in ("goto", "case", "default") for token in self._tokens
        )

    def _indent(self, start: int) -> tuple[str, bool]:
        """The white space that the loop's line begins with, and whether nothing else stands before the loop."""
        line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        blank = line[: len(line) - len(line.lstrip())]
        return blank, not line.strip()

    def _lines_before(self, start: int, lines: Collection[str]) -> Edit:
        """Lines of their own before what stands at `start`."""
        blank, alone = self._indent(start)
        if alone:
            at = start - len(blank)
            return Edit(at, at, "".join(blank + line + self.newline for line in lines))
        head = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        gap = len(head) - len(head.rstrip())
        new = self.newline + "".join(blank + line + self.newline for line in lines) + blank
        return Edit(start - gap, start, new)

    def _constant(self, loop: ForStatement, bound: str) -> tuple[str, Edit]:
        """The declaration of a constant with the value of the bound, and the edit that uses it in the loop's test."""
        assert self._tokens is not None
        known = {token.text for token in self._tokens} | self._taken
        base = (_names(bound)[-1] + "_bound").lstrip("_")
        name = next(each for each in (base, *(f"{base}{number}" for number in range(2, 10**6))) if each not in known)
        self._taken.add(name)
        flat = re.sub(r"\s*\n\s*", " ", bound)
        if "//" in bound or "/*" in bound or "\\\n" in bound:
            raise Refused("a comment stands in its bound")
        kind = "auto" if self.name.endswith(PLUS_PLUS) else f"__typeof__({_promoted(flat)})"
        return f"const {kind} {name} = {flat};", Edit(*loop.bound, name)

    def _braced(self, start: int, loop: ForStatement, pragma: str, bound: str) -> list[Edit]:
        """Where no declaration may stand: a block around the loop."""
        if loop.end is None:
            raise Refused("its end is not found (lines of the preprocessor stand in it), and its bound needs a block")
        blank, _ = self._indent(start)
        declaration, edit = self._constant(loop, bound)
        return [
            self._lines_before(start, ["{", declaration, pragma]),
            edit,
            Edit(loop.end, loop.end, f"{self.newline}{blank}}}"),
        ]


def _promoted(bound: str) -> str:
    """An expression of the bound's type, for `__typeof__`, which refuses a member that is a bit-field."""
    row = [token.text for token in tokens(bound)]
    is_member = any(word in (".", "->") for word in row) and not any(word in "+-*/%~!<>&|^" for word in row)
    return f"{bound} + 0" if is_member else bound


def _names(expression: str) -> list[str]:
    """The words of an expression that may be variables, members or functions."""
    return [token.text for token in tokens(expression) if token.text[:1].isalpha() or token.text[:1] == "_"]


def applied(text: str, edits: Collection[Edit]) -> str:
    """The text with all edits, which do not overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        assert edit.start >= at, "edits overlap"
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])
