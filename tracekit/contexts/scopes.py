"""Makes the table of open scopes (kernels/scopes.py); joins and names scopes in profiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import arena
from tracekit.contexts.kernels.scopes import CONTROL, NEVER, SCOPE, Scopes
from tracekit.contexts.nodes import LOOPS
from tracekit.formats.events import NONE

if TYPE_CHECKING:
    from tracekit.contexts.names import ContextNames
    from tracekit.contexts.table import ContextTable
    from tracekit.program.program import Program

MOST_STREAMS = 1 << 19

Scope = tuple[int, bool]
"""A node of the context tree, and whether one iteration of it is meant; (-1, False) is the run."""
RUN: Scope = (-1, False)
"""The scope that is open from the first event to the last."""


def named_scopes(contexts: ContextTable, codes: Any) -> tuple[Any, Any]:
    """What ``kernels.scopes.holder`` gave, as rows of nodes (NONE: the run), and whether one iteration is meant."""
    numbers = codes >> 1
    return np.where(numbers == 0, NONE, contexts.rows(numbers)), codes & 1


def open_scopes() -> Scopes:
    """No scope is open."""
    rows = arena.arena(SCOPE, 1 << 31)
    rows.rows["iteration"][0] = NEVER  # row 0 is around all
    return Scopes(rows, arena.reserve("u4", MOST_STREAMS), np.zeros(CONTROL, np.int64))


class ScopeNames:
    """Scopes of a profile; `contexts` names their nodes."""

    def __init__(self, program: Program, contexts: ContextNames) -> None:
        self.program = program
        self.contexts = contexts

    def chain(self, scope: Scope) -> list[Scope]:
        """The scopes around a scope and itself, from the run inwards.

        Of the loops inside a recursion leaf, which the context tree has side by side, none is around another. What a
        node is below was open around it, always; where recursion was folded, not all that was open is told.
        """
        node, iteration = scope
        inner_first: list[Scope] = []
        while node >= 0:
            if iteration:
                inner_first.append((node, True))
            inner_first.append((node, False))
            parent = int(self.contexts.nodes["parent"][node])
            node = -1 if parent == NONE else parent
            iteration = node >= 0 and self.is_loop(node)
        return [RUN, *reversed(inner_first)]

    def join(self, scopes: Iterable[Scope]) -> Scope:
        """The innermost scope that holds all of them."""
        chains = [self.chain(scope) for scope in scopes]
        common = RUN
        for level in zip(*chains):
            if len(set(level)) > 1:
                break
            common = level[0]
        return common

    def is_loop(self, node: int) -> bool:
        """Whether a node is a loop."""
        return int(self.contexts.nodes["kind"][node]) in LOOPS

    def show(self, scope: Scope) -> dict[str, Any]:
        """``{"kind": "iteration" | "invocation" | "call" | "run", ...}`` with the loop or function, and the context."""
        node, iteration = scope
        if node < 0:
            return {"kind": "run"}
        row = self.contexts.nodes[node]
        context = self.contexts.context(node)
        if self.is_loop(node):
            return {
                "kind": "iteration" if iteration else "invocation",
                "loop": self.program.loop(int(row["loop"])),
                "context": context,
            }
        name = "" if row["function"] == NONE else self.program.function_name(int(row["function"]))
        return {"kind": "call", "function": name, "context": context}
