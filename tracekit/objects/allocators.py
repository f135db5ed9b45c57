"""Where a function was called that does little more than allocate: a constructor of a list's nodes.

Objects are told apart by their allocation site (contexts/kernels/allocation_site.py). All that such a function made are
one, unless it hands on what it allocates, as xmalloc does. The context tree says which calls entered it; it does not
say which of them made the memory of a certain dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.contexts.nodes import ContextKind
from tracekit.formats.events import NONE
from tracekit.program.sources import is_system
from tracekit.program.validation import runs

if TYPE_CHECKING:
    from tracekit.program.program import Program

Json = dict[str, Any]

KNOWN_CALLS = (ContextKind.CALL, ContextKind.RECURSIVE_CALL)
LISTED_CALLS = 4
"""How many calls an object lists."""


class Allocators:
    """The calls that led to allocations; `nodes` (NODE) is the context tree, `instruction` shows an instruction."""

    def __init__(self, program: Program, nodes: np.ndarray, instruction: Callable[[int], Json]) -> None:
        self.program = program
        self.nodes = nodes
        self.instruction = instruction
        self.calls = lru_cache(maxsize=None)(self._calls)

    def _calls(self, site: int) -> Json:
        """``called_at``: calls of the function with the allocation `site`.

        ``called_elsewhere``: there are more, or may be, inside a recursion. Neither if there are no such calls, nor of
        a function with a loop: it does more than allocate.
        """
        function = int(self.program.op_function[site])
        if function == NONE or self.program.functions["loops"][function] != 0:
            return {}
        entered = np.flatnonzero(np.isin(self.nodes["kind"], KNOWN_CALLS) & (self.nodes["function"] == function))
        places: dict[tuple[Any, ...], Json] = {}
        for call in {self._users_call(node) for node in entered.tolist()}:
            place = self._users_place(call)
            places[tuple(place.values())] = place
        if not places:
            return {}
        return {
            "called_at": [places[key] for key in sorted(places)][:LISTED_CALLS],
            "called_elsewhere": len(places) > LISTED_CALLS or bool(np.isin(function, self._recursive)),
        }

    def _is_library(self, op: int) -> bool:
        """Whether an instruction, and all that it was inlined into, stands in headers of the system."""
        return is_system(self._users_place(op)["file"])

    def _users_place(self, op: int) -> Json:
        """The outermost place outside headers of the system that an instruction was inlined into, or its own."""
        shown = self.instruction(op)
        chain = [
            {part: place[part] for part in ("file", "line", "column", "function")}
            for place in (shown, *shown["inlined_at"])
        ]
        return next((place for place in reversed(chain) if not is_system(place["file"])), chain[-1])

    def _users_call(self, node: int) -> int:
        """The innermost call around a node that the user wrote, or the outermost."""
        call = NONE
        while node != NONE:
            if self.nodes["kind"][node] in KNOWN_CALLS:
                call = int(self.nodes["call"][node])
                if not self._is_library(call):
                    break
            node = int(self.nodes["parent"][node])
        return call

    @cached_property
    def _recursive(self) -> np.ndarray:
        """The functions that may have been called inside recursions, whose calls the tree does not tell apart."""
        recursions = self.nodes["kind"] == ContextKind.RECURSION
        caller = self.program.op_function[self.program.calls["op"]]
        callees = self.program.callees
        functions = new = np.unique(self.nodes["function"][recursions])
        while new.size:
            calls = np.flatnonzero(np.isin(caller, new))
            entered = np.unique(callees.functions[runs(callees.first[calls], callees.count[calls])])
            new = np.setdiff1d(entered, functions)
            functions = np.union1d(functions, new)
        folded = self.nodes["function"][self.nodes["kind"] == ContextKind.RECURSIVE_CALL]
        return np.union1d(functions, folded)
