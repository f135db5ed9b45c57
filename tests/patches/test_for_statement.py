"""Heads of `for` that OpenMP accepts, those that it does not, and where statements end."""

from __future__ import annotations

import pytest

from tracekit.patches.for_statement import Refused, for_statement

ACCEPTED = [
    ("for (int i = 0; i < n; i++) x;", "i", "n"),
    ("for (i = 1; i <= g->nx - 1; ++i) x;", "i", "g->nx - 1"),
    ("for (std::size_t i = 0; v.size() > i; i += 2) x;", "i", "v.size()"),
    ("for (long *p = a; p != a + 10; p = p + 1) x;", "p", "a + 10"),
    ("for (i = f(a, b); i >= 0; i -= s) x;", "i", "0"),
    ("for (unsigned char i = '('; i < g->i; i = 1 + i) x;", "i", "g->i"),
    ("for (auto &x : v) y;", "", ""),
    ("for (const std::pair<int, int> &x : rows(n, {1})) y;", "", ""),
    ("for(i=0;/* ; */i<(n & 3);i++) x;", "i", "(n & 3)"),
]

REFUSED = [
    "for (;;) x;",
    "for (i = 0, j = 0; i < n; i++) x;",
    "for (i = 0; i < n; i++, j++) x;",
    "for (i = 0; i < n && a[i]; i++) x;",
    "for (i = 0; (long)i < n; i++) x;",
    "for (i = 0; i < n - i; i++) x;",
    "for (i = 0; i < n; i = i * 2) x;",
    "for (i = 0; i < n; i = n - i) x;",
    "for (i = 0; i < n; i = i + i) x;",
    "for (i = 0; i < n; i = i + 1, j++) x;",
    "for (i = 0; i < n; i *= i + 1) x;",
    "for (i = 1; i < n; i += i) x;",
    "for (i = 0; i < n; i += 1, j++) x;",
    "for (i = 0; i++ < n;) x;",
    "for (int n = 2; auto &x : v) y;",
    "while (i < n) i++;",
    "EACH(i) x;",
]


@pytest.mark.parametrize(("text", "counter", "bound"), ACCEPTED)
def test_the_parts_of_a_head(text: str, counter: str, bound: str) -> None:
    loop = for_statement(text, 0)
    assert loop.counter == counter
    assert text[slice(*loop.bound)] == bound
    assert loop.end == len(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_openmp_does_not_accept(text: str) -> None:
    with pytest.raises(Refused):
        for_statement(text, 0)


@pytest.mark.parametrize(
    "body",
    [
        "{ a; { b; } }",
        "if (x) a; else if (y) { b; } else c[{1, 2}];",
        "for (j = 0; j < 3; j++) while (x) do a; while (b);",
        "switch (x) { case 1: a; }",
        "f([&] { return 1; });",
        "s = \"}\" /* } */ + '{'; // }",
    ],
)
def test_where_it_ends(body: str) -> None:
    text = f"for (i = 0; i < n; i++)\n  {body}"
    end = text.index("; // }") + 1 if "; // }" in text else len(text)
    assert for_statement(f"x; {text} rest;", 3).end == 3 + end


@pytest.mark.parametrize("body", ["{\n#if A\n}\n#else\n}\n#endif\n", "{", "(]);", "if (x) a", "do a; while (b)"])
def test_an_end_that_cannot_be_found(body: str) -> None:
    assert for_statement(f"for (i = 0; i < n; i++) {body}", 0).end is None
