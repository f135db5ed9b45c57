"""Names of a program's source files, and the folders that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import commonpath, isabs, join, normpath, relpath

from tracekit.program.sources import common_folder


class SourceNames:
    """The names of files as profiles have them: as the compiler was given them.

    If the units of a program were compiled in several folders, relative names start from the folder around them all.
    """

    def __init__(self, paths: Sequence[str], folders: Sequence[str]) -> None:
        """One path and one compilation folder (empty if it is not known) for each file."""
        self.compilation = _around(set(folders) - {""})
        """The folder that relative names start from; empty if it is not known, or there are several far apart."""
        self.names = [self._name(path, folder) for path, folder in zip(paths, folders)]
        """The name of each file."""
        self.common = common_folder(self.names, self.compilation)
        """The folder of all files but those of the system, relative or absolute as they are."""

    def _name(self, path: str, folder: str) -> str:
        if not path or isabs(path) or folder in ("", self.compilation):
            return path
        return normpath(join(relpath(folder, self.compilation), path) if self.compilation else join(folder, path))


def _around(folders: set[str]) -> str:
    """The folder that these are in, or are."""
    if len(folders) <= 1:
        return next(iter(folders), "")
    plain = {normpath(folder) for folder in folders}
    return commonpath(plain).rstrip("/") if all(map(isabs, plain)) else ""
