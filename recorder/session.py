"""One recorded run: start the program and its collector, wait for both, put the trace in its place."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from tracekit.environment import users_environment
from tracekit.formats import library_functions
from tracekit.formats.errors import TracekitError
from tracekit.recorder import mpi, toolchain, window_filters
from tracekit.recorder.collector_messages import CollectorOptions, Ending, Outcome
from tracekit.recorder.collector_process import collect
from tracekit.recorder.pool import DEFAULT_BUFFER, Pool, Windows
from tracekit.recorder.preloadable import preloadable
from tracekit.recorder.window_filters import Filter

DEFAULT_OUTPUT = "trace.zst"

NOT_EXECUTABLE = 126
NOT_FOUND = 127


class ProgramError(TracekitError):
    """The program could not be started; ``status`` is what a shell would exit with."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """What the user asked for. ``output`` empty: trace.zst, an older one of which is moved aside."""

    command: Sequence[str]
    version: str
    output: str = ""
    force: bool = False
    with_sources: bool = False
    with_host: bool = False
    buffer_bytes: int = DEFAULT_BUFFER
    workers: int = 0  # 0: as many as there are cores
    processes: frozenset[int] = frozenset()  # with --follow-fork: the numbers of those that are recorded; empty: all
    intercepted: Sequence[str] = ()  # what --intercept says
    snapshots: float = 0.0  # seconds between snapshots of the address space; 0: none
    physical: bool = False  # snapshots have page frames
    windows: Windows = None  # only windows are recorded, these and those that are asked for during the run
    filters: Sequence[Filter] = ()  # what of them is recorded


@dataclass(frozen=True)
class Result:
    """How the run went: the exit status to pass on (128 + n for signal n), and the trace (``path`` empty: none).

    ``others``: the traces of further processes. ``unfollowed``: why processes have none, a clause for each.
    """

    status: int
    path: str
    outcome: Outcome
    others: Sequence[str] = ()
    unfollowed: Sequence[str] = ()


def find_program(name: str) -> str:
    """The path of the program ``name``, looked for as a shell does; ProgramError (126, 127) if there is none."""
    path = toolchain.which(name)
    if path:
        return path
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.exists(candidate):
            kind = "is a directory" if os.path.isdir(candidate) else "is not executable"
            raise ProgramError(f"{candidate} {kind}", NOT_EXECUTABLE)
    where = "no such file" if "/" in name else "not found on PATH"
    raise ProgramError(f"{name}: {where}", NOT_FOUND)


def output_path(pattern: str, process: int) -> str:
    """The name of the trace: ``%p`` is the program's process id, ``%h`` the host's name, ``%r`` its rank in MPI (0
    outside of it), ``%%`` a percent sign. A rank's is in the name in any case: trace.3.zst.
    """
    rank = mpi.rank()
    values = {"p": str(process), "h": socket.gethostname(), "r": str(rank or 0), "%": "%"}
    if rank is not None and not {"p", "r"} & {part[:1] for part in pattern.replace("%%", "").split("%")[1:]}:
        stem, dot, ending = pattern.rpartition(".")
        pattern = f"{stem}.%r.{ending}" if dot and "/" not in ending else f"{pattern}.%r"
    parts = pattern.split("%")
    name, rest = parts[0], iter(parts[1:])
    for part in rest:
        if not part:  # "%%": the next part follows a literal percent sign
            name += "%" + next(rest, "")
        elif part[0] in values:
            name += values[part[0]] + part[1:]
        else:
            raise TracekitError(
                f"-o {pattern}: %{part[0]} means nothing; %p is the process id, %h the host's name, %r the rank"
            )
    return name


def run(request: Request) -> Result:
    """Record one run of ``request.command``.

    Raises ProgramError if the program cannot be started, TracekitError for every failure of the recording's own before
    the program has started; later ones leave the program alone and stand in the result's outcome.
    """
    output_path(request.output, 0)
    program = find_program(request.command[0])
    environment = program_environment(program, shim_of(request, program))
    pool = Pool(request.buffer_bytes, windows=request.windows, filters=request.filters)
    environment["TRACEKIT_POOL"] = str(pool.descriptor)
    started = time.monotonic()
    process, gate, report = fork_program(program, request.command, environment)
    try:
        path = output_path(request.output or DEFAULT_OUTPUT, process)
        partial = open_partial(path, request)
        collector, control, result = fork_collector(pool, partial, request, [gate, report])
    except BaseException:
        os.close(gate)  # the child finds the gate closed and leaves without running the program
        os.waitpid(process, 0)
        raise
    os.close(pool.descriptor)
    ignored = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    forwarded = {
        number: signal.signal(number, lambda number, _: forward(process, number))
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    os.write(gate, b"!")
    os.close(gate)
    failure = read_all(report)
    ending = _wait(process, collector, pool)
    ending.seconds = round(time.monotonic() - started, 6)
    try:
        os.write(control, json.dumps(asdict(ending)).encode() + b"\n")
    except BrokenPipeError:
        pass  # the collector was killed; its silence below says so
    os.close(control)
    outcome = read_outcome(result)
    reap(collector)
    for number, handler in {**ignored, **forwarded}.items():
        signal.signal(number, handler)
    if failure:
        remove(path + ".partial")
        code = int(failure)
        raise ProgramError(f"{program}: {os.strerror(code)}", NOT_FOUND if code == 2 else NOT_EXECUTABLE)
    status = 128 + ending.signal if ending.signal is not None else ending.status or 0
    return Result(status, put_in_place(path, request, outcome), outcome)


# -- processes ------------------------------------------------------------------------------------


def shim_of(request: Request, program: str) -> str:
    """The library that intercepts what the request names; empty if it names nothing. TracekitError if it cannot be."""
    if not request.intercepted:
        return ""
    from tracekit.recorder import intercept

    chosen = intercept.chosen(request.intercepted, program)
    return preloadable(intercept.shim(chosen, program)) if chosen else ""


def program_environment(program: str, shim: str = "") -> dict[str, str]:
    """The program's environment: the user's, and our libraries preloaded; TRACEKIT_POOL is still to be added.

    Two colons stand between ours and the user's (runtime/preload_session.c).
    """
    libraries = [preloadable(toolchain.runtime_file(toolchain.PRELOAD))]
    if wrappers := mpi.wrappers(program):
        libraries.append(preloadable(wrappers))
    if shim:
        libraries.append(shim)
    return {**users_environment(), "LD_PRELOAD": f"{':'.join(libraries)}::{os.environ.get('LD_PRELOAD', '')}"}


def fork_program(program: str, command: Sequence[str], environment: dict[str, str]) -> tuple[int, int, int]:
    """Fork the program's process, which runs it once something is written to the gate.

    Returns its id, the gate, and a pipe that yields the error number if it cannot be run.
    """
    gate, opened = os.pipe()
    report, failed = os.pipe()
    process = os.fork()
    if process:
        os.close(gate)
        os.close(failed)
        return process, opened, report
    try:
        os.close(opened)
        if os.read(gate, 1):
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            os.execve(program, list(command), environment)
    except OSError as error:
        os.write(failed, str(error.errno).encode())
    finally:
        os._exit(NOT_EXECUTABLE)


def fork_collector(
    pool: Pool, partial: int, request: Request, close: Sequence[int], more: Mapping[str, Any] | None = None
) -> tuple[int, int, int]:
    """Fork the collector; returns its id, the pipe on which it is told the ending, and that of its outcome.

    ``close``: descriptors that it must not keep; ``more``: additions to the META object.
    """
    control_read, control = os.pipe()
    result, result_write = os.pipe()
    collector = os.fork()
    if collector:
        for descriptor in (control_read, result_write, partial):
            os.close(descriptor)
        return collector, control, result
    for descriptor in (control, result, *close):
        os.close(descriptor)
    progress = sys.stderr.isatty()
    _leave_standard_streams(progress)
    meta = {**_meta(request), **(more or {})}
    options = CollectorOptions(
        with_sources=request.with_sources,
        progress=progress,
        workers=request.workers or len(os.sched_getaffinity(0)),
        snapshots=request.snapshots,
        physical=request.physical,
        left_out=window_filters.left_out(request.filters),
    )
    collect(pool, partial, meta, options, control_read, result_write)
    raise AssertionError("the collector does not return")


def _leave_standard_streams(keep_errors: bool) -> None:
    """The program's pipes must see their end when the program ends, not when the collector does."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1) if keep_errors or os.environ.get("TRACEKIT_DEBUG") else (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def forward(process: int, number: int) -> None:
    """Send a signal to the program, if it is there."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def _wait(process: int, collector: int, pool: Pool) -> Ending:
    """Wait for the program; if the collector dies before it, let the program go on unrecorded."""
    while True:
        child, status = os.waitpid(-1, 0)
        if child == collector:
            pool.discard()
        elif child == process:
            break
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status))
    return Ending(status=os.WEXITSTATUS(status))


def reap(collector: int) -> None:
    """Wait for the collector, so that its time counts as that of `record`."""
    try:
        os.waitpid(collector, 0)
    except ChildProcessError:  # it was gone before the program
        pass


def read_all(descriptor: int) -> bytes:
    """Read a pipe to its end and close it."""
    with open(descriptor, "rb") as file:
        return file.read()


def read_outcome(descriptor: int) -> Outcome:
    """What the collector says at its end; a failure if it says nothing."""
    data = read_all(descriptor)
    if not data:
        return Outcome(attached=True, failure="the collector was killed")
    return Outcome(**json.loads(data))


# -- the file -------------------------------------------------------------------------------------


def open_partial(path: str, request: Request) -> int:
    """The descriptor of ``path``.partial, empty; TracekitError if ``path`` is precious or cannot be written."""
    if os.path.isdir(path):
        raise TracekitError(f"{path} is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):  # to root, renaming would replace even /dev/null
        raise TracekitError(f"{path} is no regular file; a trace has to be one")
    if request.output and not request.force and os.path.exists(path):
        raise TracekitError(f"{path} exists; add -f to overwrite it, or name another file")
    try:
        return os.open(path + ".partial", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TracekitError(f"{path}.partial cannot be written: {error.strerror}") from error


def put_in_place(path: str, request: Request, outcome: Outcome) -> str:
    """Rename the partial file; a trace.zst that was there becomes trace.zst.old. Empty if there is nothing to keep."""
    if not outcome.attached:
        remove(path + ".partial")
        return ""
    try:
        if not request.output and os.path.exists(path):
            os.replace(path, path + ".old")
        os.replace(path + ".partial", path)
    except OSError as error:
        raise TracekitError(f"the trace stays in {path}.partial: {error.strerror}") from error
    return path


def remove(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.unlink(path)
    except OSError:
        pass


def _meta(request: Request) -> dict[str, Any]:
    """The META object; target and compiler are added from the first image."""
    meta: dict[str, Any] = {
        "command": list(request.command),
        "tracekit": request.version,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": platform.machine(),
        library_functions.KEY: library_functions.VERSION,
    }
    if request.windows is not None:
        meta["windows"] = True
    if request.filters:
        meta["filters"] = [str(each) for each in request.filters]
    if (rank := mpi.rank()) is not None:
        meta["rank"] = rank
    if request.with_host:
        meta["host"] = {
            "name": socket.gethostname(),
            "system": " ".join(os.uname()),
            "directory": os.getcwd(),
            "program": shutil.which(request.command[0]) or "",
            "environment": users_environment(),
        }
    return meta
