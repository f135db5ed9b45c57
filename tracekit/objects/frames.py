"""The calls around an allocation as the compiler knows them: linkage names, lines counted from a function's own.

LLVM's memory profiles name places so, because they are the same where what stands before a function changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracekit.formats.events import NONE
from tracekit.program.symbols import INLINING_LIMIT

if TYPE_CHECKING:
    from tracekit.program.program import Program

LINES = 1 << 16
"""Lines are counted modulo this."""


class Frames:
    """The stacks of a program's sites."""

    def __init__(self, program: Program) -> None:
        self._program = program
        names = ((program.function_name(row), row) for row in reversed(range(len(program.functions))))
        self._functions = dict(names)  # by the name that locations have; the first of several

    def stack(self, nodes: Any, site: Any) -> list[dict[str, Any]]:
        """The stack of a site (SITE), innermost first; `nodes`: the context tree (TREE).

        A frame has ``function``, ``line`` from the function's own, ``column``, and whether it is ``inlined`` into the
        next. The stack ends where one is not known: code without lines, a function that was inlined wherever it was
        called.
        """
        frames: list[dict[str, Any]] = []
        for op in calls_around(nodes, site):
            for frame in self._frames(op):
                if frame is None:
                    return frames
                frames.append(frame)
        return frames

    def _frames(self, op: int) -> Iterator[dict[str, Any] | None]:
        """The frames of one instruction: what it was inlined into, too. None for one that is not known."""
        program = self._program
        location = NONE if op == NONE else int(program.ops["location"][op])
        for _ in range(INLINING_LIMIT):
            row = None if location == NONE else program.locations[location]
            own = None if row is None else self._declared(row, op)
            if row is None or own is None:
                yield None
                return
            function, line = own
            outer = int(row["inlined_at"])
            yield {
                "function": program.text(int(program.functions["name"][function])),
                "line": (int(row["line"]) - line) % LINES,
                "column": int(row["column"]),
                "inlined": outer != NONE,
            }
            if outer == NONE:
                return
            location = outer

    def _declared(self, location: Any, op: int) -> tuple[int, int] | None:
        """The function that a row of ``locations`` lies in, and its line; None if either is not known."""
        program = self._program
        function: int | None = int(program.op_function[op])
        if location["inlined_at"] != NONE:
            function = self._functions.get(program.text(int(location["function"])))
        if function is None or function == NONE or not location["line"]:
            return None
        declared = int(program.functions["location"][function])
        return None if declared == NONE else (function, int(program.locations["line"][declared]))


def calls_around(nodes: Any, site: Any) -> Iterator[int]:
    """The instruction that allocates, then the calls around it, innermost first."""
    yield int(site["site"])
    yield from (call for call in reversed(site["calls"].tolist()) if call != NONE)
    node = int(site["node"])
    while node != NONE:
        if nodes["call"][node] != NONE:
            yield int(nodes["call"][node])
        node = int(nodes["parent"][node])
