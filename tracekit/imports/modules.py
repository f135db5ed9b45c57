"""Where binaries were loaded: DynamoRIO's ``modules.log``, or what Linux says in ``/proc/PID/maps``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from tracekit.formats.errors import TracekitError

_DYNAMORIO = re.compile(r"\s*\d+,\s*(\d+),\s*0x([0-9a-f]+),\s*0x([0-9a-f]+),.*?([^,]+)", re.IGNORECASE)
_LINUX = re.compile(r"([0-9a-f]+)-([0-9a-f]+) [-rwxsp]{4} [0-9a-f]+ \S+ \d+(?:\s+(/.*))?")


class Loaded(NamedTuple):
    """A binary in memory."""

    path: str
    ranges: list[tuple[int, int]]
    """First address and end of its parts; the first part is where its file begins."""

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return os.path.basename(self.path)


def read(path: str) -> list[Loaded]:
    """All binaries of a list. Raises TracekitError if it cannot be read, or is neither."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from None
    found = _dynamorio(lines) if lines and lines[0].startswith("Module Table:") else _linux(lines)
    if not found:
        raise TracekitError(f"{path} is no list of modules: neither DynamoRIO's modules.log nor a /proc/PID/maps.")
    return found


def _dynamorio(lines: Iterable[str]) -> list[Loaded]:
    """Rows of a module's parts name the module by the number of its first one."""
    modules: dict[str, Loaded] = {}
    for row in filter(None, map(_DYNAMORIO.fullmatch, lines)):
        # Where the path should be, DynamoRIO writes the bytes of the vDSO, which is no file.
        path = row[4].strip() if row[4].isprintable() else "vdso"
        loaded = modules.setdefault(row[1], Loaded(path, []))
        loaded.ranges.append((int(row[2], 16), int(row[3], 16)))
    return list(modules.values())


def _linux(lines: Iterable[str]) -> list[Loaded]:
    modules: dict[str, Loaded] = {}
    for row in filter(None, map(_LINUX.fullmatch, lines)):
        if row[3]:
            modules.setdefault(row[3], Loaded(row[3], [])).ranges.append((int(row[1], 16), int(row[2], 16)))
    return list(modules.values())
