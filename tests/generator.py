"""Random small C programs: terminating, free of undefined behaviour, and full of dependences.

``program(seed)`` is a deterministic C source. It has a few global arrays of several element sizes, a union, heap
blocks, and functions with nested loops, calls (direct, through a table, recursive with a budget), copies,
break, continue and early return. Indices are masked to the arrays' power-of-two lengths, arithmetic is
unsigned, and a global budget of steps ends every loop and every recursion, so each program ends quickly
whatever its data; it prints a checksum of all its memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

ELEMENTS = (("uint8_t", 1), ("uint16_t", 2), ("uint32_t", 4), ("uint64_t", 8))
OPERATORS = ("+", "-", "*", "^", "|", "&")
STEPS = 3000
"""Loop iterations and calls that one program may run; afterwards its loops and calls end at once."""

_HEAD = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned steps;
#define STEP (steps++ < {steps}u)
"""


@dataclass
class _Array:
    name: str
    element: str
    length: int  # a power of two
    size: int  # bytes of an element


@dataclass
class _Function:
    name: str
    level: int  # calls go to greater levels, or with a smaller depth to the same one
    lines: list[str] = field(default_factory=list)


class _Writer:
    """Writes one program; every choice comes from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.arrays: list[_Array] = []
        self.functions = [_Function(f"f{i}", i) for i in range(self.random.randint(2, 5))]
        self.lines: list[str] = []
        self.loops = 0

    # -- declarations --------------------------------------------------------------------------

    def source(self, seed: int) -> str:
        self.globals()
        for function in reversed(self.functions):
            self.function(function)
        head = [f"// seed {seed}", _HEAD.format(steps=STEPS).rstrip(), *self.declarations()]
        return "\n".join([*head, *self.lines, *self.main(), ""])

    def globals(self) -> None:
        for i in range(self.random.randint(2, 5)):
            element, size = self.random.choice(ELEMENTS)
            self.arrays.append(_Array(f"g{i}", element, self.random.choice((2, 4, 8, 16, 32)), size))

    def declarations(self) -> list[str]:
        lines = []
        for array in self.arrays:
            start = f" = {{{', '.join(str(self.random.randrange(200)) for _ in range(array.length))}}}"
            lines.append(f"static {array.element} {array.name}[{array.length}]{self.random.choice(('', start))};")
        lines.append("static union { uint64_t whole[4]; uint32_t half[8]; uint16_t quarter[16]; uint8_t byte[32]; } u;")
        lines += [f"static uint32_t {f.name}(uint32_t a, uint32_t *p, unsigned depth);" for f in self.functions]
        names = ", ".join(f.name for f in self.functions)
        lines.append(f"static uint32_t (*table[{len(self.functions)}])(uint32_t, uint32_t *, unsigned) = {{{names}}};")
        return lines

    def function(self, function: _Function) -> None:
        keep = self.random.choice(("__attribute__((noinline)) ", "__attribute__((noinline)) ", ""))
        self.lines.append(f"{keep}static uint32_t {function.name}(uint32_t a, uint32_t *p, unsigned depth)")
        self.lines += ["{", "    uint32_t x = a, y = 1;", "    uint32_t local[8] = {0};"]
        self.block(function, 1, self.random.randint(2, 5), in_loop=False)
        self.lines += ["    return x + y + local[a & 7] + *p;", "}", ""]

    def main(self) -> list[str]:
        lines = ["int main(void)", "{", "    uint32_t start = 3, x = 0;"]
        lines += ["    for (unsigned i = 0; i < 3; i++) {", "        steps = 0;"]
        for function in self.functions:
            lines.append(f"        x ^= {function.name}(i * 7 + x, &start, {self.random.randint(1, 5)});")
        lines += ["    }", "    uint64_t hash = x;"]
        for array in [*self.arrays, _Array("u.byte", "uint8_t", 32, 1)]:
            lines.append(f"    for (unsigned i = 0; i < {array.length}; i++) hash = hash * 31 + {array.name}[i];")
        return [*lines, '    printf("%016llx\\n", (unsigned long long)hash);', "    return hash & 63;", "}"]

    # -- statements ----------------------------------------------------------------------------

    def block(self, function: _Function, indent: int, count: int, *, in_loop: bool) -> None:
        for _ in range(count):
            self.statement(function, indent, in_loop=in_loop)

    def statement(self, function: _Function, indent: int, *, in_loop: bool) -> None:
        pad = "    " * indent
        if indent < 5 and self.random.random() < 0.35:
            self.random.choice((self.loop, self.loop, self.branch))(function, indent, in_loop=in_loop)
            return
        simple = [self.assign] * 4 + [
            self.update,
            self.local,
            self.pointer,
            self.union,
            self.call,
            self.table,
            self.recurse,
            self.copy,
            self.heap,
        ]
        if in_loop:
            simple.append(self.leave)
        self.lines.append(pad + self.random.choice(simple)(function))

    def assign(self, _: _Function) -> str:
        return f"{self.element()} = {self.expression()};"

    def update(self, _: _Function) -> str:
        return f"{self.element()} {self.random.choice(('+', '^', '|', '-'))}= {self.expression()};"

    def local(self, _: _Function) -> str:
        return f"local[{self.index(8)}] = {self.expression()}, x ^= local[{self.index(8)}];"

    def pointer(self, _: _Function) -> str:
        return self.random.choice(("*p += x;", "p = &local[x & 7];", "y ^= *p;", "*p = y;"))

    def union(self, _: _Function) -> str:
        parts = (("whole", 4), ("half", 8), ("quarter", 16), ("byte", 32))
        (to, n), (of, m) = self.random.choice(parts), self.random.choice(parts)
        return f"u.{to}[{self.index(n)}] ^= u.{of}[{self.index(m)}] + x;"

    def call(self, function: _Function) -> str:
        deeper = [f for f in self.functions if f.level > function.level]
        if not deeper:
            return "y = y * 5 + 1;"
        return f"if (STEP) x += {self.random.choice(deeper).name}(y & 15, {self.target()}, depth);"

    def table(self, function: _Function) -> str:
        count = len(self.functions)
        return f"if (depth > 0 && STEP) y ^= table[x % {count}](x & 31, {self.target()}, depth - 1);"

    def recurse(self, function: _Function) -> str:
        return f"if (depth > 0 && STEP) y += {function.name}(x & 7, {self.target()}, depth - 1);"

    def copy(self, _: _Function) -> str:
        to, of = self.random.choice(self.arrays), self.random.choice(self.arrays)
        most = min(to.length * to.size, of.length * of.size)
        length = self.random.choice((str(self.random.randint(0, most)), f"x % {most + 1}"))
        call = "memmove" if to is of else self.random.choice(("memcpy", "memmove"))
        if self.random.random() < 0.25:
            return f"memset({to.name}, y & 255, {length});"
        return f"{call}({to.name}, {of.name}, {length});"

    def leave(self, _: _Function) -> str:
        what = self.random.choice(("break", "continue", "return x"))
        return f"if ({self.expression()} % {self.random.randint(3, 9)} == 0) {what};"

    def loop(self, function: _Function, indent: int, *, in_loop: bool) -> None:
        del in_loop
        pad, i = "    " * indent, f"i{self.loops}"
        self.loops += 1
        count = self.random.randint(1, 12)
        self.lines.append(
            pad
            + self.random.choice(
                (
                    f"for (unsigned {i} = 0; {i} < {count} && STEP; {i}++) {{",
                    f"for (unsigned {i} = {count}; {i}-- > 0 && STEP;) {{",
                    f"for (unsigned {i} = x & 7; {i} < 9 && STEP; {i} += 2) {{",
                )
            )
        )
        self.lines.append(f"{pad}    x += {i};")
        self.block(function, indent + 1, self.random.randint(1, 4), in_loop=True)
        self.lines.append(pad + "}")

    def heap(self, _: _Function) -> str:
        allocate = self.random.choice(("malloc(32)", "calloc(4, 8)", "realloc(calloc(2, 8), 32)"))
        return f"{{ uint32_t *h = {allocate}; h[{self.index(8)}] = x, h[0] = y; y += h[0] & 0xff; free(h); }}"

    def branch(self, function: _Function, indent: int, *, in_loop: bool) -> None:
        pad = "    " * indent
        self.lines.append(f"{pad}if ({self.expression()} & {self.random.choice((1, 2, 4))}) {{")
        self.block(function, indent + 1, self.random.randint(1, 3), in_loop=in_loop)
        if self.random.random() < 0.5:
            self.lines.append(pad + "} else {")
            self.block(function, indent + 1, self.random.randint(1, 2), in_loop=in_loop)
        self.lines.append(pad + "}")

    # -- expressions ---------------------------------------------------------------------------

    def index(self, length: int) -> str:
        return f"({self.random.choice(('x', 'y', 'a', 'x + y', 'steps'))} + {self.random.randrange(8)}) & {length - 1}"

    def element(self) -> str:
        array = self.random.choice(self.arrays)
        return f"{array.name}[{self.index(array.length)}]"

    def target(self) -> str:
        return self.random.choice(("p", "&x", f"&local[{self.random.randrange(8)}]"))

    def expression(self) -> str:
        def leaf() -> str:
            return self.random.choice((self.element(), "x", "y", "a", str(self.random.randrange(1, 50))))

        return f"((uint32_t){leaf()} {self.random.choice(OPERATORS)} (uint32_t){leaf()})"


def program(seed: int) -> str:
    """The C source of the random program with this seed."""
    return _Writer(seed).source(seed)
