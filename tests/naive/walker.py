"""Random walks through random programs that yield the records *and*, independently, the events.

A walk executes the program's syntax tree as a real run would: Python's call stack is the program's, an exception
is a Python exception, a loop is a Python loop. It writes down what instrumented code would record and, at the same
time, the event that really happens. Nothing here decodes records.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.naive.random_program import Block, Call, Loop, RandomProgram
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import Base, OpFlag, OpKind

MASK = (1 << 64) - 1
Event = tuple[str, int, int, int]
"""Name, subject, address, size."""


@dataclass(eq=False)
class Object:
    """A live stack object."""

    op: int
    address: int
    size: int


@dataclass
class Frame:
    """An activation in the walk."""

    identity: int
    function: int
    registers: dict[int, int] = field(default_factory=dict)
    stack: list[Object] = field(default_factory=list)
    newest: dict[int, Object] = field(default_factory=dict)  # by operation
    loops: list[list[int]] = field(default_factory=list)  # [handle, iteration]


@dataclass(frozen=True)
class Run:
    """Stands among the visited blocks for a record of a RUN path (a handle)."""

    path: int


class Thrown(Exception):  # noqa: N818 - it is no error
    """An exception of the program on its way to the frame `target`."""

    def __init__(self, target: int) -> None:
        super().__init__()
        self.target = target


class Walk:
    """One thread's walk: `records` [(id, words)] and `events`. Heap events carry a ticket drawn from `tickets`."""

    def __init__(
        self, made: RandomProgram, rng: random.Random, tickets: list[int], budget: int = 300, heap_base: int = 1 << 40
    ) -> None:
        self.made, self.b, self.rng, self.tickets = made, made.b, rng, tickets
        self.budget = budget
        self.events: list[Event] = []
        self.values: list[int | None] = []  # beside them
        self.visits: list[tuple[Any, list[int]]] = []
        self.frames: list[Frame] = []
        self.heap: dict[int, int] = {}
        self.next_address = heap_base
        self.identities = 0
        self.catching: list[int] = []

    def run(self) -> None:
        """Call a root function or two."""
        for _ in range(self.rng.randint(1, 2)):
            self.call(self.rng.randrange(len(self.made.functions)), NONE)

    def records(self) -> list[tuple[int, list[int]]]:
        """The records, blocks merged into longer paths where the program has them."""
        merged: list[tuple[int, list[int]]] = []
        k = 0
        while k < len(self.visits):
            what, words = self.visits[k]
            if isinstance(what, str):
                merged.append((CODE[what], words))
            elif isinstance(what, Run):
                merged.append((self.made.layout.path_number(what.path), words))
            else:
                pair = (what, self.visits[k + 1][0]) if k + 1 < len(self.visits) else None
                if pair in self.made.paths:
                    merged.append((self.made.layout.path_number(self.made.paths[pair]), words + self.visits[k + 1][1]))
                    k += 1
                else:
                    merged.append((self.made.layout.path_number(self.made.paths[(what,)]), words))
            k += 1
        return merged

    # -- execution ---------------------------------------------------------------------------------
    def event(self, name: str, subject: int = 0, address: int = 0, size: int = 0, value: int | None = None) -> None:
        self.events.append((name, subject, address & MASK, size))
        self.values.append(value)

    def row(self, op: int) -> int:
        return self.made.layout.op[op]

    def call(self, function: int, site: int) -> None:
        made = self.made.functions[function]
        self.identities += 1
        frame = Frame(self.identities, function)
        self.frames.append(frame)
        self.event("function_entry", function, 0, NONE if site == NONE else self.row(site))
        try:
            self.visit(made.entry)
            try:
                self.statements(made.body)
            except Thrown as thrown:
                if thrown.target != frame.identity:
                    raise
                self.close_loops(frame)
                assert made.landing is not None
                self.visit(made.landing)
            self.visit(made.last)
        except Thrown:
            self.finish(frame, 1)
            raise
        self.finish(frame, 0)

    def finish(self, frame: Frame, unwound: int) -> None:
        self.close_loops(frame)
        for item in reversed(frame.stack):
            self.event("stack_free", self.row(item.op), item.address, item.size)
        self.event("function_exit", frame.function, 0, unwound)
        self.frames.pop()

    def close_loops(self, frame: Frame) -> None:
        while frame.loops:
            self.event("loop_exit", self.made.layout.loop[frame.loops.pop()[0]])

    def statements(self, body: list[Any]) -> bool:
        """Execute; True if the innermost loop is left by a break."""
        for statement in body:
            if isinstance(statement, Block):
                self.visit(statement.handle)
            elif isinstance(statement, Call):
                self.call_site(statement)
            else:
                self.loop(statement)
            if self.frames[-1].loops and self.rng.random() < 0.05:
                return True
        return False

    def loop(self, loop: Loop) -> None:
        frame = self.frames[-1]
        row = self.made.layout.loop[loop.handle]
        runs = Runs(self, loop)
        frame.loops.append([loop.handle, 0])
        self.event("loop_invocation", row)
        partial = 0
        while True:
            runs.begin()
            if isinstance(loop.head, Block):
                self.visit(loop.head.handle)
            else:
                self.call_site(loop.head)
            more = runs.more() if loop.run != NONE else self.budget > 0 and self.rng.random() < 0.6
            if loop.while_form and not more:
                partial = 1
                break
            if self.statements(loop.body):
                break
            runs.end()
            if not more:
                break
            frame.loops[-1][1] += 1
            self.event("loop_iteration", row)
        runs.close()
        frame.loops.pop()
        self.event("loop_exit", row, 0, partial)

    def call_site(self, call: Call) -> None:
        self.visit(call.before)
        frame = self.frames[-1]
        if call.catch:
            self.catching.append(frame.identity)
        try:
            entered = self.inside(call)
        finally:
            if call.catch:
                self.catching.pop()
        if not entered and not call.silent:
            self.event("external_call", self.row(call.op))
        self.visit(call.after)

    def inside(self, call: Call) -> bool:
        """What happens while the call is open; True if instrumented code was entered."""
        if call.external:
            self.library(self.row(call.op))
        if self.catching and self.rng.random() < 0.1:
            raise Thrown(self.rng.choice(self.catching))
        entered = False
        for target in call.targets:
            if len(self.frames) < 8 and self.budget > 0:
                self.call(target, call.op)
                entered = True
        return entered

    def library(self, op: int) -> None:
        """Heap and library events inside an external call."""
        for _ in range(self.rng.randint(0, 2)):
            choice = self.rng.randrange(4)
            if choice == 0 or not self.heap:
                address, size = self.fresh(), self.rng.randint(1, 99)
                self.recorded("heap_alloc", [self.ticket(), address, size])
                self.event("heap_alloc", op, address, size)
                self.heap[address] = size
            elif choice == 1:
                address = self.rng.choice(sorted(self.heap))
                self.recorded("heap_free", [self.ticket(), address])
                self.event("heap_free", op, address, self.heap.pop(address))
            elif choice == 2:
                self.reallocate(op)
            else:
                name, size = self.rng.choice(("load", "store")), self.rng.randint(0, 9)
                self.recorded("library_" + name, [4096, size])
                if size:
                    self.event(name, op, 4096, size)

    def reallocate(self, op: int) -> None:
        old = self.rng.choice(sorted(self.heap))
        before, size = self.heap.pop(old), self.rng.randint(1, 99)
        if self.rng.random() < 0.5:
            self.recorded("heap_realloc", [self.ticket(), old, old, size])
            if size < before:
                self.event("heap_free", op, old + size, before - size)
            if size > before:
                self.event("heap_alloc", op, old + before, size - before)
            self.heap[old] = size
            return
        new = self.fresh()
        self.recorded("heap_realloc", [self.ticket(), old, new, size])
        self.event("heap_alloc", op, new, size)
        self.event("load", op, old, min(before, size))
        self.event("store", op, new, min(before, size))
        self.event("heap_free", op, old, before)
        self.heap[new] = size

    def fresh(self) -> int:
        self.next_address += 128
        return self.next_address

    def ticket(self) -> int:
        self.tickets.append(len(self.tickets))
        return len(self.tickets) - 1

    def recorded(self, name: str, words: list[int]) -> None:
        self.visits.append((name, words))

    # -- blocks ------------------------------------------------------------------------------------
    def visit(self, block: int) -> None:
        self.budget -= 1
        words: list[int] = []
        frame = self.frames[-1]
        size = 0
        for op in range(len(self.b.ops)):
            if self.b.ops[op]["block"] == block:
                size = self.operate(frame, op, words, size)
        self.visits.append((block, words))

    def operate(self, frame: Frame, op: int, words: list[int], size: int) -> int:
        """Execute one operation; returns the size that a COPY_TO after it takes over."""
        row = self.b.ops[op]
        kind = row["kind"]
        if kind in (OpKind.FRAME, OpKind.LANDING):
            words.append((1 << 32) + frame.identity * 16)
        elif kind == OpKind.GROUND_TRUTH:
            words.append(self.made.layout.block_number(row["block"]))
        elif kind == OpKind.BASE:
            frame.registers[row["defines"]] = self.word(words)
        elif kind == OpKind.CALL:
            if self.b.blocks[row["block"]]["call"] != op:
                self.event("external_call", self.row(op))
        else:
            address = self.address(frame, row, words)
            if kind != OpKind.COPY_TO:
                size = row["size"]
            if row["flags"] & OpFlag.DYNAMIC_SIZE:
                size = self.rng.choice((0, row["size"]) if row["flags"] & OpFlag.VALUE else (0, 3, 8))
                words.append(size)
            values = self.moved(row, words)
            if row["flags"] & OpFlag.GROUND_TRUTH:
                words.append(address)
            self.access(frame, op, kind, address, size, values)
        return size

    def moved(self, row: dict[str, Any], words: list[int]) -> tuple[int | None, int | None]:
        """The values loaded and stored, if they are recorded."""
        if not row["flags"] & OpFlag.VALUE:
            return None, None
        loaded, stored = (self.rng.choice((self.rng.getrandbits(8 * row["size"]), 1)) for _ in range(2))
        if row["kind"] != OpKind.ATOMIC:
            loaded = stored
        for value in (loaded, stored) if row["kind"] == OpKind.ATOMIC else (stored,):
            words.extend(value >> at & MASK for at in range(0, 8 * row["size"], 64))
        return loaded, stored

    def word(self, words: list[int]) -> int:
        value = self.rng.choice((self.rng.getrandbits(64), self.rng.randrange(64)))
        words.append(value)
        return value

    def address(self, frame: Frame, row: dict[str, Any], words: list[int]) -> int:
        base, address = row["base_kind"], row["offset"]
        if row["kind"] == OpKind.STACK_ALLOC and base == Base.RECORDED:
            # Half of the objects of one operation share their place, as those of a loop's body do.
            address = self.rng.choice((1 << 44, (1 << 44) + self.fresh()))
            words.append(address)
        elif base == Base.RECORDED:
            value = self.word(words)
            if row["defines"] != NONE:
                frame.registers[row["defines"]] = value
            address += value
        elif base == Base.REGISTER:
            address += frame.registers[row["base"]]
        elif base == Base.STACK:
            address += frame.newest[row["base"]].address
        elif base == Base.GLOBAL:
            address += self.b.globals[row["base"]]["address"]
        counts = dict(frame.loops)
        for stride, loop, register in row["affine"]:
            factor = stride + (0 if register == NONE else frame.registers[register])
            address += factor * counts[loop]
        return int(address) & MASK

    def access(
        self, frame: Frame, op: int, kind: int, address: int, size: int, values: tuple[int | None, int | None]
    ) -> None:
        row = self.row(op)
        if kind == OpKind.STACK_ALLOC:
            self.begin(frame, op, address, size)
        elif kind == OpKind.STACK_FREE:
            self.end(frame, op)
        elif kind == OpKind.POINTER:
            self.event("pointer_creation", row, address, 0)
        elif size:
            if kind in (OpKind.LOAD, OpKind.ATOMIC, OpKind.COPY_FROM):
                self.event("load", row, address, size, values[0])
            if kind in (OpKind.STORE, OpKind.ATOMIC, OpKind.SET):
                self.event("store", row, address, size, values[1])
            if kind == OpKind.COPY_TO:
                self.event("store", row - 1, address, size)

    def begin(self, frame: Frame, op: int, address: int, size: int) -> None:
        """A stack object begins; if its operation's last one lives in the same place, that one has ended."""
        last = frame.newest.get(op)
        if last is not None and last in frame.stack and last.address == address:
            self.event("stack_free", self.row(op), address, last.size)
            last.size = size
        else:
            frame.newest[op] = Object(op, address, size)
            frame.stack.append(frame.newest[op])
        self.event("stack_alloc", self.row(op), address, size)

    def end(self, frame: Frame, op: int) -> None:
        item = frame.newest[self.b.ops[op]["base"]]
        frame.stack.remove(item)
        self.event("stack_free", self.row(op), item.address, item.size)


