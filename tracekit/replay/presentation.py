"""How functions, instructions and loops of a program are shown in profiles: demangled, with relative paths."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag, OpKind

if TYPE_CHECKING:
    from tracekit.replay.program import Program

KIND_NAMES: dict[int, str] = {
    OpKind.LOAD: "load", OpKind.STORE: "store", OpKind.ATOMIC: "atomic", OpKind.COPY_FROM: "copy",
    OpKind.COPY_TO: "copy", OpKind.SET: "set", OpKind.CALL: "library",
    OpKind.STACK_ALLOC: "stack_alloc", OpKind.STACK_FREE: "stack_free", OpKind.POINTER: "pointer",
}

_LIBRARY = int(OpFlag.LIBRARY)

INLINING_LIMIT = 256
"""Longest inlined-at chain shown; a damaged table could hold a cycle."""


class Presentation:
    """Answers for one program, remembered."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.function_name = lru_cache(maxsize=None)(self._function_name)

    def _function_name(self, function: int) -> str:
        row = self.program.functions[function]
        return demangle(self.program.text(int(row["name"])), self.program.text(int(row["source_name"])))

    def place(self, location: int) -> dict[str, Any]:
        """File, line and column of a row of ``locations``; empty and zeros for NONE."""
        if location == NONE:
            return {"file": "", "line": 0, "column": 0}
        row = self.program.locations[location]
        source = int(row["source"])
        path = "" if source == NONE else self.program.text(int(self.program.sources["path"][source]))
        return {"file": path, "line": int(row["line"]), "column": int(row["column"])}

    def instruction(self, op: int, free: bool) -> dict[str, Any]:
        """See Program.instruction."""
        program = self.program
        row = program.ops[op]
        unit = int(np.searchsorted(program.unit_first_op, op, side="right")) - 1
        kind = KIND_NAMES.get(int(row["kind"]), "")
        if int(row["flags"]) & _LIBRARY:
            kind = "library"
        owner = int(program.op_function[op])
        function = self.function_name(owner) if owner != NONE else ""
        location = int(row["location"])
        chain = self._inlined_at(location, function)
        return {
            "id": f"{program.unit_hashes[unit]}:{op - int(program.unit_first_op[unit])}",
            "kind": "free" if free else kind,
            "function": self._scope(location) if chain else function,
            **self.place(location),
            "inlined_at": chain,
        }

    def loop(self, loop: int) -> dict[str, Any]:
        """See Program.loop."""
        row = self.program.loops[loop]
        return {
            "function": self.function_name(int(row["function"])),
            **self.place(int(row["location"])),
            "depth": int(row["depth"]),
        }

    def _scope(self, location: int) -> str:
        return demangle(self.program.text(int(self.program.locations["function"][location])), "")

    def _inlined_at(self, location: int, function: str) -> list[dict[str, Any]]:
        """Where the code was inlined, innermost first; the last entry stands in `function` itself."""
        chain: list[dict[str, Any]] = []
        while location != NONE and len(chain) < INLINING_LIMIT:
            location = int(self.program.locations["inlined_at"][location])
            if location != NONE:
                chain.append({"function": self._scope(location), **self.place(location)})
        if chain:
            chain[-1]["function"] = function
        return chain


def demangle(name: str, fallback: str) -> str:
    """A C++ linkage name in the notation of C++; `fallback` (or the name) where that fails; other names as they are."""
    if not name.startswith("_Z"):
        return name
    from itanium_demangler import parse

    # A clone's suffix (.isra.0, .cold) is no part of the mangling.
    stem, dot, suffix = name.partition(".")
    try:
        tree = parse(stem)
        text = "" if tree is None else str(tree)
    except Exception:
        text = ""
    return text + (f" [{suffix}]" if dot else "") if text else fallback or name
