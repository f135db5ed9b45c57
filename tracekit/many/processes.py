"""Tasks in processes of their own, several at once: a trace each, or a segment of one."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracekit.many.worker import PROGRAM
from tracekit.segments.pool import ENDS, Said, Task


class Processes:
    """Runs tasks, `most` at once, in the order in which they are given. A context manager: its end ends them all.

    Each is taken from `tasks` when a process is free for it, in a thread of its own.
    """

    def __init__(self, tasks: Iterable[Task], most: int) -> None:
        self._waiting = iter(tasks)
        self._taking = threading.Lock()
        self._said: queue.SimpleQueue[Said | BaseException | None] = queue.SimpleQueue()
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._is_over = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(most)]

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
        working = len(self._threads)
        while working:
            said = self._said.get()
            if isinstance(said, BaseException):
                raise said
            if said is None:
                working -= 1
            else:
                yield said

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                self._run(*task)
        except Exception as error:  # for whoever reads what is said
            self._said.put(error)
        finally:
            self._said.put(None)

    def _next(self) -> Task | None:
        with self._taking:
            return None if self._is_over else next(self._waiting, None)

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
