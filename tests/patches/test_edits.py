"""What inserting a directive makes of a text, and where it is refused."""

from __future__ import annotations

import pytest

from tracekit.patches.edits import Source, Wanted, applied
from tracekit.patches.for_statement import Refused

PRAGMA = "#pragma omp parallel for"
LOOP = "for (i = 0; i < n; i++) a[i] = 0;"


def patched(text: str, hoists: bool = False, name: str = "f.c") -> str:
    """The text with a directive for its first `for`."""
    at = text.index("for (")
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return applied(text, Source(name, text).edits(Wanted(line, column, PRAGMA, hoists)))


def test_a_directive_is_a_line_of_its_own() -> None:
    assert patched(f"f() {{\n\t{LOOP}\n}}") == f"f() {{\n\t{PRAGMA}\n\t{LOOP}\n}}"
    assert patched(f"  if (x) {LOOP}\n") == f"  if (x)\n  {PRAGMA}\n  {LOOP}\n"
    assert patched(f"f() {{\r\n  {LOOP}\r\n}}") == f"f() {{\r\n  {PRAGMA}\r\n  {LOOP}\r\n}}"


def test_a_bound_is_kept_in_a_constant_with_a_name_of_its_own() -> None:
    bounded = "for (i = 0; i < n_bound2; i++) a[i] = 0;"
    assert patched(f"int n_bound;\n{LOOP}\n", hoists=True) == (
        f"int n_bound;\nconst __typeof__(n) n_bound2 = n;\n{PRAGMA}\n{bounded}\n"
    )
    assert "const auto n_bound = n;" in patched(f";\n{LOOP}\n", hoists=True, name="f.cpp")
    number = "x;\nfor (i = 0; i < 10; i++) a[i] = s;\n"
    assert "const" not in patched(number, hoists=True)


def test_a_member_may_be_a_bit_field() -> None:
    text = patched(";\nfor (i = 0; i < g->n; i++) a[i] = 0;\n", hoists=True)
    assert "const __typeof__(g->n + 0) n_bound = g->n;" in text


@pytest.mark.parametrize("bound", ["n /* all */ + 1", "n // all\n + 1", "n \\\n + 1"])
def test_a_bound_with_a_comment_is_not_moved(bound: str) -> None:
    """A constant's declaration is one line: it would lose what stands behind the comment."""
    text = f";\nfor (i = 0; i < {bound}; i++) a[i] = 0;\n"
    assert PRAGMA in patched(text)
    with pytest.raises(Refused, match="a comment stands in its bound"):
        patched(text, hoists=True)


def test_where_no_declaration_may_stand_there_is_a_block() -> None:
    text = patched(f"if (x)\n  {LOOP}\nelse\n  y;\n", hoists=True)
    assert text == (
        "if (x)\n  {\n  const __typeof__(n) n_bound = n;\n"
        f"  {PRAGMA}\n  for (i = 0; i < n_bound; i++) a[i] = 0;\n  }}\nelse\n  y;\n"
    )
    switch = f"switch (x) {{ case 1: f();\n{LOOP}\ncase 2: g(); }}\n"
    assert "{\nconst auto" in patched(switch, hoists=True, name="f.cc")
    assert "{\nconst" not in patched(switch, hoists=True)
    plain = patched(f";\n{LOOP}\n", hoists=True, name="f.cc")  # nothing jumps over a declaration here
    assert plain.startswith(f";\nconst auto n_bound = n;\n{PRAGMA}\n")


@pytest.mark.parametrize(
    "text",
    [
        f"#pragma omp parallel for\n{LOOP}",
        f"#ifdef _OPENMP\n#pragma omp parallel for\n#endif\n{LOOP}",
        f'_Pragma("omp parallel for") {LOOP}',
        f"[[likely]] {LOOP}",
        f"/* {LOOP} */",
        f"#define F {LOOP}\n",
        f'x = "{LOOP}";',
    ],
)
def test_where_a_directive_would_be_wrong(text: str) -> None:
    with pytest.raises(Refused):
        patched(text)


def test_a_place_that_the_text_does_not_have() -> None:
    with pytest.raises(Refused):
        Source("f.c", "x;").edits(Wanted(9, 1, PRAGMA, False))
