"""Another process that compiles: this one's threads go on meanwhile, and need not wait for what they no longer want.

Numba holds Python's lock while it compiles. LLVM lets go of it, but cannot be interrupted, and is at a large module for
seconds; a process can be ended at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from tracekit.jit.worker import serve; serve()"
"""Finds what this process finds, where this process finds it."""


is_here = False
"""Whether this process is a worker."""


class EndedError(Exception):
    """The worker was ended while it was at work."""


class Worker:
    """Calls functions in another process, one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._talks = threading.Lock()
        self._is_ended = False
        self.seconds = 0.0
        """Processor time that the process took for its work."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function`, a global one, gives for these arguments; called here if no process can be started.

        Raises EndedError once `end` was called, RuntimeError with what the function has raised there or if the process
        breaks off, and what pickle raises if it cannot take the arguments along.
        """
        request = pickle.dumps((function, arguments))
        process = self._started()
        if process is None:
            return function(*arguments)
        assert process.stdin is not None and process.stdout is not None
        try:
            with self._talks:
                pickle.dump(request, process.stdin)
                process.stdin.flush()
                given, problem, seconds = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            if self._is_ended:
                raise EndedError from None
            raise RuntimeError(f"the compiler has broken off with status {process.wait()}") from error
        except BaseException:  # interrupted: the answer to come would be taken for that to the next call
            self.end()
            raise
        self.seconds += seconds
        if problem:
            raise RuntimeError(problem)
        return given

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

    @property
    def may_work(self) -> bool:
        """Whether the process has not ended; it may not have been started."""
        return not self._is_ended and (self._process is None or self._process.poll() is None)

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
    """What the process does: calls, until there are no more."""
    global is_here
    is_here = True
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a compiler prints is no answer
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        given, problem, begun = None, "", time.process_time()
        try:
            function, arguments = pickle.loads(request)
            given = function(*arguments)
        except Exception as error:
            problem = str(error) or type(error).__name__
        pickle.dump((given, problem, time.process_time() - begun), answers)
        answers.flush()
