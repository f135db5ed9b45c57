"""Contexts, loops and objects of a dependence profile as the JSON of a profile shows them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tracekit.contexts.names import ContextNames, Json
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.events import NONE
from tracekit.objects.allocators import Allocators
from tracekit.objects.kinds import ObjectKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracekit.program.program import Program

    Rows = NDArray[np.void]


class ProfileNames(ContextNames):
    """The names of a dependence profile: of its contexts, its objects, and what loops carry in registers."""

    def __init__(self, program: Program, profile: DependenceProfile) -> None:
        super().__init__(program, profile.nodes)
        self.profile = profile
        self.allocators = Allocators(program, profile.nodes, self.instruction)
        self.object = lru_cache(maxsize=None)(self._object)

    def phi(self, phi: int) -> Json:
        """A variable that a loop carries in a register."""
        row = self.program.phis[phi]
        return {
            "kind": "register",
            "name": self.program.text(int(row["name"])),
            **self.program.phi_place(phi),
        }

    def _object(self, row: int) -> Json:
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
