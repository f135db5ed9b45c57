"""What the profile of memory_errors says: its rows from a finished replay, from several profiles, without some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import shadow
from tracekit.containers.hash_table import used_rows
from tracekit.contexts.names import ContextNames
from tracekit.formats.events import NONE
from tracekit.memory_errors import libraries
from tracekit.memory_errors.kernels import checks
from tracekit.memory_errors.kernels.contents import HIDDEN
from tracekit.memory_errors.reachability import LOST, REACHES, reached
from tracekit.memory_errors.rules import stores_have_values
from tracekit.modules.merge_rows import add, as_key, join_rows
from tracekit.objects.kernels.live import KIND_SHIFT, SITE_BITS, SITE_SHIFT
from tracekit.objects.kinds import ObjectKind
from tracekit.objects.live import SiteNames, every_site, known_instructions
from tracekit.program.allocators import standard_name

if TYPE_CHECKING:
    from tracekit.contexts.table import ContextTable
    from tracekit.program.program import Program

Json = dict[str, Any]

KINDS = (
    "unwritten_read",
    "read_after_free",
    "write_after_free",
    "read_out_of_bounds",
    "write_out_of_bounds",
    "double_free",
    "invalid_free",
    "mismatched_free",
)
"""Kinds of errors, by the numbers of kernels/checks.py."""

REASONS = ("unknown_effects", "unknown_order", "partly_written", "unseen_allocation")
"""Why something is not decided, by the numbers of kernels/checks.py."""


def found_errors(program: Program, contexts: ContextTable, state: checks.State) -> Json:
    """The result of a finished replay."""
    profile = every_site(program, contexts, state.live)
    names = ContextNames(program, profile.nodes)
    sites = SiteNames(program, profile, names)
    errors = state.errors
    places, objects = used_rows(errors.places)["key"], used_rows(errors.objects)["key"]
    deaths = used_rows(state.deaths)["key"]

    def place(row: int) -> Json:
        key = int(places[row])
        instruction = int(known_instructions(program, key >> 32))
        node = int(contexts.rows(np.array([key & NONE]))[0])
        return {"instruction": names.instruction(instruction), "context": names.context(node)}

    rows = []
    for found in used_rows(errors.found)[1:]:
        key = int(found["key"])
        of = int(objects[key & (1 << 29) - 1])
        site, death = of >> 32, of & NONE
        rows.append(
            {
                "kind": KINDS[key >> 58],
                **place(key >> 29 & (1 << 29) - 1),
                "object": sites.show(site),
                "freed": place(int(deaths[death]) & NONE) if death else None,
                "count": int(found["count"]),
                "size": int(found["size"]),
                "offset": int(found["offset"]) if found["bytes"] >= 0 else None,
                "object_size": int(found["bytes"]) if found["bytes"] >= 0 else None,
            }
        )
    leaks, released = _leaks(program, state, sites)
    own_malloc = any(program.text(name) == "malloc" for name in np.unique(program.functions["name"]).tolist())
    summary = {**_summary(rows, state), "released": released, "own_malloc": own_malloc}
    return {"summary": summary, "errors": _joined([rows]), "leaks": leaks}


def _summary(rows: Sequence[Json], state: checks.State) -> Json:
    return {
        "errors": {kind: sum(row["count"] for row in rows if row["kind"] == kind) for kind in KINDS},
        "undecided": dict(zip(REASONS, state.errors.undecided.tolist())),
        "ended": bool(state.control[checks.ENDED]),
        "open_calls": int(state.control[checks.OPEN_AT_END]),
        "suppressed": 0,
    }


def _leaks(program: Program, state: checks.State, sites: SiteNames) -> tuple[list[Json], Json]:
    """The heap blocks that live at the end, by site and by how they are reached; the system's mappings are none.

    Beside them how many of libraries' own there were, which are not listed.
    """
    blocks, own = _blocks(program, state)
    reach, doubts = _reach(program, state, blocks, own)
    released = _released(program, state, blocks)
    gone = blocks[released]
    blocks, own, reach, doubts = blocks[~released], own[~released], reach[~released], doubts[~released]
    rows = []
    for site, how in sorted({*zip(blocks["site"].tolist(), reach.tolist())}):
        chosen = (blocks["site"] == site) & (reach == how)
        here = blocks[chosen]
        rows.append(
            {
                "object": sites.show(site),
                "blocks": len(here),
                "bytes": int((here["end"] - here["start"]).sum()),
                "allocated_by": "program" if own[chosen][0] else "library",
                "reach": REACHES[how] if how < len(REACHES) else None,
                "unsure": int(doubts[chosen].sum()),
            }
        )
    return _joined_leaks([rows]), {"blocks": len(gone), "bytes": int((gone["end"] - gone["start"]).sum())}


def _released(program: Program, state: checks.State, blocks: Any) -> NDArray[np.bool_]:
    """Which blocks (b,) libraries made for themselves: C's, OpenMP's, and one for stdin and one for stdout C++'s."""
    keys = used_rows(state.live.sites)["key"]
    callees = {
        site: _callee(program, (int(keys[site]) >> SITE_SHIFT) & SITE_BITS)
        for site in np.unique(blocks["site"]).tolist()
    }
    released = np.isin(blocks["site"], [site for site, name in callees.items() if libraries.keeps(name)])
    buffer = libraries.stdio_buffer((blocks["end"] - blocks["start"]).astype(np.int64))
    for prefixes in (libraries.STREAM_OUTPUT, libraries.STREAM_INPUT):
        of_stream = np.isin(blocks["site"], [site for site, name in callees.items() if name.startswith(prefixes)])
        (chosen,) = np.nonzero(buffer & of_stream)
        if chosen.size:
            released[chosen[np.argmin(blocks["born"][chosen])]] = True
    return released


