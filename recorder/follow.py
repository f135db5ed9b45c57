"""`record --follow-fork`: a trace for each process that runs instrumented code.

A process that was forked, or that executes an instrumented program, asks for a pool on a socket
(runtime/preload_session.c); it gets one with a collector of its own. When all are gone, each trace is put in its place:
the first one under the name that the user gave, those of further processes with their process ids in it. All bear the
session's name.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.recorder import session
from tracekit.recorder.collector_messages import Ending, Outcome
from tracekit.recorder.inherit import Inheritance
from tracekit.recorder.pool import Pool
from tracekit.recorder.session import ProgramError, Request, Result

BUFFERS = 32
"""Of the pool of a further process: there may be many of these."""

AT_ONCE = 256
"""Processes that are recorded at a time; more run unrecorded."""

PATIENCE = 2.0
"""Seconds after the program's end in which nothing is said of processes that go on."""

PASSING = ".passing"
"""What the trace of a process that was not chosen is called while others may be forked from it."""

_REQUEST = struct.Struct("<3Q")  # struct tk_request: how it started, its parent, a ticket
_CREDENTIALS = struct.Struct("3i")
_STARTS = ("program", "fork")
_WILL_FORK = 2


@dataclass(eq=False)
class Traced:
    """A process, or a program that it executes, and what is needed to record it."""

    process: int
    number: int  # in the session
    is_chosen: bool  # else its trace is kept for the processes that are forked from it, and then removed
    path: str  # of its trace
    pool: Pool
    collector: int
    control: int
    result: int
    began: float
    parent: Traced | None = None  # from which it was forked
    ticket: int = 0
    ended: bool = False
    outcome: Outcome | None = None  # once its collector is gone


def run(request: Request) -> Result:
    """Record the program and every process that comes of it; errors are those of ``session.run``."""
    session.output_path(request.output, 0)
    program = session.find_program(request.command[0])
    environment = session.program_environment(program, session.shim_of(request, program))
    with Follower(request) as follower:
        environment["TRACEKIT_POOL"] = follower.address
        process, gate, report = session.fork_program(program, request.command, environment)
        try:
            follower.begin(process, [gate, report])
        except BaseException:
            os.close(gate)  # the child finds the gate closed and leaves without running the program
            os.waitpid(process, 0)
            raise
        os.write(gate, b"!")
        os.close(gate)
        failure = session.read_all(report)
        follower.wait()
        if failure:
            follower.drop()
            code = int(failure)
            raise ProgramError(
                f"{program}: {os.strerror(code)}", session.NOT_FOUND if code == 2 else session.NOT_EXECUTABLE
            )
        return follower.finish()


