"""What analyses in other processes, here or elsewhere, as those see it who give it work: tasks in, words out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Task = tuple[int, Mapping[str, Any]]
"""Its number, and what its process reads (many/worker.py)."""

ENDS = ("done", "failed", "starved", "broke")
"""The last word of a task is one of these."""


@dataclass(frozen=True)
class Said:
    """What a process said of its task, or how it ended."""

    number: int
    """Of the task."""
    word: str
    """``began``, ``at``, or one of ENDS: a process's words (many/worker.py), and ``broke``: it ended without."""
    content: Any
    """Beside the word; of ``broke`` the exit status, negative for a signal."""


class Pool(Protocol):
    """Tasks that run. A context manager: its end ends them all."""

    def __enter__(self) -> Pool: ...

    def __exit__(self, *error: object) -> None: ...

    def said(self) -> Iterator[Said]:
        """What they say, as they say it, until the last one has ended."""


@dataclass(frozen=True)
class Workers:
    """Where tasks can be run."""

    pool: Callable[[Iterable[Task], int], Pool]
    """Runs tasks, so many at once, taking each from the iterable when there is room for it."""
    count: int
    """How many run beside one another."""
