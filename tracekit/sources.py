"""Finds the source files that a profile names: in the trace, below the current folder, below folders that are given."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from tracekit.formats.errors import TracekitError


def common_folder(files: Iterable[str]) -> str:
    """The folder that a program's files are in, whatever headers of the system's are among them.

    Without a slash at its end; empty if names are relative, or if there is no such folder but the root.
    """
    names = set(files)
    own = {name for name in names if not is_system(name)} or names
    if not own or not all(name.startswith("/") for name in own):
        return ""
    return os.path.commonpath({os.path.dirname(name) for name in own}).rstrip("/")


def is_system(file: str) -> bool:
    """Whether a file is one of the system's, or of Rust's library."""
    return file.startswith(("/usr/", "/rustc/"))


class Sources:
    """Text of source files.

    A profile may come from anywhere and name any file of this machine: nothing outside the folders is ever opened, but
    for headers of the system.
    """

    def __init__(self, embedded: Mapping[str, bytes], folders: Sequence[str | Path] = ()) -> None:
        self._embedded = embedded
        self._folders = [Path(folder).resolve() for folder in (*folders, ".")]
        self._known: dict[str, list[str] | None] = {}

    def lines(self, name: str) -> list[str] | None:
        """The lines of a file as a profile names it, without their ends; None if it is not found."""
        if name not in self._known:
            content = self._embedded.get(name)
            if content is None:
                content = self._read(name)
            self._known[name] = None if content is None else _lines(content)
        return self._known[name]

    def _read(self, name: str) -> bytes | None:
        for folder in self._folders:
            for path in _candidates(folder, name):
                found = _content(path, folder)
                if found is not None:
                    return found
        return _content(Path(name), None) if is_system(name) else None

    def missing(self, name: str) -> str:
        """What to do about a file that is not found, in a sentence."""
        folder = PurePosixPath(name).parent
        there = f" (it was compiled in {folder})" if name.startswith("/") else ""
        return (f"The source {name} is neither in the trace nor below the current folder: name its folder with "
                f"--source DIR{there}, or record with --with-sources.")


def _candidates(folder: Path, name: str) -> Iterable[Path]:
    """Where a file may be below `folder`: its whole path, then ever shorter ends of it."""
    if name:
        yield folder / name
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
    for start in range(len(parts)):
        yield folder.joinpath(*parts[start:])


def _content(path: Path, folder: Path | None) -> bytes | None:
    """What is in a file, if it really stands below `folder`; None stands for where the system's headers are."""
    try:
        inside = path.resolve()
        allowed = inside.is_relative_to(folder) if folder else _is_header(inside)
        return inside.read_bytes() if allowed and inside.is_file() else None
    except (OSError, ValueError):  # too long, a null byte, not readable
        return None


def _is_header(path: Path) -> bool:
    return path.parts[:2] == ("/", "usr") and "include" in path.parts[2:-1]


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")


def chosen_file(wanted: str, names: Collection[str]) -> str:
    """The file that `wanted` means: its name in the profile, or the end of one. Raises TracekitError if none, or many.
    """
    if wanted in names:
        return wanted
    tail = "/" + wanted.removeprefix("./").lstrip("/")
    found = sorted(name for name in names if name and ("/" + name).endswith(tail))
    if len(found) == 1:
        return found[0]
    if found:
        raise TracekitError(f"{wanted} may be {', '.join(found)}: name it with more of its path.")
    raise TracekitError(f"Nothing was recorded in {wanted}; `tracekit annotate` without a file lists the files.")
