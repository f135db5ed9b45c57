"""The folders that an assistant may read, and the traces and profile files in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracekit.formats.errors import TracekitError

SUFFIXES = (".zst", ".profile")
"""Of traces and profile files, by custom; others are found if they are named."""

MOST_FOLDERS = 5000
"""So many folders are looked into for runs."""


class Folders:
    """Paths below some folders, whatever links or `..` they go through."""

    def __init__(self, folders: Sequence[str | Path]) -> None:
        self.folders = [Path(folder).resolve() for folder in folders]

    def resolve(self, name: str) -> Path:
        """The file that `name` means: relative to one of the folders, or absolute.

        Raises TracekitError if it is not below one of them, or there is no such file.
        """
        inside = False
        for folder in self.folders:
            try:
                path = (folder / name).resolve()
                if not any(path.is_relative_to(allowed) for allowed in self.folders):
                    continue
                inside = True
                if path.is_file():
                    return path
            except (OSError, ValueError, RuntimeError):  # a loop of links, a null byte, too long
                continue
        shown = ", ".join(map(str, self.folders))
        name = repr(name[:200])
        if inside:
            raise TracekitError(f"There is no file {name} below {shown}; list_runs lists traces and profile files.")
        raise TracekitError(f"{name} is not below {shown}, which is all that this server reads.")

    def shown(self, path: Path) -> str:
        """A name that :meth:`resolve` takes: relative to the first of the folders, or absolute."""
        first = self.folders[0]
        return str(path.relative_to(first) if path.is_relative_to(first) else path)

    def runs(self) -> Iterator[Path]:
        """Files that may be traces or profile files, by name; hidden folders, and links, are not followed."""
        seen: set[Path] = set()
        looked = 0
        for top in self.folders:
            for folder, below, names in os.walk(top):
                looked += 1
                below[:] = sorted(name for name in below if not name.startswith(".")) if looked < MOST_FOLDERS else []
                for name in sorted(names):
                    path = Path(folder, name)
                    if name.endswith(SUFFIXES) and path not in seen and not path.is_symlink():
                        seen.add(path)
                        yield path
