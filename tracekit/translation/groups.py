"""What the numbers of groups mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.formats.events import NONE
from tracekit.translation.kernels.translation import (
    GLOBAL,
    HEAP,
    KIND_SHIFT,
    SITE_BITS,
    SITE_SHIFT,
    STACK,
    UNKNOWN,
    Translation,
)

if TYPE_CHECKING:
    from tracekit.program.program import Program

Json = dict[str, Any]

KINDS = {UNKNOWN: "unknown", HEAP: "heap", STACK: "stack", GLOBAL: "global"}


class GroupTable:
    """The groups of a finished replay; group 0 is unknown memory.

    `context` shows a number of the service ``context``; None where groups are not told apart by contexts.
    """

    def __init__(self, program: Program, translation: Translation, context: Callable[[int], Json] | None) -> None:
        self.program = program
        self.rows = used_rows(translation.groups).copy()
        self.rows[0] = 0
        self._context = context
        self._shown: dict[int, Json] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def kind(self, group: int) -> int:
        """UNKNOWN, HEAP, STACK or GLOBAL."""
        return int(self.rows["key"][group]) >> KIND_SHIFT

    def site(self, group: int) -> int:
        """Its instruction, NONE if none made it, or its global; of unknown memory NONE."""
        site = (int(self.rows["key"][group]) >> SITE_SHIFT) & SITE_BITS
        is_known = self.kind(group) == GLOBAL or (group != 0 and site < len(self.program.ops))
        return site if is_known else NONE

    def objects(self, group: int) -> int:
        """How many objects there were: those of memory that the run used."""
        return int(self.rows["objects"][group])

    def describe(self, group: int) -> Json:
        """``{"kind", "name", "site", "context"}``; what a group of this kind has not is left out."""
        if group not in self._shown:
            self._shown[group] = self._describe(group)
        return self._shown[group]

    def _describe(self, group: int) -> Json:
        program, kind, site = self.program, self.kind(group), self.site(group)
        shown: Json = {"kind": KINDS[kind]}
        if kind == GLOBAL:
            row = program.globals[site]
            return {**shown, "name": program.text(int(row["source_name"]) or int(row["name"]))}
        if kind == UNKNOWN:
            return shown
        if kind == STACK and site != NONE:
            shown["name"] = program.text(int(program.ops["name"][site]))
        shown["site"] = None if site == NONE else program.instruction(site)
        if self._context is not None:
            shown["context"] = self._context(int(self.rows["key"][group]) & SITE_BITS)
        return shown

    def order(self) -> list[int]:
        """All groups by kind, then by site: an order that the program says, not the run."""
        keys = self.rows["key"] >> np.uint64(SITE_SHIFT)
        return [int(row) for row in np.argsort(keys, kind="stable")]
