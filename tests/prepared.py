"""``tracekit`` commands in processes that have imported already what a command imports.

Python, click and numpy take three fifths of the time of ``tracekit record`` of a small program, and the tests record
thousands. So one process for each that tests imports it all and forks for each command. The command has a process of
its own still, with the arguments, the folder, the environment and the standard streams that it is given, and it goes
through ``tracekit.__main__``. What starting itself does is for tests that start a process themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PREFIX = [sys.executable, "-m", "tracekit"]
SAME_ADDRESSES = ["setarch", "-R"]
ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2); what is started inherits it."""
READ_AT_START = (
    "PYTHON",
    "LC_",
    "LANG",
    "LD_",
    "NUMBA",
    "TRACEKIT_CHECK_BOUNDS",
    "OPENBLAS",
    "OMP_",
    "MALLOC_",
    "GLIBC",
)
"""How the names of variables begin that Python, a library or a module looks at once, when it is loaded."""
REQUEST_BYTES = 1 << 20
MOST_OPEN = 1 << 16
MODULES = (
    "numpy",
    "tracekit.api",
    "tracekit.cli",
    "tracekit.commands.analyze",
    "tracekit.commands.check",
    "tracekit.commands.record",
    "tracekit.modules.runners",
    "tracekit.recorder.collector",
    "tracekit.recorder.driver",
    "tracekit.recorder.session",
    "tracekit.render.registry",
    "tracekit.replay.engine",
)


def run(
    command: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    text: bool = False,
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = True,
) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run`` of any command with its output captured; one of `PREFIX` is run in a prepared process.

    ``setarch -R`` may stand before it: addresses of what it starts are the same in each run.
    """
    words = [os.fspath(word) for word in command]
    environment = dict(os.environ if env is None else env)
    same_addresses = words[:2] == SAME_ADDRESSES
    ours = words[2:] if same_addresses else words
    if ours[:3] != PREFIX or not capture_output or _at_start(environment) != _at_start(os.environ):
        return subprocess.run(
            words, cwd=cwd, env=env, input=input, text=text, timeout=timeout, check=check, capture_output=capture_output
        )
    given = (input.encode() if isinstance(input, str) else input) or b""
    status, out, err = _server().run(
        (ours[2:], os.fspath(cwd or os.getcwd()), environment, same_addresses), given, timeout
    )
    if status is None:
        raise subprocess.TimeoutExpired(words, timeout or 0, out, err)
    done = subprocess.CompletedProcess[Any](words, status, *(_text(each) if text else each for each in (out, err)))
    if check:
        done.check_returncode()
    return done


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and (name, value) != ("PYTHONPATH", str(ROOT))
    }


# -- the side of the tests -------------------------------------------------------------------------


@cache
def _server() -> Server:
    return Server()


class Server:
    """The process that forks, as a test sees it."""

    def __init__(self) -> None:
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.prepared", str(other.fileno())],
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )
        atexit.register(self.end)

    def run(self, request: object, given: bytes, timeout: float | None) -> tuple[int | None, bytes, bytes]:
        """Status (None: it was killed after `timeout` seconds), standard output and standard error of a command."""
        answers, others = socket.socketpair()
        streams = [os.pipe() for _ in range(3)]
        theirs = [streams[0][0], streams[1][1], streams[2][1]]
        ours = [streams[0][1], streams[1][0], streams[2][0]]
        try:
            with others:
                socket.send_fds(self._requests, [pickle.dumps(request)], [*theirs, others.fileno()])
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        with answers, answers.makefile("rb") as lines, ThreadPoolExecutor(3) as pool:
            process = int(lines.readline())
            late = threading.Event()

            def kill() -> None:
                late.set()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

            timer = threading.Timer(timeout or threading.TIMEOUT_MAX, kill)
            timer.daemon = True
            timer.start()
            pool.submit(_write, ours[0], given)
            out, err = pool.submit(_read, ours[1]), pool.submit(_read, ours[2])
            status = int(lines.readline())
            timer.cancel()
            return None if late.is_set() else status, out.result(), err.result()

    def end(self) -> None:
        """End it."""
        self._requests.close()
        self._process.wait()


def _write(descriptor: int, data: bytes) -> None:
    try:
        with open(descriptor, "wb", buffering=0) as stream:
            view = memoryview(data)
            while view:
                view = view[stream.write(view) :]
    except BrokenPipeError:
        pass  # it did not want to read it


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as stream:
        return stream.read()


# -- the side of the commands ----------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Fork for each request; returns in the forked processes alone."""
    requests = socket.socket(fileno=descriptor)
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == descriptor:
                data, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 4)
                if not data:
                    os._exit(0)
                *streams, answers = descriptors
                process = os.fork()
                if not process:
                    _become(streams, *pickle.loads(data))
                    return
                for each in streams:
                    os.close(each)
                watched = os.pidfd_open(process)
                running[watched] = process, socket.socket(fileno=answers)
                running[watched][1].sendall(b"%d\n" % process)
                poll.register(watched, select.POLLIN)
            else:
                process, answer = running.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                with answer:
                    answer.sendall(b"%d\n" % status)


def _become(
    streams: Iterable[int], arguments: list[str], folder: str, environment: dict[str, str], same_addresses: bool
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, MOST_OPEN)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = arguments
    if same_addresses:
        ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    # Open to the end, as those that Python opens.
    sys.stdin = io.TextIOWrapper(open(0, "rb"))  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb"))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", buffering=0), errors="backslashreplace", write_through=True)  # noqa: SIM115


def _command() -> None:
    """In a process of its own: what ``python -m tracekit`` does, but that nothing is taken apart in the end."""
    from tracekit.__main__ import main

    status = main()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        sys.exit(status)  # which says so
    os._exit(status)


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    serve(int(sys.argv[1]))
    _command()
