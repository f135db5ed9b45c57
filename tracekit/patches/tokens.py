"""The tokens of C and C++ as far as loops need them: words, numbers, literals and operators, with their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Token(NamedTuple):
    """A token: text[start:end]."""

    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?P<skipped>\s+|\\\n|//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
      |(?P<raw>(?:u8|u|U|L)?R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
      |(?P<literal>(?:u8|u|U|L)?(?:"(?:[^"\\\n]|\\.|\\\n)*"|'(?:[^'\\\n]|\\.|\\\n)*'))
      |(?P<number>\.?\d(?:[eEpP][+-]|['\w.])*)
      |(?P<word>[A-Za-z_$][\w$]*)
      |(?P<operator>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|<<|>>|::|.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str, start: int = 0) -> list[Token]:
    """The tokens from `start` to the end; a line of the preprocessor is one token."""
    found: list[Token] = []
    at = start
    while at < len(text):
        if text[at] == "#" and not text[text.rfind("\n", 0, at) + 1 : at].strip():
            match = _LINE.match(text, at)
            assert match is not None
            found.append(Token("#", at, match.end()))
            at = match.end()
            continue
        match = _TOKEN.match(text, at)
        assert match is not None, "the last alternative matches any letter"
        if match.lastgroup != "skipped":
            found.append(Token(match[0], at, match.end()))
        at = match.end()
    return found


_LINE = re.compile(r"(?:[^\n\\]|\\.|\\\n)*", re.DOTALL)

OPENING = {"(": ")", "[": "]", "{": "}"}


def closing(row: Sequence[Token], at: int) -> int | None:
    """The position of the bracket that closes the one at `at`; None if they do not match, or a # line is between."""
    open_: list[str] = []
    for position in range(at, len(row)):
        text = row[position].text
        if text in OPENING:
            open_.append(OPENING[text])
        elif text in (")", "]", "}"):
            if open_.pop() != text:
                return None
            if not open_:
                return position
        elif text == "#":
            return None
    return None


def split(row: Sequence[Token], separator: str) -> list[list[Token]]:
    """What stands between separators that are in no brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in row:
        depth += (token.text in OPENING) - (token.text in (")", "]", "}"))
        if token.text == separator and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
