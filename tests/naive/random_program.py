"""Random programs: a syntax tree to walk (walker.py), and the image tables that the pass would write for it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.naive.program_builder import Layout, ProgramBuilder
from tracekit.formats.events import NONE
from tracekit.formats.image import Base, BlockFlag, CallFlag, LoopFlag, OpFlag, OpKind, PathFlag


@dataclass
class Block:
    """A statement: straight code."""

    handle: int


@dataclass
class Call:
    """A call that ends `before`; `after` continues it; `catch`: the function's handler catches what it throws."""

    before: int
    after: int
    op: int
    targets: tuple[int, ...]
    external: bool
    silent: bool
    catch: bool


@dataclass
class Loop:
    """A loop: `head` is its header (a Block or a Call); a while form tests there, a do form at its end.

    `run`, `ground_truth`: paths of a whole iteration, if the loop records nothing on its way; else NONE.
    """

    handle: int
    head: Any
    body: list[Any]
    while_form: bool
    run: int = NONE
    ground_truth: int = NONE


@dataclass
class Function:
    """entry; body; last. `landing`: where exceptions of catching calls land."""

    entry: int
    body: list[Any]
    last: int
    landing: int | None


class RandomProgram:
    """A program made by chance; loads of one seed are equal."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.b = ProgramBuilder()
        self.has_ground_truth = rng.random() < 0.5
        self.functions: list[Function] = []
        self.variables = [self.b.variable(f"v{k}", 64, 0x1000 * (k + 1)) for k in range(3)]
        count = rng.randint(1, 4)
        for k in range(count):
            self.b.function(f"f{k}", registers=3)
        for k in range(count):
            self.functions.append(self._function(k, count))
        self.paths = {(block,): self.b.path(block) for block in range(len(self.b.blocks))}
        self._longer_paths()
        self.layout: Layout = self.b.layout()
        self.program = self.b.program()

    def _function(self, function: int, count: int) -> Function:
        b, rng = self.b, self.rng
        self.catches = rng.random() < 0.5
        self.objects: list[int] = []
        entry = b.block(function, BlockFlag.ENTRY)
        if self.catches:
            b.op(entry, OpKind.FRAME)
        for register in range(3):
            b.op(entry, OpKind.BASE, defines=register)
        for _ in range(rng.randint(0, 2)):
            self.objects.append(b.op(entry, OpKind.STACK_ALLOC, size=64))
        body = self._statements(function, count, NONE, 0)
        last = b.block(function, BlockFlag.RETURNS)
        self._ops(last, NONE)
        landing = None
        if self.catches:
            landing = b.block(function, BlockFlag.LANDING)
            b.op(landing, OpKind.LANDING)
            self._ops(landing, NONE)
        return Function(entry, body, last, landing)

    def _statements(self, function: int, count: int, loop: int, depth: int) -> list[Any]:
        return [self._statement(function, count, loop, depth) for _ in range(self.rng.randint(0, 3))]

    def _statement(self, function: int, count: int, loop: int, depth: int) -> Any:
        choice = self.rng.random()
        if choice < 0.4:
            block = self.b.block(function, 0, loop)
            self._ops(block, loop)
            return Block(block)
        if choice < 0.7 or depth == 3:
            return self._call(function, count, loop, 0)
        while_form = self.rng.random() < 0.6
        inner = self.b.loop(function, loop, LoopFlag.TESTS_AT_HEADER if while_form else 0)
        if self.rng.random() < 0.4:
            return self._silent_loop(function, inner, while_form)
        if self.rng.random() < 0.3:
            head: Any = self._call(function, count, inner, BlockFlag.LOOP_HEADER)
        else:
            head = Block(self.b.block(function, BlockFlag.LOOP_HEADER, inner))
            self._ops(head.handle, inner)
        return Loop(inner, head, self._statements(function, count, inner, depth + 1), while_form)

    def _silent_loop(self, function: int, loop: int, while_form: bool) -> Loop:
        """A loop of blocks that record nothing: each of its iterations may be part of a run."""
        b, rng = self.b, self.rng
        blocks = [b.block(function, BlockFlag.LOOP_HEADER, loop)]
        blocks += [b.block(function, 0, loop) for _ in range(rng.randint(0, 2))]
        for block in blocks:
            for _ in range(rng.randint(0, 3)):
                self._silent_op(block, loop)
        run = b.path(*blocks, flags=PathFlag.RUN)
        ground_truth = b.path(*blocks, flags=PathFlag.RUN | PathFlag.GROUND_TRUTH)
        return Loop(loop, Block(blocks[0]), [Block(block) for block in blocks[1:]], while_form, run, ground_truth)

    def _silent_op(self, block: int, loop: int) -> None:
        rng, b = self.rng, self.b
        kind = rng.choice(
            (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.SET, OpKind.COPY_FROM, OpKind.POINTER, OpKind.CALL)
        )
        if kind == OpKind.CALL:
            b.call(block, "asm", CallFlag.INLINE_ASM, ends=False)
            return
        if rng.random() < 0.1:
            op = b.op(block, OpKind.STACK_ALLOC, 8, Base.REGISTER, rng.randrange(3), terms=self._terms(loop))
            b.op(block, OpKind.STACK_FREE, base=Base.STACK, of=op)
        size = rng.choice((0, 1, 4, 8))
        for part in (kind, OpKind.COPY_TO) if kind == OpKind.COPY_FROM else (kind,):
            base = rng.choice((Base.REGISTER, Base.REGISTER, Base.GLOBAL, Base.ABSOLUTE, Base.STACK))
            base = Base.ABSOLUTE if base == Base.STACK and not self.objects else base
            of = rng.choice(self.objects) if base == Base.STACK else 0 if base == Base.ABSOLUTE else rng.randrange(3)
            terms = () if base in (Base.GLOBAL, Base.STACK) else self._terms(loop)
            b.op(block, part, size, base, of, rng.randint(0, 40), terms)

    def _call(self, function: int, count: int, loop: int, flags: int) -> Call:
        rng = self.rng
        before = self.b.block(function, flags, loop)
        self._ops(before, loop)
        external = rng.random() < 0.4
        silent = external and rng.random() < 0.3
        catch = self.catches and rng.random() < 0.5
        if external:
            targets = tuple(rng.choices(range(count), k=rng.choice((0, 0, 2))))
            op = self.b.call(before, "library", CallFlag.PURE if silent else CallFlag.MAY_CALL_BACK)
        else:
            targets = (rng.randrange(count),)
            op = self.b.call(before, f"f{targets[0]}")
        after = self.b.block(function, 0, loop, continues=op)
        self._ops(after, loop)
        return Call(before, after, op, targets, external, silent, catch)

    def _ops(self, block: int, loop: int) -> None:
        if self._ground_truth():
            self.b.op(block, OpKind.GROUND_TRUTH)
        for _ in range(self.rng.randint(0, 3)):
            self._op(block, loop)

    def _ground_truth(self) -> int:
        return OpFlag.GROUND_TRUTH if self.has_ground_truth and self.rng.random() < 0.4 else 0

    def _op(self, block: int, loop: int) -> None:
        b, rng = self.b, self.rng
        kind = rng.choice(
            (
                OpKind.LOAD,
                OpKind.STORE,
                OpKind.ATOMIC,
                OpKind.SET,
                OpKind.COPY_FROM,
                OpKind.POINTER,
                OpKind.STACK_ALLOC,
                OpKind.CALL,
            )
        )
        size = rng.choice((1, 4, 8, 16))
        if kind == OpKind.CALL:
            b.call(block, "asm", CallFlag.INLINE_ASM, ends=False)
        elif kind == OpKind.STACK_ALLOC:
            self._stack_object(block, size)
        elif kind == OpKind.COPY_FROM:
            dynamic = rng.choice((0, OpFlag.DYNAMIC_SIZE))
            b.op(block, kind, size, flags=dynamic | self._ground_truth())
            b.op(block, OpKind.COPY_TO, size, flags=self._ground_truth())
        else:
            self._access(block, kind, size, loop)

    def _stack_object(self, block: int, size: int) -> None:
        """An object that begins here and, sometimes, ends here too."""
        b, rng = self.b, self.rng
        op = b.op(
            block, OpKind.STACK_ALLOC, size=size, flags=rng.choice((0, OpFlag.DYNAMIC_SIZE)) | self._ground_truth()
        )
        if rng.random() < 0.5:
            self._op(block, NONE)
            b.op(block, OpKind.STACK_FREE, base=Base.STACK, of=op, flags=self._ground_truth())

    def _terms(self, loop: int) -> tuple[tuple[int, int, int], ...]:
        """Terms that count some of the loops around."""
        terms = []
        while loop != NONE and self.rng.random() < 0.5:
            terms.append((self.rng.randint(-8, 8), loop, self.rng.choice((NONE, self.rng.randrange(3)))))
            loop = self.b.loops[loop]["parent"]
        return tuple(terms)

    def _access(self, block: int, kind: OpKind, size: int, loop: int) -> None:
        b, rng = self.b, self.rng
        terms = self._terms(loop)
        flags = 0
        if kind in (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC):
            flags = rng.choice((0, 0, OpFlag.VALUE, OpFlag.VALUE | OpFlag.DYNAMIC_SIZE))
        base = rng.choice((Base.RECORDED, Base.RECORDED, Base.REGISTER, Base.GLOBAL, Base.ABSOLUTE, Base.STACK))
        if base == Base.STACK and not self.objects:
            base = Base.RECORDED
        defines = rng.choice((NONE, NONE, rng.randrange(3))) if base == Base.RECORDED else NONE
        if base in (Base.GLOBAL, Base.STACK):
            terms = ()  # stay inside the object
        of = rng.choice(self.objects) if base == Base.STACK else rng.randrange(3)
        of = of if base in (Base.REGISTER, Base.GLOBAL, Base.STACK) else 0
        b.op(block, kind, size, base, of, rng.randint(0, 40), terms, defines, flags | self._ground_truth())

    def _longer_paths(self) -> None:
        """Paths of two and three blocks, wherever instrumented code could have them."""
        b = self.b
        for _ in range(2 * len(b.blocks)):
            first = self.rng.randrange(len(b.blocks))
            if b.blocks[first]["call"] != NONE or b.blocks[first]["flags"] & BlockFlag.RETURNS:
                continue
            followers = [
                k
                for k, block in enumerate(b.blocks)
                if block["function"] == b.blocks[first]["function"]
                and not block["flags"] & (BlockFlag.ENTRY | BlockFlag.LANDING)
            ]
            path = (first, self.rng.choice(followers))
            if path not in self.paths:
                self.paths[path] = b.path(*path)
