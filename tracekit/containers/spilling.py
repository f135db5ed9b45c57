"""Summaries that are joined as they come, in order, in a tree; where memory is bounded those that wait lie on disk.

Two that stand for equally many are joined at once, so of n no more than log n wait, and each takes part in no more
joins than that. Those that wait are not needed until what comes after them has been joined; where there is a bound they
are packed, and the oldest go to disk first.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracekit.containers.serialization import deserialized, serialized


class Stack:
    """See above. `join`: makes one of two that follow each other; None: they are kept apart."""

    def __init__(self, join: Callable[[Any, Any], Any] | None) -> None:
        self.memory: int | None = None
        """Bytes that those that wait may take, packed; None: any number, and they are not packed."""
        self._join = join
        self._waiting: list[_Waiting] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0

    def push(self, summary: Any) -> None:
        """Take in the next one; one that cannot be packed (serialization.py) stays in memory."""
        stands_for = 1
        if self._join is not None:
            while self._waiting and self._waiting[-1].stands_for == stands_for:
                summary = self._join(self._waiting.pop().taken(), summary)
                stands_for *= 2
        self._waiting.append(_Waiting(summary, stands_for))
        if self.memory is not None:
            self._waiting[-1].pack()
            self._spill(self.memory)

    def all(self) -> list[Any]:
        """What is left, of those that are joined one; the stack is empty then."""
        left: list[Any] = []
        while self._waiting:
            newer = [self._waiting.pop().taken()]
            left = newer + left if self._join is None or not left else [self._join(newer[0], left[0])]
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        return left

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def spilled(self) -> int:
        """How many went to disk so far."""
        return self._files

    def _spill(self, memory: int) -> None:
        """Put the oldest on disk until the rest fits."""
        taken = sum(one.bytes for one in self._waiting)
        for one in self._waiting:
            if taken <= memory:
                return
            taken -= one.bytes
            if one.bytes:
                if self._folder is None:
                    self._folder = tempfile.TemporaryDirectory(prefix="tracekit-")
                self._files += 1
                one.write(Path(self._folder.name, f"{self._files}.summary"))


class _Waiting:
    """A summary, as it is, packed, or on disk; how many it stands for."""

    def __init__(self, summary: Any, stands_for: int) -> None:
        self.stands_for = stands_for
        self._summary = summary
        self._data: bytes | None = None
        self._file: Path | None = None

    @property
    def bytes(self) -> int:
        """Of memory, once it is packed."""
        return len(self._data or b"")

    def pack(self) -> None:
        """Make bytes of it, if it can be."""
        with contextlib.suppress(pickle.PicklingError):
            self._data, self._summary = serialized(self._summary), None

    def write(self, file: Path) -> None:
        """Put what is packed on disk."""
        file.write_bytes(self._data or b"")
        self._file, self._data = file, None

    def taken(self) -> Any:
        """The summary, for whoever takes it over."""
        if self._file is not None:
            self._data = self._file.read_bytes()
            self._file.unlink()
        return self._summary if self._data is None else deserialized(self._data)
