"""Contexts and loops as the JSON of a profile shows them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracekit.contexts.nodes import RECURSIONS, ContextKind
from tracekit.formats.events import NONE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracekit.program.program import Program

    Rows = NDArray[np.void]


Json = dict[str, Any]


class ContextNames:
    """The names of a context tree (NODE); every answer is made once and shared, so treat it as read-only."""

    def __init__(self, program: Program, nodes: Rows) -> None:
        self.program = program
        self.nodes = nodes
        self.instruction = lru_cache(maxsize=None)(self._instruction)
        self.loop = lru_cache(maxsize=None)(program.loop)
        self.context = lru_cache(maxsize=None)(self._context)
        self._column = lru_cache(maxsize=None)(self._columns)
        self._paths: dict[int, tuple[str, tuple[str, ...]]] = {}

    def _instruction(self, op: int) -> Json:
        if op == NONE:  # a library's access while no instrumented call was open
            return {"id": None, "kind": "library", "function": "", "file": "", "line": 0, "column": 0, "inlined_at": []}
        return self.program.instruction(op)

    def loop_name(self, loop: int) -> str:
        """`function:line`, as paths name a loop."""
        row = self.loop(loop)
        return f"{row['function']}:{row['line']}"

    def call_name(self, call: int) -> str:
        """`function:line:column`, as paths name a call site."""
        row = self.instruction(call)
        return f"{row['function']}:{row['line']}:{row['column']}"

    def level(self, node: int) -> Json:
        """A level: a loop, or the recursion that is entered at a call site."""
        row = self.nodes[node]
        if row["kind"] in RECURSIONS:
            return {"recursion": self.call_name(int(row["call"]))}
        return self.loop(int(row["loop"]))

    def _context(self, node: int) -> Json:
        root, path = self._root_and_path(node)
        camp_id = self._column("camp_id")[node]
        return {"id": camp_id if camp_id >= 0 else None, "root": root, "path": list(path)}

    def _root_and_path(self, node: int) -> tuple[str, tuple[str, ...]]:
        """The root's name, and the steps from it; a tree may be deeper than Python's stack."""
        parents = self._column("parent")
        below: list[int] = []
        while node not in self._paths and parents[node] != NONE:
            below.append(node)
            node = parents[node]
        if node not in self._paths:
            root = self._column("function")[node]
            self._paths[node] = ("" if root == NONE else self.program.function_name(root), ())
        found = self._paths[node]
        for node in reversed(below):
            found = self._paths[node] = (found[0], (*found[1], self._step(node)))
        return found

    def _step(self, node: int) -> str:
        kind = self._column("kind")[node]
        if kind in _CALLS:
            return self.call_name(self._column("call")[node])
        if kind == _RECURSION:
            return f"recursion {self.call_name(self._column('call')[node])}"
        return f"loop {self.loop_name(self._column('loop')[node])}"

    def _columns(self, name: str) -> list[int]:
        """A column of the nodes as numbers of Python's, which are found ten times as fast."""
        values: list[int] = self.nodes[name].tolist()
        return values


# Plain numbers: Python 3.11 takes a microsecond to find a member of an enumeration.
_CALLS = (int(ContextKind.CALL), int(ContextKind.RECURSIVE_CALL))
_RECURSION = int(ContextKind.RECURSION)
