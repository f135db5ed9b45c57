"""Runs that were asked about lately, with the profiles that answers needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

from tracekit.query.run import Run

KEPT = 6
"""Runs, and results of other kinds, that are kept in memory."""

_Made = TypeVar("_Made")


class Runs:
    """Keeps what was made of files for as long as the files are as they were."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs
        self._kept: OrderedDict[Hashable, object] = OrderedDict()

    def run(self, path: Path) -> Run:
        """The profiles of a trace or a profile file."""
        return self.kept(path, "run", lambda: Run(str(path), self.jobs))

    def kept(self, path: Path, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """What `make` returns, made once for each file as it is and `what` is made of it."""
        status = path.stat()
        key = (path, status.st_mtime_ns, status.st_size, what)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]  # type: ignore[return-value]
        made = make()
        self._kept[key] = made
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made
