"""Makes the table of live objects (kernels/liveobjects.py), and shows its sites in profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.replay import shadows
from tracekit.replay.arena import arena, reserve
from tracekit.replay.dependence_profile import ObjectKind
from tracekit.replay.kernels.liveobjects import (
    CONTROL,
    FUNCTION,
    KIND_SHIFT,
    OBJECT,
    SITE_BITS,
    SITE_SHIFT,
    WIDE_BITS,
    Live,
    Unloading,
)
from tracekit.replay.keyed import keyed, used_rows
from tracekit.replay.scopes import MOST_STREAMS

if TYPE_CHECKING:
    from tracekit.replay.contexttable import ContextTable
    from tracekit.replay.program import Program

Json = dict[str, Any]

FRESH = ("malloc", "calloc", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc", "strdup", "mmap")
"""Functions that return an object of its own (so does any operator new)."""


def live_objects(program: Program, fields: list[tuple[str, str]] | None = None) -> Live:
    """No object; a site is a row with a key, these fields and one of its own."""
    instructions = len(program.ops) + 1  # the last is for no instruction
    fresh = np.zeros(instructions, np.uint8)
    for op in np.flatnonzero(program.ops["kind"] == OpKind.CALL).tolist():
        name = program.text(int(program.calls["callee"][program.ops["base"][op]]))
        fresh[op] = name in FRESH or name.startswith("_Zn")
    function_of = np.append(program.op_function, np.uint32(len(program.functions)))
    return Live(
        sites=keyed([*(fields or []), ("ended", "<i8")]), objects=arena(OBJECT, 1 << 31), words=shadows.empty("u4"),
        wide=shadows.empty("u4", direct=1 << (48 - WIDE_BITS + 3 - 12)), known=np.zeros(instructions, np.uint64),
        fresh=fresh, function_of=function_of.astype(np.uint32),
        functions=np.zeros(len(program.functions) + 1, FUNCTION), newest=reserve("u4", MOST_STREAMS),
        highest=reserve("i8", MOST_STREAMS), control=np.zeros(CONTROL, np.int64),
    )




def unloading(program: Program) -> Unloading:
    """The globals of a program."""
    return Unloading(program.global_image, program.global_address, program.globals["size"].astype(np.uint64))


class SiteNames:
    """The sites of a table, in an order and in words that depend on the trace alone."""

    def __init__(self, program: Program, contexts: ContextTable, live: Live) -> None:
        self.program = program
        self.contexts = contexts
        keys = used_rows(live.sites)["key"]
        self.kind = (keys >> np.uint64(KIND_SHIFT)).astype(np.int64)
        self.site = (keys >> np.uint64(SITE_SHIFT)).astype(np.int64) & SITE_BITS
        self.node = contexts.rows((keys & np.uint64(SITE_BITS)).astype(np.int64))
        order = np.lexsort([self.node, self.site, self.kind])
        self.order: list[int] = order[self.kind[order] != 0].tolist()
        """The sites as they shall be listed: by kind, instruction or global, context."""
        self._shown: dict[int, Json] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def show(self, site: int) -> Json:
        """``{"kind", "name", "site", "context"}``; what an object of this kind has not is left out."""
        if site not in self._shown:
            self._shown[site] = self._show(int(self.kind[site]), int(self.site[site]), int(self.node[site]))
        return self._shown[site]

    def _show(self, kind: int, site: int, node: int) -> Json:
        program = self.program
        if kind == ObjectKind.GLOBAL:
            row = program.globals[site]
            return {"kind": "global", "name": program.text(int(row["source_name"]) or int(row["name"]))}
        known = site < len(program.ops)
        named = {"name": program.text(int(program.ops["name"][site]))} if kind == ObjectKind.STACK and known else {}
        return {"kind": ObjectKind(kind).name.lower(), **named, "site": program.instruction(site) if known else None,
                "context": self.contexts.describe(node)}


assert NONE >= SITE_BITS
