"""A unified diff of edits of one file, made from the edits themselves: a large file is not compared with itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from typing import NamedTuple

from tracekit.patches.edits import Edit, applied

CONTEXT = 3
"""Lines around a change."""


class Change(NamedTuple):
    """Lines [first, last) of the old text, from 0, become `new`."""

    first: int
    last: int
    new: list[str]


def unified_diff(name: str, text: str, edits: Collection[Edit]) -> str:
    """The diff of a file called `name`, for `git apply` and `patch -p1`."""
    lines = _lines(text)
    changes = _changes(text, lines, edits)
    head = name + ("\t" if " " in name else "")
    parts = [f"--- a/{head}\n", f"+++ b/{head}\n"]
    shift = 0
    for hunk in _hunks(changes):
        first, last = max(hunk[0].first - CONTEXT, 0), min(hunk[-1].last + CONTEXT, len(lines))
        body, at = [], first
        for change in hunk:
            body += [_marked(" ", line) for line in lines[at : change.first]]
            body += [_marked("-", line) for line in lines[change.first : change.last]]
            body += [_marked("+", line) for line in change.new]
            at = change.last
        body += [_marked(" ", line) for line in lines[at:last]]
        grown = sum(len(change.new) - (change.last - change.first) for change in hunk)
        parts.append(f"@@ -{_range(first, last - first)} +{_range(first + shift, last - first + grown)} @@\n")
        parts += body
        shift += grown
    return "".join(parts)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _changes(text: str, lines: list[str], edits: Collection[Edit]) -> list[Change]:
    """The edits as changes of whole lines."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    spans: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits):
        first = bisect_right(starts, edit.start) - 1
        inserts = edit.start == edit.end == starts[first] and edit.new.endswith("\n")
        last = first if inserts else min(bisect_right(starts, edit.end), len(lines))
        if spans and first < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]), [*spans[-1][2], edit])
        else:
            spans.append((first, last, [edit]))
    made = []
    for first, last, inside in spans:
        begin, end = starts[first], starts[last]
        moved = [Edit(edit.start - begin, edit.end - begin, edit.new) for edit in inside]
        made.append(Change(first, last, _lines(applied(text[begin:end], moved))))
    return made


def _hunks(changes: list[Change]) -> list[list[Change]]:
    """Changes whose surrounding lines meet stand together."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change.first - hunks[-1][-1].last <= 2 * CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _range(first: int, count: int) -> str:
    """Lines from 1; of none, the line before."""
    return f"{first + (count > 0)}" + (f",{count}" if count != 1 else "")


def _marked(mark: str, line: str) -> str:
    return mark + line + ("" if line.endswith("\n") else "\n\\ No newline at end of file\n")
