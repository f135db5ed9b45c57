"""A `for` statement in the text of a program: the parts of its head, as OpenMP wants it, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracekit.patches.tokens import Token, closing, split, tokens

RELATIONS = ("<", "<=", ">", ">=", "!=")


class Refused(Exception):  # noqa: N818 - it is an answer
    """Why a directive cannot be inserted, in words for the user."""


SHARED_OUT = "a directive of OpenMP stands before it already"


class HasDirective(Refused):
    """The source has one of OpenMP already."""


class _EndlessError(Exception):
    """Lines of the preprocessor, or brackets that do not match, stand in a statement."""


class ForStatement(NamedTuple):
    """A loop in OpenMP's canonical form, or a range-based `for` of C++, which OpenMP 5 accepts."""

    counter: str  # "" of a range-based one
    bound: tuple[int, int]  # where the counter's bound stands, as an expression: text[first:last]; of a range no letter
    end: int | None  # where the statement ends, behind its last letter; None if that cannot be found surely


def for_statement(text: str, start: int) -> ForStatement:
    """The statement at text[start:]. Raises Refused if it is none, or its head is none that OpenMP accepts."""
    if not text.startswith("for", start):
        raise Refused("no `for` stands there in the text (a macro may make the loop)")
    row = tokens(text, start)
    close = closing(row, 1) if len(row) > 1 and row[0].text == "for" and row[1].text == "(" else None
    if close is None:
        raise Refused("the head of the `for` cannot be read")
    try:
        end = row[_statement_end(row, close + 1)].end
    except _EndlessError:
        end = None
    head = row[2:close]
    parts = split(head, ";")
    if len(parts) == 1 and len(split(head, ":")) == 2:
        return ForStatement("", (head[-1].end, head[-1].end), end)
    if len(parts) != 3 or not all(parts):
        raise Refused("OpenMP wants a head that sets, tests and steps a counter")
    counter = _counter(parts[0])
    bound = _bound(parts[1], counter)
    _check_step(parts[2], counter)
    return ForStatement(counter, bound, end)


def _counter(init: Sequence[Token]) -> str:
    """The variable that the first part of the head sets."""
    words = [token.text for token in init]
    at = words.index("=") if "=" in words else 0
    if at < 1 or at == len(words) - 1 or len(split(init, ",")) > 1 or not _is_name(words[at - 1]):
        raise Refused("OpenMP wants a head that sets one counter, by `=`")
    if not all(_is_name(word) or word in ("::", "*", "<", ">") for word in words[: at - 1]):
        raise Refused("OpenMP wants a head that sets one counter, by `=`")
    return words[at - 1]


def _bound(test: Sequence[Token], counter: str) -> tuple[int, int]:
    """The expression that the counter is compared with."""
    depth, relations = 0, []
    for position, token in enumerate(test):
        depth += (token.text in "([{") - (token.text in ")]}")
        if not depth and token.text in RELATIONS:
            relations.append(position)
        elif not depth and token.text in ("&&", "||", "?", ",", "=", "&", "|", "^", "=="):
            raise Refused("OpenMP wants a test that compares the counter with its bound, and does nothing else")
    if len(relations) != 1:
        raise Refused("OpenMP wants a test that compares the counter with its bound, and does nothing else")
    left, right = test[: relations[0]], test[relations[0] + 1 :]
    if [token.text for token in left] == [counter]:
        bound = right
    elif [token.text for token in right] == [counter]:
        bound = left
    else:
        raise Refused("OpenMP wants a test that compares the counter itself with its bound")
    if not bound or any(_is_variable(bound, at, counter) for at in range(len(bound))):
        raise Refused("its bound depends on its counter")
    if any(token.text in ("++", "--", "=") for token in bound):
        raise Refused("its test assigns something")
    return bound[0].start, bound[-1].end


def _is_variable(row: Sequence[Token], at: int, name: str) -> bool:
    """Is the token at `at` the variable `name`, and no member of that name?"""
    return row[at].text == name and (at == 0 or row[at - 1].text not in (".", "->", "::"))


def _check_step(step: Sequence[Token], counter: str) -> None:
    words = [token.text for token in step]
    if sorted(words) in (sorted((counter, "++")), sorted((counter, "--"))):
        return
    if len(words) > 2 and words[0] == counter:
        rest = words[2:]
        if words[1] in ("+=", "-=") and counter not in rest and "," not in rest:
            return
        if words[1] == "=" and rest.count(counter) == 1 and "," not in rest:
            if rest[0] == counter and len(rest) > 2 and rest[1] in ("+", "-"):
                return
            if rest[-1] == counter and len(rest) == 3 and rest[1] == "+":
                return
    raise Refused("OpenMP wants a head that steps its counter by a fixed number, and does nothing else")


def _is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] == "_"


def _statement_end(row: Sequence[Token], at: int) -> int:
    """The position of the last token of the statement that begins at `at`."""
    if at >= len(row) or row[at].text == "#":
        raise _EndlessError
    word = row[at].text
    if word == "{":
        return _close(row, at)
    if word in ("for", "while", "switch", "if"):
        head = at + 1 + (word == "if" and row[at + 1].text == "constexpr")
        end = _statement_end(row, _close(row, head) + 1)
        has_else = word == "if" and end + 1 < len(row) and row[end + 1].text == "else"
        return _statement_end(row, end + 2) if has_else else end
    if word == "do":
        at = _statement_end(row, at + 1) + 1
    while row[at].text != ";":
        at = _close(row, at) + 1 if row[at].text in ("(", "[", "{") else at + 1
        if at >= len(row) or row[at].text in ("}", "#"):
            raise _EndlessError
    return at


def _close(row: Sequence[Token], at: int) -> int:
    end = closing(row, at)
    if end is None:
        raise _EndlessError
    return end
