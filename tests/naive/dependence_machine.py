"""Random programs and random runs of them, as event streams: loops, calls, recursion, unwinding, callbacks, frees."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.naive.dependence import Event
from tests.naive.dependence_programs import EventLog
from tests.naive.program_builder import Layout, ProgramBuilder
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, CallFlag, FunctionFlag, OpKind
from tracekit.program.program import Program

MEMORY = 0x101FD0
"""Where the bytes lie that random accesses share: across lines and pages."""
READ_ONLY = MEMORY + 0x2000
"""Where some lie that are never stored, in pages of their own."""

Statement = tuple[Any, ...]
"""(kind, row or handle, body or targets)"""


class Unwind(Exception):  # noqa: N818
    """Leaves all frames above number `frame`, which goes on after its present statement."""

    def __init__(self, frame: int) -> None:
        self.frame = frame


class Exhausted(Exception):  # noqa: N818
    """The run has as many events as it may."""


@dataclass
class RandomProgram:
    """A program and, for each function, what its body may do."""

    random: Random
    builder: ProgramBuilder = field(default_factory=ProgramBuilder)
    bodies: list[list[Statement]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.random.randint(1, 4)
        for number in range(count):
            self.builder.function(f"f{number}", flags=FunctionFlag.ADDRESS_TAKEN if self.random.random() < 0.6 else 0)
        for number in range(count):
            entry = self.builder.block(number, BlockFlag.ENTRY)
            self.bodies.append(self._body(number, entry, NONE, 0))
        self.layout: Layout = self.builder.layout()
        self.program: Program = self.builder.program()
        self.calls = self.program.calls["op"].tolist()

    def _body(self, function: int, block: int, loop: int, depth: int) -> list[Statement]:
        body: list[Statement] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(["load", "load", "store", "store", "update", "loop", "loop", "call", "call"])
            if kind == "loop" and depth < 3:
                inner = self.builder.loop(function, loop)
                header = self.builder.block(function, BlockFlag.LOOP_HEADER, inner)
                body.append(("loop", inner, self._body(function, header, inner, depth + 1)))
                block = self.builder.block(function, 0, loop)
            elif kind == "call":
                op, targets = self._call(block)
                body.append(("call", op, targets))
                block = self.builder.block(function, 0, loop, continues=op)
            elif kind == "update":
                op_kind = self.random.choice([OpKind.ATOMIC, OpKind.COPY_FROM])
                body.append((op_kind.name, self.builder.op(block, op_kind, 8), ()))
            else:
                op_kind = {"load": OpKind.LOAD}.get(kind, OpKind.STORE)
                body.append((op_kind.name, self.builder.op(block, op_kind, 8), ()))
        return body

    def _call(self, block: int) -> tuple[int, tuple[int, ...]]:
        everyone = tuple(range(len(self.builder.functions)))
        kind = self.random.choice(["direct", "direct", "direct", "indirect", "external", "back"])
        if kind == "direct":
            callee = self.random.choice(everyone)
            return self.builder.call(block, f"f{callee}", self._handed_on()), (callee,)
        if kind == "indirect":  # may enter functions whose address is not taken: then the tree did not foresee it
            return self.builder.call(block, "", CallFlag.INDIRECT), everyone
        if kind == "external":
            return self.builder.call(block, "puts", self._handed_on()), ()
        some = self.random.sample(everyone, self.random.randint(0, min(2, len(everyone))))
        names = tuple(f"f{number}" for number in some)
        return self.builder.call(block, "qsort", CallFlag.MAY_CALL_BACK, targets=names), tuple(some or everyone)

    def _handed_on(self) -> int:
        return CallFlag.HANDED_ON if len(self.builder.blocks) % 2 else 0


class Machine:
    """One random run of a program on one stream."""

    def __init__(self, made: RandomProgram, random: Random, stream: int, limit: int) -> None:
        self.made = made
        self.random = random
        self.log = EventLog(stream)
        self.limit = limit
        self.frames: list[int] = []

    def run(self) -> list[Event]:
        """The events; they stop wherever the limit was reached."""
        try:
            while len(self.log.events) < self.limit:
                self._function(self.random.randrange(len(self.made.bodies)), NONE)
        except Exhausted:
            pass
        return self.log.events

    def _function(self, function: int, call: int) -> None:
        frame = len(self.frames)
        self.frames.append(function)
        self.log.enter(function, call)
        local = MEMORY - 0x40 + 24 * (frame % 3)
        framed = self.random.random() < 0.4
        if framed:
            self.log.add("stack_alloc", self._any_instruction(), local, 12)
        try:
            self._body(self.made.bodies[function], frame, local)
        except Unwind as unwind:
            if unwind.frame != frame:
                raise
        finally:
            if framed:
                self.log.add("stack_free", self._any_instruction(), local, 12)
            self.log.add("function_exit", function, 0, 0)
            self.frames.pop()

    def _body(self, body: list[Statement], frame: int, local: int) -> None:
        for statement in body:
            if len(self.log.events) >= self.limit:
                raise Exhausted
            if self.random.random() < 0.02:
                raise Unwind(self.random.randrange(len(self.frames)))
            if self.random.random() < 0.2:
                continue
            kind, handle, rest = statement
            if kind == "loop":
                self._loop(self.made.layout.loop[handle], rest, frame, local)
            elif kind == "call":
                self._call(self.made.layout.op[handle], rest)
            else:
                self._access(kind, self.made.layout.op[handle], local)
            if self.random.random() < 0.05:
                self._heap()

    def _loop(self, loop: int, body: list[Statement], frame: int, local: int) -> None:
        trips = self.random.choice([0, 1, 2, 2, 3, 3, 5, 12])
        partial = 0
        self.log.loop(loop, 0)
        try:
            for iteration in range(trips):
                if iteration:
                    self.log.loop(loop, iteration)
                self._body(body, frame, local)
                if self.random.random() < 0.05:
                    return  # break
            if trips and self.random.random() < 0.5:
                self.log.loop(loop, trips)
                partial = 1
            if trips == 0:
                partial = 1
        finally:
            self.log.exit(loop, partial)

    def _call(self, op: int, targets: tuple[int, ...]) -> None:
        if targets and len(self.frames) < 9:
            for _ in range(self.random.choice([1, 1, 1, 2, 3])):  # several: an external function calls back
                self._function(self.random.choice(targets), NONE if self.random.random() < 0.02 else op)
        else:
            for _ in range(self.random.choice([0, 0, 1, 2])):
                self._any_access(self.random.choice(["load", "store"]), op)
            if self.random.random() < 0.3:
                self.log.add("external_call", op)

    def _access(self, kind: str, op: int, local: int) -> None:
        if kind == "ATOMIC":
            address, size = self._place()
            self.log.load(op, address, size)
            self.log.store(op, address, size)
        elif kind == "COPY_FROM":
            size = self.random.choice([0, 3, 8, 24, 70])
            self.log.load(op, self._memory() + self.random.randrange(60), size)
            self.log.store(op, MEMORY + self.random.randrange(60), size)
        elif self.random.random() < 0.2:
            self.log.add(kind.lower(), op, local + self.random.choice([0, 4, 8, 2]), 4)
        else:
            self._any_access(kind.lower(), op)

    def _any_access(self, name: str, op: int) -> None:
        address, size = self._place(self._memory() if name == "load" else MEMORY)
        self.log.add(name, op if self.random.random() < 0.98 else NONE, address, size)

    def _memory(self) -> int:
        """Where a load goes."""
        return READ_ONLY if self.random.random() < 0.15 else MEMORY

    def _place(self, memory: int = MEMORY) -> tuple[int, int]:
        size = self.random.choice([1, 2, 4, 4, 8, 8, 8, 16])
        offset = self.random.randrange(64)
        if self.random.random() < 0.9:
            offset -= offset % size
        if self.random.random() < 0.5:
            offset %= 16
        return memory + offset, size

    def _heap(self) -> None:
        address = MEMORY + self.random.randrange(0, 64, 4)
        size = self.random.choice([4, 4, 16, 16, 33, 33, 64, 64, 64, 1 << 16])
        if size == 1 << 16:
            address -= size // 2
        name = self.random.choice(["heap_alloc", "heap_free", "global_init"])
        self.log.add(name, self.random.choice([0, 1, NONE, *self.made.calls[:3]]), address, size)

    def _any_instruction(self) -> int:
        return self.random.choice([0, 1, NONE])


def interleaved(random: Random, streams: list[list[Event]]) -> list[Event]:
    """One order of the events of several streams, in stretches that do not end inside an execution."""
    events: list[Event] = []
    waiting = [stream for stream in streams if stream]
    while waiting:
        stream = random.choice(waiting)
        count = random.choice([1, 3, 20])
        while count < len(stream) and stream[count - 1][2] == stream[count][2]:
            count += 1
        events += stream[:count]
        del stream[:count]
        waiting = [stream for stream in waiting if stream]
    return events
