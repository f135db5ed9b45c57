"""How groups of nodes are told apart and shown: by what they are, and by the calls that they began in."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

from tracekit.formats.events import NONE
from tracekit.program.program import Program
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.kernels.layouts import NODE_KINDS

Json = dict[str, Any]

LONGEST = 64
"""Calls of a context that are shown: of a deeper one, the outermost and the innermost."""


class GroupNames:
    """The names of a run; every answer is made once and shared, so treat it as read-only."""

    def __init__(self, program: Program, collector: StepCollector) -> None:
        self.program = program
        contexts = collector.collected.contexts
        self._keys = contexts.rows["key"][: contexts.control[0]]
        self.context = lru_cache(maxsize=None)(self._context)

    def _context(self, row: int) -> Json | None:
        """The function that a thread began in and the calls from there to an event; None if nothing was running."""
        if row == 0:
            return None
        calls: list[int] = []
        while (key := int(self._keys[row])) >> 32:
            calls.append(key & NONE)
            row = key >> 32
        path = [self._call(call) for call in reversed(calls)]
        if len(path) > LONGEST:
            path = [*path[: LONGEST // 2], "...", *path[-LONGEST // 2 :]]
        return {"root": self.program.function_name(key), "path": path}

    def _call(self, call: int) -> str:
        """`function:line:column`, as contexts of other modules name a call."""
        row = self.program.instruction(call)
        return f"{row['function']}:{row['line']}:{row['column']}"

    def group(self, kind: int, created: int, context: int) -> Json:
        """A group of nodes: its kind, where their thread was created, and where they begin."""
        shown = {"kind": NODE_KINDS[kind], "created": self.context(created), "begins": self.context(context)}
        digest = hashlib.blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=6).hexdigest()
        return {"id": digest, **shown}
