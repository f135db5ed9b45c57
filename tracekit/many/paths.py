"""Which traces a command line names: files, folders, patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence

from tracekit.formats.errors import TracekitError
from tracekit.formats.remote import is_url

SUFFIX = ".zst"
"""Of a folder, the files of this ending are traces: ``tracekit record`` keeps an older one as ``trace.zst.old``."""


def traces_of(given: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The traces that `given` names, in that order, each once; those of a folder or a pattern by name.

    A folder stands for its files ``*.zst``, not for those of the folders in it; a URL stands for itself. Raises
    TracekitError for a folder without any, and for a pattern that no file matches. What names no file otherwise is
    left to whoever opens it.
    """
    found: dict[str, str] = {}
    for one in given:
        name = os.fspath(one)
        if is_url(name):
            found.setdefault(name, name)
            continue
        for path in _files(name):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _files(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        inside = sorted(entry.path for entry in os.scandir(name) if entry.name.endswith(SUFFIX) and entry.is_file())
        if not inside:
            raise TracekitError(f"The folder {name} holds no trace: none of its files ends in {SUFFIX}.")
        yield from inside
    elif os.path.exists(name) or not glob.has_magic(name):
        yield name
    else:
        matching = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not matching:
            raise TracekitError(f"No file matches {name}.")
        yield from matching
