"""Where queries end in what is typed."""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"""
    (?P<end> ; )
    | (?P<gap> \s+ | --[^\n]* | /\*.*?\*/ )
    | [eE]'(?: [^'\\] | \\. | '' )*' | '(?: [^'] | '' )*' | "(?: [^"] | "" )*" | (?P<tag>\$\w*\$).*?(?P=tag)
    | (?P<open> ['"] | /\* | \$\w*\$ )
    | \w+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""What SQL is made of, as far as a semicolon in it may be none that ends a query: strings, names and comments."""


def split(text: str) -> tuple[list[str], str]:
    """Queries that a semicolon ends, each without it, and what is typed of the next one.

    Those of nothing but space and comments are left out, as the next one is then.
    """
    queries: list[str] = []
    start, is_empty = 0, True
    for token in _TOKENS.finditer(text):
        if token["end"]:
            if not is_empty:
                queries.append(text[start : token.start()])
            start, is_empty = token.end(), True
        elif token["open"]:
            return queries, text[start:]
        elif not token["gap"]:
            is_empty = False
    return queries, "" if is_empty else text[start:]
