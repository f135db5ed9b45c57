"""Contexts, loops and objects of a dependence profile as the JSON of a profile shows them (modules.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracekit.formats.events import NONE
from tracekit.replay.allocators import Allocators
from tracekit.replay.dependence_profile import ContextKind, DependenceProfile, ObjectKind
from tracekit.replay.recipes import Recipe
from tracekit.replay.verdicts import Blocker, Reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracekit.replay.program import Program

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
        self._root_and_path = lru_cache(maxsize=None)(self._find_path)

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
        if row["kind"] == ContextKind.RECURSION:
            return {"recursion": self.call_name(int(row["call"]))}
        return self.loop(int(row["loop"]))

    def _context(self, node: int) -> Json:
        root, path = self._root_and_path(node)
        camp_id = int(self.nodes["camp_id"][node])
        return {"id": camp_id if camp_id >= 0 else None, "root": root, "path": list(path)}

    def _find_path(self, node: int) -> tuple[str, tuple[str, ...]]:
        steps: list[str] = []
        row = self.nodes[node]
        while row["parent"] != NONE:
            steps.append(self._step(row))
            row = self.nodes[row["parent"]]
        root = int(row["function"])
        return "" if root == NONE else self.program.function_name(root), tuple(reversed(steps))

    def _step(self, row: Any) -> str:
        if row["kind"] == ContextKind.CALL:
            return self.call_name(int(row["call"]))
        if row["kind"] == ContextKind.RECURSION:
            return f"recursion {self.call_name(int(row['call']))}"
        return f"loop {self.loop_name(int(row['loop']))}"


class Names(ContextNames):
    """The names of a dependence profile: also those that recipes and obstacles need."""

    def __init__(self, program: Program, profile: DependenceProfile) -> None:
        super().__init__(program, profile.nodes)
        self.profile = profile
        self.allocators = Allocators(program, profile.nodes, self.instruction)

    def place(self, location: int) -> Json:
        """File, line and column of a row of ``locations``."""
        if location == NONE:
            return {"file": "", "line": 0, "column": 0}
        row = self.program.locations[location]
        source = int(row["source"])
        path = "" if source == NONE else self.program.text(int(self.program.sources["path"][source]))
        return {"file": path, "line": int(row["line"]), "column": int(row["column"])}

    def phi(self, phi: int) -> Json:
        """A variable that a loop carries in a register."""
        row = self.program.phis[phi]
        return {"kind": "register", "name": self.program.text(int(row["name"])), **self.place(int(row["location"]))}

    def object(self, row: int) -> Json:
        """A row of the profile's objects; a site is an instruction, of a heap block with what allocators.py says."""
        if row == NONE:
            return {"kind": "unknown"}
        kind, site = (int(value) for value in self.profile.objects[row])
        if kind == ObjectKind.UNKNOWN or site == NONE:
            return {"kind": ObjectKind(kind).name.lower()}
        if kind == ObjectKind.GLOBAL:
            variable = self.program.globals[site]
            name = self.program.text(int(variable["source_name"]) or int(variable["name"]))
            return {"kind": "global", "name": name}
        named = {"name": self.program.text(int(self.program.ops["name"][site]))} if kind == ObjectKind.STACK else {}
        calls = self.allocators.calls(site) if kind == ObjectKind.HEAP else {}
        return {"kind": ObjectKind(kind).name.lower(), **named, "site": self.instruction(site), **calls}

    def recipe(self, recipe: Recipe) -> Json:
        """One step of a recipe: what to do, with which object, by which operator."""
        through_register = recipe.phi != NONE
        return {
            "kind": recipe.kind,
            "object": self.phi(recipe.phi) if through_register else self.object(recipe.object),
            "operator": self.program.text(recipe.operator) if recipe.kind == "reduction" else None,
        }

    def blocker(self, blocker: Blocker) -> Json:
        """One obstacle: an instruction, a variable or an exit as source; a destination for dependences only."""
        if blocker.reason is Reason.RECURRENCE:
            source = self.phi(blocker.source)
        elif blocker.reason is Reason.EXIT:
            row = self.program.loop_exits[blocker.source]
            location = int(row["location"])
            if location == NONE:
                block = self.program.blocks[row["source"]]
                location = int(block["location"])
                if location == NONE and block["loop"] != NONE:
                    location = int(self.program.loops["location"][block["loop"]])
            source = {"kind": "exit", **self.place(location)}
        else:
            source = self.instruction(blocker.source)
        destination = self.instruction(blocker.destination) if blocker.destination != NONE else None
        return {"reason": blocker.reason.value, "source": source, "destination": destination}
