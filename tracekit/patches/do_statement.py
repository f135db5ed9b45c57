"""A directive before a DO construct of Fortran, in free and in fixed form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracekit.formats.fortran_sources import is_fixed_form
from tracekit.patches.for_statement import SHARED_OUT, HasDirective, Refused

WIDTH = {True: 72, False: 132}
"""How long a line may be, in fixed form and in free."""

_DO = re.compile(r"(?:\w+[ \t]*:[ \t]*)?do\b[ \t]*(?:\d+[ \t]*,?[ \t]*)?[a-z]\w*[ \t]*=", re.IGNORECASE)
_DIRECTIVE = {
    True: re.compile(r"(?:[ \t]*!|[c*])(?:\$\w+|\w+\$)", re.IGNORECASE),
    False: re.compile(r"[ \t]*!(?:\$\w+|\w+\$)", re.IGNORECASE),
}
"""What a comment begins with that is a directive to a compiler, in fixed form and in free."""


def lines_before_do(name: str, text: str, start: int, directive: str) -> tuple[int, list[str]]:
    """Where lines with a directive for the DO at text[start:] are to be inserted, and these lines.

    Raises Refused if no DO with a counter stands there, or something before it that a directive would part from it.
    """
    if not _DO.match(text, start):
        raise Refused("no DO construct with a counter stands there in the text")
    at = text.rfind("\n", 0, start) + 1
    if text[at:start].strip():
        raise Refused("a label or another statement stands before it in its line")
    check_before_do(name, text, start)
    is_fixed = is_fixed_form(name, text)
    indent = "" if is_fixed else text[at:start]
    return at, list(_folded(directive, indent, is_fixed))


def check_before_do(name: str, text: str, start: int) -> None:
    """Raises HasDirective or Refused for a directive to a compiler in the line before that of text[start:]."""
    before = text[: text.rfind("\n", 0, start) + 1].rstrip().rpartition("\n")[2]
    found = _DIRECTIVE[is_fixed_form(name, text)].match(before)
    if found and found[0].lower().endswith("$omp"):
        raise HasDirective(SHARED_OUT)
    if found:
        raise Refused("a directive stands before it already")


def _folded(directive: str, indent: str, is_fixed: bool) -> Iterator[str]:
    """The directive in lines that are no longer than the form allows."""
    sentinel = directive.partition(" ")[0]
    room = WIDTH[is_fixed] - len(" &")
    line = indent + sentinel
    for word in directive.split(" ")[1:]:
        if len(line) + 1 + len(word) > room and not line.endswith((sentinel, f"{sentinel}&")):
            yield line if is_fixed else f"{line} &"
            line = f"{indent}{sentinel}&"
        line += f" {word}"
    yield line
