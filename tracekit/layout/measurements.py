"""Measurements of each structure in one run, as JSON values to which those of other runs are added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.layout.elements import ENDLESS, Elements, shift_of
from tracekit.layout.kernels.visits import BY_ACCESS, CELLS, Visits
from tracekit.layout.structures import Structures

Json = dict[str, Any]

WORD = 8
"""Bytes of a part of what has no type."""


def measured(state: Visits, groups: Any, elements: Elements, known: Structures) -> list[Json]:
    """One for each row of ``state.structures``, in an order that the program says."""
    patterns: dict[int, list[list[int]]] = {}
    masks = used_rows(state.masks)["key"].tolist()
    for row in used_rows(state.patterns)[1:].tolist():
        key, visits = row
        patterns.setdefault(key >> 32, []).append([masks[key & 0xFFFF_FFFF], visits])
    in_bulk = {int(row["key"]): np.cumsum(row["changes"])[:CELLS].tolist() for row in used_rows(state.in_bulk)[1:]}
    rank = {group: place for place, group in enumerate(groups.order())}
    rows = []
    seen: dict[int, list[int]] = {}
    for key in used_rows(state.structures)["key"][1:].tolist():
        seen.setdefault(key >> 32, []).append(key & 0xFFFF_FFFF)
    for number, row in enumerate(used_rows(state.structures)[1:], 1):
        group, kind = int(row["key"]) >> 32, int(row["key"]) & 0xFFFF_FFFF
        element = elements.rows[group]
        is_by_access = element["mode"] == BY_ACCESS
        structure = known.all[kind if is_by_access else int(elements.structures[group])]
        size = structure.size if structure else int(element["size"])
        shift = shift_of(size)
        fields = structure.fields if structure else ()
        order = (rank[group], "" if structure is None else structure.name, size)
        rows.append(
            (
                order,
                {
                    "group": groups.describe(group),
                    "type": structure.name if structure else None,
                    "size": size,
                    "shift": shift,
                    "array": not is_by_access and int(element["stride"]) != ENDLESS,
                    "each": int(element["stride"]) if size < int(element["stride"]) < ENDLESS else 0,
                    "fields": [[field.name, field.type_name, field.offset, field.size] for field in fields]
                    or unnamed(size, shift),
                    "also": sorted({_name(known, each) for each in seen[group] if known.may_overlap(kind, each)}),
                    "objects": groups.objects(group),
                    "visits": int(row["visits"]),
                    "in_order": int(row["in_order"]),
                    "near": int(row["near"]),
                    "loads": row["loads"].tolist(),
                    "stores": row["stores"].tolist(),
                    "in_bulk": in_bulk.get(int(row["key"]), [0] * CELLS),
                    "unplaced": in_bulk[group << 32][0] if is_by_access and group << 32 in in_bulk else 0,
                    "patterns": sorted(patterns.get(number, [])),
                },
            )
        )
    return [row for _, row in sorted(rows, key=lambda each: each[0])]


def _name(known: Structures, number: int) -> str:
    structure = known.all[number]
    return structure.name if structure else ""


def unnamed(size: int, shift: int) -> list[list[Any]]:
    """Parts of what has no type: words."""
    step = max(WORD, 1 << shift)
    return [[f"+{at}", "", 8 * at, 8 * min(step, size - at)] for at in range(0, size, step)]


def joined(runs: Iterable[Iterable[Json]]) -> list[Json]:
    """The measured structures of several runs of one build, each of them once."""
    found: dict[str, Json] = {}
    for run in runs:
        for row in run:
            key = json.dumps(
                [row[name] for name in ("group", "type", "size", "array", "fields")] + [row.get("each", 0)],
                sort_keys=True,
            )
            old = found.get(key)
            if old is None:
                found[key] = {**row, "patterns": [list(each) for each in row["patterns"]]}
                continue
            old["also"] = sorted({*old["also"], *row["also"]})
            for name in ("objects", "visits", "in_order", "near", "unplaced"):
                old[name] += row[name]
            for name in ("loads", "stores", "in_bulk"):
                old[name] = [old[name][cell] + row[name][cell] for cell in range(CELLS)]
            sums: dict[int, int] = dict(old["patterns"])
            for mask, visits in row["patterns"]:
                sums[mask] = sums.get(mask, 0) + visits
            old["patterns"] = [list(each) for each in sorted(sums.items())]
    return [found[key] for key in sorted(found, key=lambda key: _order(found[key]))]


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    site = row["group"].get("site") or {}
    place = tuple(site.get(name, 0 if name != "file" else "") for name in ("file", "line", "column"))
    return row["group"]["kind"], place, json.dumps(row["group"], sort_keys=True), row["type"] or "", row["size"]
