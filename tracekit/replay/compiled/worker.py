"""A process that runs LLVM for compiled paths: a replay that ends need not wait for it.

LLVM cannot be interrupted, and is at a share of paths for seconds; a process can be ended at once.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable

from tracekit.jit import machine_code

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from tracekit.replay.compiled.worker import serve; serve()"
"""Finds what this process finds, where this process finds it."""


class EndedError(Exception):
    """The replay has ended while its paths were being compiled."""


class Worker:
    """Makes machine code (machine_code.object_of) in another process, one piece at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._talks = threading.Lock()
        self._is_ended = False
        self.seconds = 0.0
        """Processor time that the process took for what it has made."""

    def object_of(
        self, text: str, linked: Iterable[bytes] = (), exported: Collection[str] = (), vectorizes: bool = False
    ) -> bytes:
        """Machine code, as machine_code.object_of makes it.

        Raises EndedError once `end` was called, RuntimeError if LLVM refuses the text or the process breaks off.
        """
        process = self._started()
        if process is None:
            return machine_code.object_of(text, linked, exported, vectorizes)
        assert process.stdin is not None and process.stdout is not None
        try:
            with self._talks:
                pickle.dump((text, list(linked), list(exported), vectorizes), process.stdin)
                process.stdin.flush()
                made, problem, seconds = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            if self._is_ended:
                raise EndedError from None
            raise RuntimeError(f"the compiler has broken off with status {process.wait()}") from error
        self.seconds += seconds
        if problem:
            raise RuntimeError(problem)
        code: bytes = made
        return code

    def _started(self) -> subprocess.Popen[bytes] | None:
        """The process; None if none can be started, and this one has to do its work."""
        with self._lock:
            if self._is_ended:
                raise EndedError
            if self._process is None:
                pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
                try:
                    command = [sys.executable, "-c", _PROGRAM, *sys.path]
                    self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)
                except OSError:
                    return None
            return self._process

    def end(self) -> None:
        """End the process, whatever it is at; may be called from any thread, more than once."""
        with self._lock:
            self._is_ended = True
            if self._process is None:
                return
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None and self._process.stdout is not None
            with self._talks, contextlib.suppress(OSError):  # who was talking to it has found it gone
                self._process.stdout.close()
                self._process.stdin.close()


def serve() -> None:
    """What the process does: machine code for each request, until there are no more."""
    while True:
        try:
            text, linked, exported, vectorizes = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        made, problem, begun = b"", "", time.process_time()
        try:
            made = machine_code.object_of(text, linked, exported, vectorizes)
        except RuntimeError as error:
            problem = str(error) or "LLVM has failed"
        pickle.dump((made, problem, time.process_time() - begun), sys.stdout.buffer)
        sys.stdout.buffer.flush()
