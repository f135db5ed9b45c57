"""The directives of advise's profile as one patch of the program's source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from posixpath import basename, commonpath, dirname, isabs, relpath
from typing import Any, NamedTuple

from tracekit.patches.diff import unified_diff
from tracekit.patches.edits import Edit, Source, Wanted
from tracekit.patches.for_statement import SHARED_OUT, HasDirective, Refused
from tracekit.program.sources import Sources, is_system, plain_path, whole_path

Json = Mapping[str, Any]


class Patch(NamedTuple):
    """A diff, and what is to be said beside it."""

    diff: bytes
    notes: list[str]
    """Sentences: loops that have no directive in it, and why; where rounding may differ."""


class _Change(NamedTuple):
    """What becomes of one file."""

    whole: str  # its name, absolute if that is known
    path: Path | None  # where it was found
    text: str
    edits: list[Edit]


def make_patch(loops: Sequence[Json], sources: Sources, folders: Sequence[str] = (), compilation: str = "") -> Patch:
    """The directives of all parallel loops that lie in no other one, as changes of their files.

    `folders` are those that the diff may be applied in, beside the current one; `compilation` is the folder that
    relative names start from, or nothing. Raises TracekitError if a file is not found, or is not the one that was
    compiled.
    """
    parallel = [row for row in loops if row["openmp"]]
    notes: list[str] = []
    covered: list[Json] = []
    by_file: dict[str, list[Json]] = {}
    for row in parallel:
        if not row["openmp"]["pragma"]:
            continue
        if is_system(plain_path(row["loop"]["file"])):
            notes.append(_note(row, "it stands in a header of the system"))
        else:
            by_file.setdefault(row["loop"]["file"], []).append(row)
    changes: list[_Change] = []
    for name, rows in sorted(by_file.items()):
        found = sources.compiled(name)
        source = Source(name, found.content.decode("latin-1"))
        covered += [row for row in loops if row["loop"]["file"] == name and _shares_out_itself(source, row)]
        edits = _edits(source, rows, covered, notes)
        if edits:
            changes.append(_Change(whole_path(name, compilation), found.path, source.text, edits))
    diffs = []
    for change, (root, below) in zip(changes, _places_of(changes, [*folders, "."], compilation)):
        diffs.append(unified_diff(below, change.text, change.edits))
        if root and Path(root).resolve() != Path.cwd():
            notes.append(f"{below} is named from {root}: apply the patch there (patch -p1, git apply).")
    without = [_without(row, covered) for row in parallel if not row["openmp"]["pragma"]]
    return Patch("".join(diffs).encode("latin-1"), list(dict.fromkeys([*without, *notes])))


def _without(row: Json, covered: Sequence[Json]) -> str:
    """Why a parallel loop has no directive: there is none for it, or one around it, which is enough."""
    outer = next((outer for outer in covered if _holds(outer["loop"], row["loop"])), None)
    if any(each is row for each in covered):
        return _note(row, SHARED_OUT)
    if outer is None:
        return _note(row, row["openmp"]["missing"])
    return f"{_place(row)} needs no directive: it lies in the loop at {_place(outer)}, which has one."


def _shares_out_itself(source: Source, row: Json) -> bool:
    """Has the source a directive before a loop for which there is none here?"""
    if row["openmp"] and row["openmp"]["pragma"]:
        return False
    return source.has_directive(Wanted(row["loop"]["line"], row["loop"]["column"], "", False))


def _edits(source: Source, rows: Sequence[Json], covered: list[Json], notes: list[str]) -> list[Edit]:
    """The edits of one file, outermost loops first: what lies in one that has a directive needs none.

    Adds to `covered` the loops that get one, or have one, and to `notes` what is to be said.
    """
    edits: list[Edit] = []
    for row in sorted(rows, key=lambda row: (row["loop"]["line"], -row["loop"]["end_line"], row["loop"]["depth"])):
        if any(_holds(outer["loop"], row["loop"]) for outer in covered):
            continue
        loop = row["loop"]
        hoists = any(case.get("rests_on") for case in row["cases"])
        try:
            edits += source.edits(Wanted(loop["line"], loop["column"], row["openmp"]["pragma"], hoists))
        except Refused as reason:
            notes.append(_note(row, str(reason)))
            if isinstance(reason, HasDirective):
                covered.append(row)
            continue
        covered.append(row)
        if row["openmp"]["rounding"]:
            notes.append(f"{_place(row)}: floating point is accumulated in another order; the last digits may differ.")
    return edits


def _holds(outer: Json, inner: Json) -> bool:
    same = outer["file"] == inner["file"]
    return bool(same and outer["line"] <= inner["line"] and inner["end_line"] <= outer["end_line"])


def _place(row: Json) -> str:
    return f"{basename(row['loop']['file'])}:{row['loop']['line']}"


def _note(row: Json, reason: str) -> str:
    return f"{_place(row)} is left out: {reason}."


def _places_of(changes: Sequence[_Change], folders: Sequence[str], compilation: str) -> list[tuple[str, str]]:
    """For each file the folder in which its diff is to be applied, empty if there is none, and its name below it.

    Files that lie in none of `folders` have one folder in common, for a patch is applied in one place: where they were
    compiled, if all lie there.
    """
    places = [_place_of(change.path, folders) for change in changes]
    elsewhere = [change.whole for change, place in zip(changes, places) if place is None and isabs(change.whole)]
    root = compilation if isabs(compilation) else ""
    if elsewhere and (not root or any(relpath(whole, root).startswith("..") for whole in elsewhere)):
        root = commonpath([dirname(whole) for whole in elsewhere])
    return [
        place or ((root, relpath(change.whole, root)) if isabs(change.whole) else ("", basename(change.whole)))
        for change, place in zip(changes, places)
    ]


def _place_of(path: Path | None, folders: Sequence[str]) -> tuple[str, str] | None:
    """The first of some folders that holds a file, and the file's name below it."""
    for folder in folders:
        if path is not None and path.is_relative_to(Path(folder).resolve()):
            return folder, path.relative_to(Path(folder).resolve()).as_posix()
    return None
