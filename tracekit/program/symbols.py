"""How functions, instructions and loops of a program are shown in profiles, and what functions may be called."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag, OpKind
from tracekit.program.nearest import Nearest
from tracekit.program.sources import is_system

if TYPE_CHECKING:
    from tracekit.program.tables import Tables

KIND_NAMES: dict[int, str] = {
    OpKind.LOAD: "load",
    OpKind.STORE: "store",
    OpKind.ATOMIC: "atomic",
    OpKind.COPY_FROM: "copy",
    OpKind.COPY_TO: "copy",
    OpKind.SET: "set",
    OpKind.CALL: "library",
    OpKind.STACK_ALLOC: "stack_alloc",
    OpKind.STACK_FREE: "stack_free",
    OpKind.POINTER: "pointer",
}

NO_COUNTER = "no program counter"
"""In place of a file: of an imported access without one, if it has no line either."""


def is_counter(file: str) -> bool:
    """Whether what stands in place of a file is a program counter, or says that there is none."""
    return file == NO_COUNTER or _COUNTER.fullmatch(file) is not None


_COUNTER = re.compile("0x[0-9a-f]+")

_LIBRARY = int(OpFlag.LIBRARY)

INLINING_LIMIT = 256
"""Longest inlined-at chain shown; a damaged table could hold a cycle."""


class Symbols:
    """Answers for one program, remembered."""

    def __init__(self, program: Tables) -> None:
        self.program = program
        self.function_name = lru_cache(maxsize=None)(self._function_name)
        self._known_place = lru_cache(maxsize=None)(self._place)  # for reading: instructions share most of theirs
        self.phi_place = lru_cache(maxsize=None)(self._phi_place)

    def _function_name(self, function: int) -> str:
        row = self.program.functions[function]
        return self.program.text(int(row["source_name"])) or self.program.text(int(row["name"]))

    @cached_property
    def _declared(self) -> dict[str, str]:
        """Linkage name -> source name of functions that some unit calls and does not define."""
        rows, text = self.program.declarations, self.program.text
        return {text(name): text(source_name) for name, source_name in rows.tolist()}

    def callee_name(self, call: int) -> str:
        """See Program.callee_name."""
        name = self.program.text(int(self.program.calls["callee"][call]))
        return self._declared.get(name, name)

    def place(self, location: int) -> dict[str, Any]:
        """File, line and column of a row of ``locations``; empty and zeros for NONE."""
        return dict(self._known_place(location))

    def _place(self, location: int) -> dict[str, Any]:
        if location == NONE:
            return {"file": "", "line": 0, "column": 0}
        row = self.program.locations[location]
        source = int(row["source"])
        path = "" if source == NONE else self.program.source_names.names[source]
        return {"file": path, "line": int(row["line"]), "column": int(row["column"])}

    def instruction(self, op: int, free: bool) -> dict[str, Any]:
        """See Program.instruction."""
        program = self.program
        row = program.ops[op]
        unit = bisect_right(self._first_ops, op) - 1
        kind = KIND_NAMES.get(int(row["kind"]), "")
        if int(row["flags"]) & _LIBRARY:
            kind = "library"
        owner = int(program.op_function[op])
        function = self.function_name(owner) if owner != NONE else ""
        location = int(row["location"])
        if program.is_imported:
            place = self.place(location)
            return {
                "id": f"{program.unit_hashes[unit]}:{op - self._first_ops[unit]}",
                "kind": kind,
                "function": self._scope(location),
                **(place if place["line"] else {**place, "file": self._counters.get(op, NO_COUNTER)}),
                "inlined_at": [],
            }
        near = NONE if self.nearest.has_line(location) else self.nearest.to_op(op)
        shown = location if near == NONE else near
        chain = self._inlined_at(shown, function)
        return {
            "id": f"{program.unit_hashes[unit]}:{op - self._first_ops[unit]}",
            "kind": "free" if free else kind,
            "function": self._scope(shown) if chain else function,
            **(self._known_place(location) if near == NONE else self.nearby(near)),
            "inlined_at": chain,
        }

    @cached_property
    def _first_ops(self) -> list[int]:
        """The first instruction of each unit."""
        firsts: list[int] = self.program.unit_first_op.tolist()
        return firsts

    @cached_property
    def _counters(self) -> dict[int, str]:
        """Instruction -> its program counter, in hexadecimal."""
        rows = self.program.counters
        return {op: f"{counter:#x}" for op, counter in zip(rows["op"].tolist(), rows["counter"].tolist())}

    @cached_property
    def nearest(self) -> Nearest:
        """Places of code without a line."""
        return Nearest(self.program)

    def nearby(self, location: int) -> dict[str, Any]:
        """The place of what stands near a row of ``locations``: ``nearby`` is true if that has a line."""
        known = {"nearby": True} if self.nearest.has_line(location) else {}
        return {**self.place(location), "column": 0, **known}

    def _phi_place(self, phi: int) -> dict[str, Any]:
        """The place of a row of ``phis``: its own, its declaration's, or of what stands near."""
        location = int(self.program.phis["location"][phi])
        if self.nearest.has_line(location):
            return self.place(location)
        loop = int(self._phi_loop[phi])
        if loop == NONE:
            return self.place(location)
        near = self.nearest.to_phi(phi, int(self.program.loops["header"][loop]))
        return self.nearby(self._declaration(loop, phi) if near == NONE else self._in_text_of(loop, near))

    def _in_text_of(self, loop: int, location: int) -> int:
        """The row of ``locations`` of the call in a loop's own text that holds inlined code; itself if none does."""
        own, rows = int(self.program.loops["location"][loop]), self.program.locations
        row = location
        while NONE not in (own, row):
            if rows["function"][row] == rows["function"][own] and rows["inlined_at"][row] == rows["inlined_at"][own]:
                return row
            row = int(rows["inlined_at"][row])
        return location

    def _declaration(self, loop: int, phi: int) -> int:
        """The row of ``locations`` of the declaration of a phi's variable, or NONE."""
        variables, text = self.program.variables, self.program.text
        name = text(int(self.program.phis["name"][phi]))
        of_loop = variables[variables["loop"] == loop]
        return next((int(row["location"]) for row in of_loop if name and text(int(row["name"])) == name), NONE)

    @cached_property
    def _phi_loop(self) -> Any:
        """The loop of each row of ``phis``, or NONE."""
        owner = np.full(len(self.program.phis), NONE, np.int64)
        for loop, row in enumerate(self.program.loops):
            owner[int(row["first_phi"]) : int(row["first_phi"]) + int(row["phis"])] = loop
        return owner

    def exit_place(self, exit_row: int) -> dict[str, Any]:
        """The place of a row of ``loop_exits``: its own, its block's, or of what stands near."""
        row = self.program.loop_exits[exit_row]
        block = int(row["source"])
        for location in (int(row["location"]), int(self.program.blocks["location"][block])):
            if self.nearest.has_line(location):
                return self.place(location)
        return self.nearby(self.nearest.to_block(block))

    def loop(self, loop: int) -> dict[str, Any]:
        """See Program.loop."""
        shown = self._loop(loop)
        places = self._called_at.get(tuple(shown.values()))
        return {**shown, "called_at": places} if places else shown

    def source_loop(self, loop: int) -> dict[str, Any]:
        """See Program.source_loop."""
        location = int(self.program.loops["location"][loop])
        shown = self.loop(loop)
        chain = self._inlined_at(location, shown["function"])
        if not chain:
            return {**shown, "inlined_at": chain}
        home = self._home(loop)
        depth, around = 1, int(self.program.loops["parent"][loop])
        while around != NONE:
            depth += self._home(around) == home
            around = int(self.program.loops["parent"][around])
        return {**shown, "function": self._scope(location), "depth": depth, "inlined_at": chain}

    def _home(self, loop: int) -> tuple[int, int]:
        """The function in whose text a loop stands, and where that was inlined."""
        location = int(self.program.loops["location"][loop])
        if location == NONE:
            return 0, NONE
        row = self.program.locations[location]
        return int(row["function"]), int(row["inlined_at"])

    def _loop(self, loop: int) -> dict[str, Any]:
        row = self.program.loops[loop]
        location = int(row["location"])
        known = self.nearest.has_line(location)
        return {
            "function": self.function_name(int(row["function"])),
            **(self.place(location) if known else self.nearby(self.nearest.to_loop(loop))),
            "depth": int(row["depth"]),
        }

    @cached_property
    def _called_at(self) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """Of loops in system headers: where in the user's code they were inlined; copies at one place are one."""
        rows, locations = self.program.loops["location"], self.program.locations
        known = np.flatnonzero(rows != NONE)
        places_of: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[str, Any]]] = {}
        for loop in known[locations["inlined_at"][rows[known]] != NONE].tolist():
            shown = self._loop(loop)
            chain = self._inlined_at(int(rows[loop]), shown["function"]) if is_system(shown["file"]) else []
            user = next((place for place in chain if not is_system(place["file"])), None)
            if user is not None:
                key = (user["file"], user["line"], user["column"], user["function"])
                places_of.setdefault(tuple(shown.values()), {})[key] = user
        return {loop: [places[key] for key in sorted(places)] for loop, places in places_of.items()}

    def _scope(self, location: int) -> str:
        return self.program.text(int(self.program.locations["function"][location]))

    def _inlined_at(self, location: int, function: str) -> list[dict[str, Any]]:
        """Where the code was inlined, innermost first; the last entry stands in `function` itself."""
        chain: list[dict[str, Any]] = []
        while location != NONE and len(chain) < INLINING_LIMIT:
            location = int(self.program.locations["inlined_at"][location])
            if location != NONE:
                chain.append({"function": self._scope(location), **self._known_place(location)})
        if chain:
            chain[-1]["function"] = function
        return chain