def _blocks(program: Program, state: checks.State) -> tuple[Any, Any]:
    """The live heap blocks in the order of their addresses, and whether the program itself allocated each."""
    objects = state.live.objects.rows[: state.live.objects.control[0]]
    blocks = objects[objects["alive"] == ObjectKind.HEAP]
    keys = used_rows(state.live.sites)["key"]
    wanted, own = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)
    for site in np.unique(blocks["site"]).tolist():
        assert int(keys[site]) >> KIND_SHIFT == ObjectKind.HEAP
        op = (int(keys[site]) >> SITE_SHIFT) & SITE_BITS
        rule = int(state.rules[min(op, len(program.ops))])
        wanted[site] = not rule & checks.MAPS
        own[site] = bool(rule & checks.EMPTY) or _callee(program, op) in OWN
    blocks = blocks[wanted[blocks["site"]]]
    blocks = blocks[np.argsort(blocks["start"])]
    return blocks, own[blocks["site"]]


OWN = (*libraries.ZEROED, *libraries.DUPLICATES)
"""Return blocks that are the program's, with contents."""


def _reach(program: Program, state: checks.State, blocks: Any, own: Any) -> tuple[Any, Any]:
    """How each block is reached (a number of REACHES, or none), and whether a pointer to it may be out of sight."""
    if not stores_have_values(program):
        return np.full(len(blocks), len(REACHES), np.uint8), np.zeros(len(blocks), np.bool_)
    numbers, values = shadow.words(state.contents.words)
    reach = reached(blocks["start"], blocks["end"], ~own, numbers << 3, values)
    lost = reach < len(LOST)
    is_hidden = bool(np.any(values == HIDDEN)) or bool(state.control[checks.OPEN_AT_END])
    return reach, lost & ((blocks["born"] <= state.control[checks.UNKNOWN_AT]) | is_hidden)


def _callee(program: Program, op: int) -> str:
    """The name of what an instruction calls; empty if it calls nothing, or through a pointer."""
    if op >= len(program.ops):
        return ""
    call = int(program.ops["base"][op])
    return standard_name(program, call) if call < len(program.calls) else ""