class Runs:
    """How a loop that may be recorded as runs is: whole iterations as RUN records, or in full and with ground truth."""

    def __init__(self, walk: Walk, loop: Loop) -> None:
        self.walk, self.loop, self.rng = walk, loop, walk.rng
        self.as_runs = loop.run != NONE and self.rng.random() < 0.7
        self.has_ground_truth = loop.run != NONE and self.rng.random() < 0.7
        self.left = self.rng.choice((0, 0, 1, 2, 5, self.rng.randrange(100)))
        self.whole = self.waiting = self.at = 0
        if loop.run != NONE and self.rng.random() < 0.2:
            self.put(self.rng.choice((loop.run, loop.ground_truth)), 0)

    def put(self, path: int, iterations: int) -> None:
        self.walk.visits.append((Run(path), [iterations]))

    def more(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def begin(self) -> None:
        """An iteration begins: until it has ended nobody knows whether it is part of a run."""
        self.at = len(self.walk.visits)

    def end(self) -> None:
        """It was a whole one."""
        self.whole += 1
        if not self.as_runs:
            self.ground_truth()
        elif self.rng.random() < 0.98:
            del self.walk.visits[self.at :]
            self.waiting += 1
            if self.rng.random() < 0.02:
                self.flush(self.at)
        else:
            self.flush(self.at)

    def close(self) -> None:
        """The loop has ended; what its last iteration was in part was recorded after the run."""
        self.flush(self.at)

    def flush(self, at: int) -> None:
        """Put the iterations that wait where they happened, before the visits from `at` on."""
        if self.waiting:
            self.walk.visits.insert(at, (Run(self.loop.run), [self.waiting]))
            self.waiting = 0
            if len(self.walk.visits) == at + 1:
                self.ground_truth()

    def ground_truth(self) -> None:
        if self.has_ground_truth and self.rng.random() < 0.5:
            self.put(self.loop.ground_truth, self.whole)
