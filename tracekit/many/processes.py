"""Tasks, one for each trace, in processes of their own: several at once, the longest first."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tracekit.many.worker import PROGRAM

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


class Processes:
    """Runs tasks, `most` at once, in the order in which they are given. A context manager: its end ends them all."""

    def __init__(self, tasks: Sequence[Task], most: int) -> None:
        self._waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            self._waiting.put(task)
        self._left = len(tasks)
        self._said: queue.SimpleQueue[Said | BaseException] = queue.SimpleQueue()
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._is_over = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(min(most, len(tasks)))]

    def __enter__(self) -> Processes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._is_over = True
            for process in self._running:
                process.kill()
        for thread in self._threads:
            thread.join()

    def said(self) -> Iterator[Said]:
        """What the processes say, as they say it, until the last task has ended."""
        while self._left:
            said = self._said.get()
            if isinstance(said, BaseException):
                raise said
            self._left -= said.word in ENDS
            yield said

    def _work(self) -> None:
        while not self._is_over:
            try:
                number, task = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._run(number, task)
            except Exception as error:  # for whoever reads what is said
                self._said.put(error)
                return

    def _run(self, number: int, task: Mapping[str, Any]) -> None:
        process = self._started()
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        is_told = False
        # It may have ended before it has read its task.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            with contextlib.suppress(ValueError):  # a line that it was killed in
                ((word, content),) = json.loads(line).items()
                is_told |= word in ENDS
                self._said.put(Said(number, word, content))
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        if not is_told:
            self._said.put(Said(number, "broke", status))

    def _started(self) -> subprocess.Popen[str] | None:
        """A process, in a group of its own, for an interrupt is the parent's to see; None if all is over."""
        with self._lock:
            if self._is_over:
                return None
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                process_group=0,
            )
            self._running.add(process)
            return process