def _joined_leaks(tables: Sequence[Sequence[Json]]) -> list[Json]:
    """The rows of all tables; older profiles do not say how blocks are reached."""
    rows = [[{**row, "reach": row.get("reach"), "unsure": row.get("unsure", 0)} for row in table] for table in tables]
    return join_rows(rows, LEAK_KEY, {"blocks": add, "bytes": add, "unsure": add}, order=_leak_order)


LEAK_KEY = ("object", "allocated_by", "reach")
"""What tells rows of leaks apart."""


def _leak_order(row: Mapping[str, Any]) -> Any:
    """What is lost first."""
    return REACHES.index(row["reach"]) if row["reach"] else len(REACHES), as_key(row, LEAK_KEY)


def _order(row: Mapping[str, Any]) -> Any:
    """By kind, then by place."""
    return KINDS.index(row["kind"]), as_key(row, KEY)


KEY = ("kind", "instruction", "context", "object", "freed")
"""What tells errors apart."""


def merged(results: Sequence[Json]) -> Json:
    """The result of several runs."""
    summaries = [result["summary"] for result in results]
    return {
        "summary": {
            "errors": {kind: sum(each["errors"][kind] for each in summaries) for kind in KINDS},
            "undecided": {reason: sum(each["undecided"][reason] for each in summaries) for reason in REASONS},
            "ended": all(each["ended"] for each in summaries),
            "open_calls": max((each.get("open_calls", 0) for each in summaries), default=0),
            "suppressed": sum(each["suppressed"] for each in summaries),
            "released": {
                name: sum(each.get("released", {}).get(name, 0) for each in summaries) for name in ("blocks", "bytes")
            },
            "own_malloc": any(each.get("own_malloc", False) for each in summaries),
        },
        "errors": _joined([result["errors"] for result in results]),
        "leaks": _joined_leaks([result["leaks"] for result in results]),
    }


def _joined(tables: Sequence[Sequence[Json]]) -> list[Json]:
    """The rows of all tables, in their order; those of one error are one."""
    rows = join_rows(tables, KEY, {"count": add}, order=_order)
    occurrences: dict[str, tuple[Any, ...]] = {}
    for row in (row for table in tables for row in table):
        numbers = tuple((row[name] is None, row[name]) for name in OCCURRENCE)
        key = as_key(row, KEY)
        occurrences[key] = min(numbers, occurrences.get(key, numbers))
    for row in rows:
        row.update({name: value for name, (_, value) in zip(OCCURRENCE, occurrences[as_key(row, KEY)])})
    return rows


OCCURRENCE = ("size", "offset", "object_size")
"""The columns of one occurrence; of several runs', of the one with the least numbers."""


def without(result: Json, patterns: Sequence[str]) -> Json:
    """The same without what is suppressed."""
    if not patterns:
        return result
    kept = {
        "errors": [row for row in result["errors"] if not _is_suppressed((row, row["object"]), patterns)],
        "leaks": [row for row in result["leaks"] if not _is_suppressed((row["object"],), patterns)],
    }
    gone = sum(len(result[name]) - len(rows) for name, rows in kept.items())
    errors = {kind: sum(row["count"] for row in kept["errors"] if row["kind"] == kind) for kind in KINDS}
    return {**result, **kept, "summary": {**result["summary"], "errors": errors, "suppressed": gone}}


def _is_suppressed(places: Sequence[Mapping[str, Any]], patterns: Sequence[str]) -> bool:
    """Whether a function or file on the way to one of the places is named."""
    names: set[str] = set()
    for place in places:
        for shown in (place.get("instruction"), place.get("site")):
            if shown:
                names |= {part for each in (shown, *shown["inlined_at"]) for part in (each["function"], each["file"])}
                names |= {part.rpartition("/")[2] for part in names}
        context = place.get("context")
        if context:
            steps = [step.removeprefix("loop ").removeprefix("recursion ") for step in context["path"]]
            names |= {context["root"], *(step.partition(":")[0] for step in steps)}
    return libraries.suppressed(names, patterns)
