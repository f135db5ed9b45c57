"""Where text is broken that is longer than the terminal is wide: between words and the parts of names, if it can be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

NARROWEST = 12
"""Columns below which no cell is narrowed, nor a line folded: names cannot be read in smaller pieces."""
HANGING = 4
"""So far what was broken off a line is indented below it."""
GAP = 2
"""Columns between two cells."""

_EMPHASIS = re.compile(r"\x1b\[\d+m")
_WORD = re.compile(r".+?(?: +|$)")
_PART = re.compile(r".+?(?:::|(?<=[,>/])(?!:)|$)")
"""Up to where a word may be broken that is longer than a line: behind `::`, commas, slashes, arguments of templates."""
_PICTURE = re.compile(r".*\|.*\|")
"""A line of a picture made of characters, such as a heat map's: in two pieces it shows nothing."""
_INDENTED = re.compile(r"((?:\x1b\[\d+m)*)( *)(.*)")


def fold(text: str, width: int, later: int = 0) -> list[str]:
    """A text without line ends in lines of at most `width` characters, those after the first of at most `later`.

    `later` is no more than `width` (0: the same). Escape sequences of the terminal do not count, and a word with one in
    it stays whole.
    """
    lines = [""]
    for piece in _pieces(text, later or width):
        longest = width if len(lines) == 1 else later or width
        if lines[-1] and _columns(lines[-1] + piece.rstrip(" ")) > longest:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip(" ") for line in lines]


def _pieces(text: str, width: int) -> Iterator[str]:
    for word in _WORD.findall(text):
        if _columns(word.rstrip(" ")) <= width or _EMPHASIS.search(word):
            yield word
        else:
            for part in _PART.findall(word):
                yield from (part[at : at + width] for at in range(0, len(part), width))


def _columns(text: str) -> int:
    return len(_EMPHASIS.sub("", text))


def fold_lines(text: str, width: int) -> str:
    """Each line of the text with at most `width` characters (0: any number), and what was broken off below it."""
    return "\n".join(_fold_line(line, width) for line in text.split("\n")) if width else text


def _fold_line(line: str, width: int) -> str:
    indented = _INDENTED.fullmatch(line)
    if _columns(line) <= width or _PICTURE.fullmatch(line) or indented is None:
        return line
    emphasis, indent, rest = indented.groups()
    below = " " * (len(indent) + HANGING)
    if width - len(below) < NARROWEST:
        return line
    return emphasis + indent + f"\n{below}".join(fold(rest, width - len(indent), width - len(below)))


def narrowed(widths: Sequence[int], numbers: frozenset[int], width: int) -> list[int]:
    """The widths of a table's columns so that its rows take no more than `width`, if NARROWEST allows that.

    The widest columns become narrower, to one width; those of `numbers` never do.
    """
    texts = [column for column in range(len(widths)) if column not in numbers]
    left = width - GAP * (len(widths) - 1) - sum(widths[column] for column in numbers)
    most = max((widths[column] for column in texts), default=0)
    while most > NARROWEST and sum(min(widths[column], most) for column in texts) > left:
        most -= 1
    return [min(each, most) if column in texts else each for column, each in enumerate(widths)]
