"""Directives before DO constructs, in free and in fixed form."""

from __future__ import annotations

import pytest

from tracekit.patches.do_statement import lines_before_do
from tracekit.patches.edits import Source, Wanted, applied
from tracekit.patches.for_statement import Refused

LONG = "!$omp parallel do private(" + ", ".join(f"variable_{number}" for number in range(20)) + ") reduction(+:total)"


def inserted(name: str, text: str, directive: str = "!$omp parallel do private(j)") -> str:
    """The text with a directive before its first DO."""
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "do " in line.lower())
    column = text.split("\n")[line - 1].lower().index(text.split("\n")[line - 1].lower().lstrip()) + 1
    source = Source(name, text)
    return applied(text, source.edits(Wanted(line, column, directive, hoists=False)))


@pytest.mark.parametrize(
    "head", ["do i = 1, n", "DO I=1,n,2", "do 10 i = 1, n", "do 10, i = 1, n", "outer: do i = n, 1, -1"]
)
def test_a_directive_stands_before_the_construct(head: str) -> None:
    text = f"subroutine s\n    {head}\n  a(i) = 1\n"
    assert inserted("s.f90", text) == text.replace(f"    {head}", f"    !$omp parallel do private(j)\n    {head}")


def test_lines_end_as_the_file_has_them() -> None:
    assert inserted("s.F90", "x = 1\r\n  do i = 1, n\r\n") == (
        "x = 1\r\n  !$omp parallel do private(j)\r\n  do i = 1, n\r\n"
    )


@pytest.mark.parametrize("name, width, indent", [("s.f90", 132, "      "), ("s.f", 72, "")])
def test_long_directives_are_folded(name: str, width: int, indent: str) -> None:
    lines = inserted(name, "      do i = 1, n\n", LONG).splitlines()[:-1]
    assert len(lines) > 2 and all(len(line) <= width for line in lines)
    assert lines[0].startswith(f"{indent}!$omp parallel do")
    assert all(line.startswith(f"{indent}!$omp& ") for line in lines[1:])
    assert [line.endswith(" &") for line in lines] == [name == "s.f90"] * (len(lines) - 1) + [False]
    joined = " ".join(line.strip().removeprefix("!$omp&").removesuffix(" &").strip() for line in lines)
    assert joined == LONG


@pytest.mark.parametrize("ahead", ["module m\n", "! free\n  program p\n", "   implicit none\n"])
def test_what_has_statements_where_fixed_form_has_labels_is_in_free_form(ahead: str) -> None:
    lines = inserted("s.F", f"{ahead}      do i = 1, n\n", LONG).splitlines()
    assert lines[-3].endswith(" &") and lines[-2].startswith("      !$omp& ")


LABELS_AND_COMMENTS = ["c module m\n", "D     x = 2\n", "10    x = 1\n", "#if 1\n", "\tx = 1\n", "     &  y\n"]


@pytest.mark.parametrize("ahead", LABELS_AND_COMMENTS)
def test_comments_and_labels_are_those_of_fixed_form(ahead: str) -> None:
    lines = inserted("s.F", f"{ahead}      do i = 1, n\n", LONG).splitlines()
    assert not any(line.endswith(" &") for line in lines) and lines[-2].startswith("!$omp& ")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("do while (i < n)\n", "no DO construct"),
        ("do\n", "no DO construct"),
        ("do concurrent (i = 1:n)\n", "no DO construct"),
        ("dot = 3\n", "no DO construct"),
        ("!$omp simd\ndo i = 1, n\n", "a directive of OpenMP stands before it"),
        ("  !DIR$ ivdep\n\ndo i = 1, n\n", "a directive stands before it"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    start = text.lower().index("do", text.rfind("\n", 0, len(text) - 1) + 1)
    with pytest.raises(Refused, match=reason):
        lines_before_do("s.f90", text, start, "!$omp parallel do")


def test_what_stands_before_it_in_its_line_would_be_parted_from_it() -> None:
    for text in ("x = 1; do i = 1, n\n", "20 do i = 1, n\n"):
        with pytest.raises(Refused, match="a label or another statement"):
            lines_before_do("s.f90", text, text.index("do"), "!$omp parallel do")


def test_those_of_openmp_are_told_from_others() -> None:
    for name, before, there in (
        ("s.f90", "  !$OMP DO", True),
        ("s.f", "c$omp parallel do", True),
        ("s.f90", "!dir$ ivdep", False),
        ("s.f90", "c$omp = 1", False),
    ):
        source = Source(name, f"{before}\n      do i = 1, n\n")
        assert source.has_directive(Wanted(2, 7, "", hoists=False)) == there


def test_comments_and_conditional_lines_are_no_directives() -> None:
    for before in ("! $omp is not meant", "!dir is a folder", "!$ x = omp_get_wtime()", "cdata$ = 1"):
        text = f"{before}\ndo i = 1, n\n"
        at, lines = lines_before_do("s.f90", text, text.index("do i"), "!$omp parallel do")
        assert (at, lines) == (len(before) + 1, ["!$omp parallel do"])
