"""Makes the table of live objects (kernels/live.py), and of it what profiles say; names their sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import shadow
from tracekit.containers.arena import arena, reserve
from tracekit.containers.grouping import Indices
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.granules import WIDE_PAGES
from tracekit.contexts.names import ContextNames, Json
from tracekit.contexts.scopes import MOST_STREAMS
from tracekit.formats.events import NONE
from tracekit.formats.image import OpKind
from tracekit.objects.frames import calls_around
from tracekit.objects.kernels.live import (
    CALLERS,
    CONTROL,
    FRAME,
    IN_RECURSION,
    KIND_SHIFT,
    OBJECT,
    RECURSION_CALL,
    SITE_BITS,
    SITE_SHIFT,
    Live,
    Unloading,
)
from tracekit.objects.kinds import ObjectKind
from tracekit.objects.profile import SITE, TREE, ObjectProfile, Rows, canonical
from tracekit.program.allocators import standard_name
from tracekit.program.sources import is_system

if TYPE_CHECKING:
    from tracekit.contexts.table import ContextTable
    from tracekit.program.program import Program

FRESH = ("malloc", "calloc", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc", "strdup", "mmap")
"""Functions that return an object of its own (so does any operator new)."""

PLACE = ("file", "line", "column", "function")


def live_objects(program: Program, fields: list[tuple[str, str]] | None = None) -> Live:
    """No object; a site is a row with a key and these fields."""
    instructions = len(program.ops) + 1  # the last is for no instruction
    fresh = np.zeros(instructions, np.uint8)
    for op in np.flatnonzero(program.ops["kind"] == OpKind.CALL).tolist():
        name = standard_name(program, int(program.ops["base"][op]))
        fresh[op] = name in FRESH or name.startswith("_Zn")
    function_of = np.append(program.op_function, np.uint32(len(program.functions)))
    return Live(
        sites=hash_table(fields or []),
        recursion_calls=hash_table(RECURSION_CALL, 1 << 24),
        objects=arena(OBJECT, 1 << 31),
        words=shadow.empty("u4"),
        wide=shadow.empty("u4", direct=WIDE_PAGES),
        known=np.zeros(instructions, np.uint64),
        fresh=fresh,
        function_of=function_of.astype(np.uint32),
        frames=arena(FRAME, 1 << 31, spare=1),
        newest=reserve("u4", MOST_STREAMS),
        highest=reserve("i8", MOST_STREAMS),
        control=np.zeros(CONTROL, np.int64),
    )


def table_alone(live: Live) -> Live:
    """The objects and sites, for whoever looks up no byte any more."""
    nothing = shadow.empty("u4", pages=1, direct=1)
    return live._replace(words=nothing, wide=nothing)


def unloading(program: Program) -> Unloading:
    """The globals of a program."""
    return Unloading(program.global_image, program.global_address, program.globals["size"].astype(np.uint64))


def found_objects(program: Program, contexts: ContextTable, live: Live, tables: Mapping[str, Rows]) -> ObjectProfile:
    """The profile of a finished replay; in `tables` a site is a row of ``live.sites`` (0: none), contexts are named."""
    known = every_site(program, contexts, live)
    renamed = {name: rows.copy() for name, rows in tables.items()}
    for rows in renamed.values():
        if "site" in (rows.dtype.names or ()):
            rows["site"][rows["site"] == 0] = NONE
    return canonical(ObjectProfile(known.nodes, known.sites, renamed))


def every_site(program: Program, contexts: ContextTable, live: Live) -> ObjectProfile:
    """A profile without tables whose sites are the rows of ``live.sites``; row 0 is none of them."""
    keys = used_rows(live.sites)["key"]
    sites = np.zeros(len(keys), SITE)
    sites["kind"] = keys >> np.uint64(KIND_SHIFT)
    sites["site"] = (keys >> np.uint64(SITE_SHIFT)) & np.uint64(SITE_BITS)
    made = sites["kind"] != ObjectKind.GLOBAL
    sites["site"][made] = known_instructions(program, sites["site"][made])
    around, sites["calls"] = _context_and_calls(live, (keys & np.uint64(SITE_BITS)).astype(np.int64))
    sites["node"] = np.where(made, contexts.rows(around), NONE)
    nodes = np.zeros(len(contexts.nodes), TREE)
    for field in TREE.names or ():
        nodes[field] = contexts.nodes[field]
    return ObjectProfile(nodes, sites, {})


def _context_and_calls(live: Live, contexts: Indices) -> tuple[Indices, Rows]:
    """Contexts as keys of sites have them -> those of the replay, and SITE's ``calls`` of each."""
    recursion_calls, contexts = used_rows(live.recursion_calls), contexts.copy()
    calls = np.full((len(contexts), CALLERS), NONE, np.uint32)
    for _ in range(CALLERS):
        inside = np.flatnonzero(contexts & IN_RECURSION)
        innermost = recursion_calls[contexts[inside] ^ IN_RECURSION]
        calls[inside, 1:] = calls[inside, :-1]
        calls[inside, 0] = innermost["call"]
        contexts[inside] = innermost["around"]
    return contexts, calls


def known_instructions(program: Program, rows: Any) -> Any:
    """Rows of instructions as profiles have them: NONE in place of the one behind the last, which is none."""
    return np.where(rows >= len(program.ops), NONE, rows)


class SiteNames:
    """The sites of a profile in words."""

    def __init__(self, program: Program, profile: ObjectProfile, contexts: ContextNames) -> None:
        self.program = program
        self.profile = profile
        self.contexts = contexts
        self._shown: dict[int, Json] = {}

    def show(self, site: int) -> Json:
        """``{"kind", "name", "site", "context", "callers"}``; what an object of this kind has not is left out."""
        if site not in self._shown:
            row = self.profile.sites[site]
            shown = self._show(int(row["kind"]), int(row["site"]), int(row["node"]))
            users = self._called_at(row) if row["kind"] == ObjectKind.HEAP and row["site"] != NONE else []
            if users:
                shown["site"] = {**shown["site"], "called_at": users}
            callers = [self.contexts.call_name(call) for call in row["calls"].tolist() if call != NONE]
            self._shown[site] = {**shown, "callers": callers} if callers else shown
        return self._shown[site]

    def _called_at(self, row: Any) -> list[Json]:
        """Of what a library's code allocates: the program's place that called it, or nothing if that is not known."""
        for depth, op in enumerate(calls_around(self.profile.nodes, row)):
            shown = self.contexts.instruction(op)
            chain = ({part: place[part] for part in PLACE} for place in (shown, *shown["inlined_at"]))
            user = next((place for place in chain if place["file"] and not is_system(place["file"])), None)
            if user is not None:
                return [user] if depth else []
        return []

    def _show(self, kind: int, site: int, node: int) -> Json:
        program = self.program
        if kind == ObjectKind.GLOBAL:
            row = program.globals[site]
            return {"kind": "global", "name": program.text(int(row["source_name"]) or int(row["name"]))}
        known = site != NONE
        named = {"name": program.text(int(program.ops["name"][site]))} if kind == ObjectKind.STACK and known else {}
        return {
            "kind": ObjectKind(kind).name.lower(),
            **named,
            "site": program.instruction(site) if known else None,
            "context": self.contexts.context(node),
        }


assert NONE >= SITE_BITS
