"""How places are shown in text: files by short names, code of headers with the user's line, loops told apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from posixpath import isabs, join, normpath
from typing import Any

from tracekit.program.sources import common_folder, in_crate, is_system, plain_path
from tracekit.render.names import SCALARS, Json, with_brief_names

_MACHINE = r"(?:[^/]*-linux-gnu[^/]*/)?"
_INCLUDED = re.compile(
    r"/(?:usr/src/rustc-|rustc/)[^/]+/(?:vendor/)?|/rust/deps/|/.*/lib/rustlib/src/rust/"
    rf"|/usr/.*?include/{_MACHINE}(?:c\+\+/[^/]+/)?{_MACHINE}"
)
"""The folders that the system's headers, and files of Rust's library, are in."""


@dataclass(frozen=True)
class FileNames:
    """How the files of a program are named for a reader.

    Files below `folder` are named relative to it, and if `headers`, the system's as they are included. `folder` is
    relative where names are; `compilation` is the folder that they start from then (empty: not known).
    """

    folder: str
    headers: bool
    compilation: str = ""

    def short(self, file: str) -> str:
        """Always an end of the whole path without detours."""
        file = plain_path(file)
        if crate := in_crate(file):
            return crate
        if file and isabs(self.folder) and not isabs(file) and isabs(self.compilation):
            file = normpath(join(self.compilation, file))
        if self.folder and file.startswith(self.folder + "/"):
            return file.removeprefix(self.folder + "/")
        return _INCLUDED.sub("", file, count=1) if self._is_header(file) else file

    def _is_header(self, file: str) -> bool:
        return self.headers and is_system(file)

    def shown(self, rows: Any) -> Any:
        """A copy of a JSON value with short names of files and brief names of functions.

        Places in headers have ``system``: True, so that :func:`place_text` says where they were inlined.
        """

        @cache  # there are few files
        def of_file(file: str) -> Json:
            header = {"system": True} if self._is_header(plain_path(file)) else {}
            return {"file": self.short(file), **header}

        def shown(place: Json) -> Json:
            return {**place, **of_file(place["file"])}

        return with_brief_names(rows, shown)


def file_names(files: Iterable[str], folders: Mapping[str, str]) -> FileNames:
    """The names of these files, of a report with these `folders` (or none: of an older trace, or of many).

    If all are the system's, they are named as any program's.
    """
    compilation = folders.get("compilation", "")
    if "sources" in folders:
        return FileNames(folders["sources"], not is_system(folders["sources"] + "/"), compilation)
    plain = {plain_path(file) for file in files if file}
    return FileNames(common_folder(plain, compilation), not all(map(is_system, plain)), compilation)


def without_folder(rows: Any, report: Json) -> tuple[Any, str]:
    """A JSON value of a report as :meth:`FileNames.shown` has it, and the folder that files are named by (or nothing).

    The folder is that of the whole program; if the report does not say it, that of the files in the value.
    """
    folders = report.get("folders", {})
    files: set[str] = set()
    if "sources" not in folders:
        _note_files(rows, files)
    names = file_names(files, folders)
    return names.shown(rows), names.folder


def short_place(place: str, folder: str, report: Json) -> str:
    """FILE:LINE, as an option of the report has it, with the file's name as below `folder`."""
    file, _, line = place.rpartition(":")
    return f"{FileNames(folder, True, report.get('folders', {}).get('compilation', '')).short(file)}:{line}"


def _note_files(value: Any, files: set[str]) -> None:
    """Add the file names in a JSON value."""
    if isinstance(value, Mapping):
        if isinstance(value.get("file"), str):
            files.add(value["file"])
        for key, part in value.items():
            if key != "file" and part.__class__ not in SCALARS:
                _note_files(part, files)
    elif isinstance(value, list):
        for part in value:
            _note_files(part, files)


NO_LINE = "(no line: compile with -g)"


def place_text(place: Json) -> str:
    """file:line:column; of a function as a whole file:line, and of code without a line file:~line, of what is nearest.

    Code of a header that was inlined has the user's line behind it. Where there is no debug information at all, it is
    the file if that is known, or `(no line: compile with -g)`.
    """
    if not place["line"]:
        text = place["file"] or NO_LINE
    elif place.get("nearby"):
        text = f"{place['file']}:~{place['line']}"
    else:
        text = _line_text(place)
    return text + user_text(place)


def user_text(place: Json) -> str:
    """` (from app.cc:12:5)`: where code of the system's headers was inlined, loops at several places; else nothing."""
    if not place.get("system"):
        return ""
    users = place.get("called_at") or [user for user in place.get("inlined_at", ()) if not user.get("system")][:1]
    shown = list(dict.fromkeys(_line_text(user) for user in users))
    return f" (from {', '.join(shown[:USERS])}{', ...' if shown[USERS:] else ''})" if shown else ""


def _line_text(place: Json) -> str:
    return f"{place['file']}:{place['line']}" + (f":{place['column']}" if place.get("column") else "")


USERS = 2
"""So many of the places that a loop was inlined into are named."""


def code_text(place: Json) -> str:
    """`app.c:12:5 main`, or what is known of it; what no instruction of the program did is library code."""
    if place["file"]:
        return f"{place_text(place)} {place['function']}".rstrip()
    return f"{place['function']} (no line)" if place["function"] else "library code"


def instruction_text(row: Json) -> str:
    """`load app.c:12:5 main`."""
    return f"{row['kind']} {place_text(row)} {row['function']}"


def loop_text(loop: Json) -> str:
    """A loop or a recursion level in one word, with its function."""
    if "recursion" in loop:
        return f"recursion {loop['recursion']}"
    nested = f" (depth {loop['depth']})" if loop.get("alike") else ""
    return f"{place_text(loop)}{nested} {loop['function']}"


def loops_told_apart(rows: Iterable[Json], loops: Iterable[Json] | None = None) -> list[Json]:
    """Rows with a ``loop``; where two loops at one place are nested, :func:`loop_text` gives their depths.

    Clang makes two of a loop that is continued in several ways, and a macro may hold several. `loops`: of all rows, if
    these are some of them.
    """
    rows = list(rows)
    depths: defaultdict[Any, set[int]] = defaultdict(set)
    for loop in (row["loop"] for row in rows) if loops is None else loops:
        depths[_look(loop)].add(loop.get("depth", 0))
    return [
        {**row, "loop": {**row["loop"], "alike": True}} if len(depths[_look(row["loop"])]) > 1 else row for row in rows
    ]


def _look(loop: Json) -> Sequence[Any]:
    return tuple(loop.get(part) for part in ("recursion", "file", "line", "column", "function"))