class Follower:
    """The processes of a session. ``begin``, ``wait`` for the end of all, ``finish``."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._name = secrets.token_hex(8)
        self.address = f"@tracekit-{self._name}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # what it accepts inherits that
        self._listener.bind(f"\0{self.address[1:]}")
        self._listener.listen(AT_ONCE)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._asking: set[socket.socket] = set()
        self._woken, self._wake = os.pipe()  # by a signal that says to stop
        self._selector.register(self._woken, selectors.EVENT_READ, self._stop)
        self._traced: list[Traced] = []
        self._current: dict[int, Traced] = {}
        self._handlers: dict[int, Any] = {}
        self._program = 0
        self._ending: Ending | None = None
        self._began = 0.0
        self._first_free = True
        self._unfollowed: list[str] = []
        self._path = ""  # that the user gave
        self._numbers: dict[int, int] = {}  # of processes that are there
        self._reserved: dict[socket.socket, int] = {}  # of children whose parents are about to fork
        self._count = 0
        self._awaited = set(request.processes)  # chosen numbers that no process has had so far

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._selector.close()
        self._listener.close()
        for connection in self._asking:
            connection.close()
        for descriptor in (self._woken, self._wake):
            os.close(descriptor)

    def begin(self, program: int, close: list[int]) -> None:
        """Make the first pool, for the program or the first instrumented one that it starts, and watch the program."""
        _raise_limit()
        self._path = session.output_path(self._request.output or session.DEFAULT_OUTPUT, program)
        path = self._path if self._is_chosen(1) else self._path + PASSING
        partial = session.open_partial(path, self._request)
        self._program, self._began = program, time.monotonic()
        pool = Pool(self._request.buffer_bytes, windows=self._request.windows, filters=self._request.filters)
        self._add(program, 1, path, partial, pool, {}, close)
        self._watch(program, self._program_ended)
        for number in (signal.SIGINT, signal.SIGQUIT):
            self._handlers[number] = signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, lambda number, _: session.forward(program, number))

    def wait(self) -> None:
        """Serve until no process of the session is left, or a signal after the program's end says to stop."""
        said = False
        while self._ending is None or self._asking or any(traced.outcome is None for traced in self._traced):
            for key, _ in self._selector.select(PATIENCE):
                key.data()
            left = [traced.process for traced in self._traced if not traced.ended]
            if self._ending is not None and left and not said and time.monotonic() - self._began > PATIENCE:
                said = True
                print(
                    f"tracekit: the program has ended, {_processes(len(left))} of it "
                    f"{'is' if len(left) == 1 else 'are'} still being recorded; interrupt to stop that",
                    file=sys.stderr,
                )

    def finish(self) -> Result:
        """Put the traces in their places."""
        first, *others = self._traced
        ending, outcome = self._ending, first.outcome
        assert ending is not None and outcome is not None
        status = 128 + ending.signal if ending.signal is not None else ending.status or 0
        place = session.put_in_place(first.path, self._request, outcome)
        kept = [(place, outcome)] if place and first.is_chosen else []
        with closing(Inheritance()) as inheritance:
            for traced in others:
                if self._finish_other(traced, inheritance) and traced.is_chosen and traced.outcome:
                    kept.append((traced.path, traced.outcome))
        for traced in self._traced:
            if not traced.is_chosen:
                session.remove(traced.path)
        if not kept and self._request.processes:
            created = f"{self._count} {'process was' if self._count == 1 else 'processes were'} created"
            outcome = Outcome(attached=False, failure=f"none of the chosen processes ran instrumented code; {created}")
        elif kept:
            place, outcome = kept[0]
        return Result(status, place if kept else "", outcome, [path for path, _ in kept[1:]], self._unfollowed)

    def drop(self) -> None:
        """Remove what was written."""
        for traced in self._traced:
            session.remove(traced.path + ".partial")

    # -- processes -----------------------------------------------------------------------------

    def _accept(self) -> None:
        """A connection is made before a process forks, or when an instrumented program begins."""
        connection, _ = self._listener.accept()
        self._asking.add(connection)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._answer(connection))

    def _answer(self, connection: socket.socket) -> None:
        """A process asks for a pool on its connection, is about to fork, or there was no fork after all."""
        try:
            if self._serve(connection):
                return
        except (OSError, struct.error, TracekitError) as error:
            self._unfollowed.append(f"a process could not be recorded: {error}")
        self._selector.unregister(connection)
        self._asking.discard(connection)
        self._awaited.discard(self._reserved.pop(connection, 0))
        connection.close()
        if self._request.processes and not self._awaited:
            self._leave_others()

    def _serve(self, connection: socket.socket) -> bool:
        """Whether something more is to come on the connection."""
        data, control, _, _ = connection.recvmsg(_REQUEST.size, socket.CMSG_SPACE(_CREDENTIALS.size))
        if not data or not control:
            return False
        start, parent, ticket = _REQUEST.unpack(data)
        process, user, _ = _CREDENTIALS.unpack(control[0][2])
        if user != os.getuid():
            return False
        if start == _WILL_FORK:
            self._count += 1
            self._reserved[connection] = self._count
            return True
        if start < len(_STARTS):
            number = self._number(process, self._reserved.get(connection, 0))
            traced = self._give(process, number, _STARTS[start], parent, ticket)
            if traced:
                socket.send_fds(connection, [b"!"], [traced.pool.descriptor])
        return False

    def _number(self, process: int, reserved: int) -> int:
        """The number of a process that asks: what it has, what its parent took for it, or the next one."""
        if process in self._numbers and not reserved:
            return self._numbers[process]
        if not reserved:
            self._count += 1
        number = self._numbers[process] = reserved or self._count
        self._watch(process, lambda: self._forget(process))
        return number

    def _forget(self, process: int) -> None:
        """It is gone: its process id may become another's."""
        self._numbers.pop(process, None)

    def _is_chosen(self, number: int) -> bool:
        return not self._request.processes or number in self._request.processes

    def _leave_others(self) -> None:
        """All that were chosen are there: nothing is recorded of the others any more."""
        for traced in self._traced:
            if not traced.is_chosen and not traced.ended:
                traced.pool.discard()
                self._end(traced, Ending())

    def _give(self, process: int, number: int, start: str, parent: int, ticket: int) -> Traced | None:
        self._awaited.discard(number)
        if not self._is_chosen(number) and not self._awaited:
            return None
        before = self._current.get(process)
        if before and not self._first_free:  # it executes another program now
            self._end(before, Ending())
        if self._first_free:
            self._first_free = False
            traced = self._traced[0]
            self._current.pop(traced.process, None)
            traced.process = process
            self._current[process] = traced
            if process != self._program:
                self._watch(process, lambda: self._process_ended(traced))
            return traced
        if len(self._current) >= AT_ONCE:
            self._unfollowed.append(f"process {process}: {AT_ONCE} others were being recorded")
            return None
        forked_from = (
            next((traced for traced in reversed(self._traced) if traced.process == parent), None)
            if start == "fork"
            else None
        )
        if start == "fork" and not forked_from:
            self._unfollowed.append(f"process {process}: its parent {parent} was not being recorded")
            return None
        path = self._other_path(process) + ("" if self._is_chosen(number) else PASSING)
        more = {"command": _command_of(process) or list(self._request.command), "parent": parent, "start": start}
        traced = self._add(
            process,
            number,
            path,
            session.open_partial(path, self._request),
            Pool(self._request.buffer_bytes, BUFFERS, self._request.windows, self._request.filters),
            more,
        )
        traced.parent, traced.ticket = forked_from, ticket
        if process != self._program:
            self._watch(process, lambda: self._process_ended(traced))
        return traced

    def _add(
        self,
        process: int,
        number: int,
        path: str,
        partial: int,
        pool: Pool,
        more: Mapping[str, Any],
        close: list[int] | None = None,
    ) -> Traced:
        more = {"session": self._name, "number": number, **more}
        mine = [
            self._listener.fileno(),
            self._woken,
            self._wake,
            *(close or []),
            *(connection.fileno() for connection in self._asking),
            *(descriptor for traced in self._traced if not traced.ended for descriptor in (traced.control,)),
        ]
        collector, control, result = session.fork_collector(pool, partial, self._request, mine, more)
        chosen = self._is_chosen(number)
        traced = Traced(process, number, chosen, path, pool, collector, control, result, time.monotonic())
        self._traced.append(traced)
        self._current[process] = traced
        self._watch(collector, lambda: self._collector_ended(traced))
        return traced

    def _watch(self, process: int, ended: Callable[[], None]) -> None:
        descriptor = os.pidfd_open(process)

        def react() -> None:
            self._selector.unregister(descriptor)
            os.close(descriptor)
            ended()

        self._selector.register(descriptor, selectors.EVENT_READ, react)

    def _program_ended(self) -> None:
        _, status = os.waitpid(self._program, 0)
        self._ending = _ending(status)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: os.write(self._wake, b"!"))
        self._began = time.monotonic()
        traced = self._current.get(self._program)
        if traced:
            self._end(traced, Ending(self._ending.status, self._ending.signal))
        if self._first_free and not self._traced[0].ended:  # nothing was instrumented so far: nothing will be
            self._first_free = False

    def _process_ended(self, traced: Traced) -> None:
        if traced.ended:
            return
        ending = _zombie(traced.process)  # the kernel is believed rather than the program
        if ending == Ending():
            ending.status = traced.pool.exit_status()
        self._end(traced, ending)

    def _end(self, traced: Traced, ending: Ending) -> None:
        """The program of this trace is gone: tell its collector how it ended."""
        if traced.ended:
            return
        traced.ended = True
        if self._current.get(traced.process) is traced:
            del self._current[traced.process]
        ending.seconds = round(time.monotonic() - traced.began, 6)
        try:
            os.write(traced.control, json.dumps(asdict(ending)).encode() + b"\n")
        except BrokenPipeError:
            pass  # the collector was killed; its silence will say so
        os.close(traced.control)

    def _collector_ended(self, traced: Traced) -> None:
        """If it dies before its program, that goes on unrecorded."""
        if not traced.ended:
            traced.pool.discard()
        os.waitpid(traced.collector, 0)
        traced.outcome = session.read_outcome(traced.result)
        self._end(traced, Ending())
        traced.pool.close()

    def _stop(self) -> None:
        os.read(self._woken, 1)
        for traced in self._traced:
            if not traced.ended:
                self._unfollowed.append(f"process {traced.process}: it was still running when recording was stopped")
                traced.pool.discard()
                self._end(traced, Ending())

    # -- files ---------------------------------------------------------------------------------

    def _other_path(self, process: int) -> str:
        """The first name's with the process id: app.zst -> app.123.zst, app.123.2.zst for its next program."""
        pattern = self._request.output or session.DEFAULT_OUTPUT
        if "%p" in pattern.replace("%%", ""):
            path = session.output_path(pattern, process)
        else:
            path = _with(self._path, str(process))
        taken = {traced.path.removesuffix(PASSING) for traced in self._traced}
        found, number = path, 2
        while found in taken or (os.path.exists(found) and not self._request.force):
            found, number = _with(path, str(number)), number + 1
        return found

    def _finish_other(self, traced: Traced, inheritance: Inheritance) -> bool:
        """Complete the trace of a further process, and put it in its place. False if there is none."""
        partial, outcome = traced.path + ".partial", traced.outcome
        try:
            is_parent = any(other.parent is traced for other in self._traced)
            holds = outcome and (outcome.failure or outcome.totals.get("path_records") or is_parent)
            if not outcome or not outcome.attached or not holds:
                session.remove(partial)
                return False
            if traced.parent:
                inheritance.prepend(traced.parent.path, partial, traced.ticket)
            os.replace(partial, traced.path)
        except (OSError, TracekitError) as error:
            self._unfollowed.append(f"process {traced.process}: its trace stays incomplete in {partial}: {error}")
            return False
        return True


def _with(path: str, part: str) -> str:
    stem = path.removesuffix(".zst")
    return f"{stem}.{part}{path[len(stem) :]}"


def _processes(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}"


def _command_of(process: int) -> list[str]:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return [word.decode(errors="replace") for word in file.read().removesuffix(b"\0").split(b"\0")]
    except OSError:
        return []


def _ending(status: int) -> Ending:
    return Ending(signal=os.WTERMSIG(status)) if os.WIFSIGNALED(status) else Ending(os.WEXITSTATUS(status))


def _zombie(process: int) -> Ending:
    """How a process ended that is not our child, if its parent has not asked yet; else nothing is known."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except OSError:
        return Ending()
    return _ending(int(fields[49])) if fields[0] in (b"Z", b"X") else Ending()


def _raise_limit() -> None:
    """Each process takes some descriptors of ours."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8 * AT_ONCE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )
