"""Objects that belong together: those to pool, and those to make beside one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.layout.advice import parts_of
from tracekit.layout.elements import Elements
from tracekit.layout.kernels.visits import BY_ACCESS
from tracekit.layout.lines import LINE, lines_touched
from tracekit.layout.structures import Structures
from tracekit.modules.merge_rows import as_key

Json = dict[str, Any]

OFTEN = 0.5
"""Share of the visits of a structure from which on what follows them is worth saying."""


def pools(rows: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Heap objects that are visited in the order of their making and do not lie in it: a pool would put them so."""
    found = []
    for row in rows:
        scattered = row["in_order"] - row["near"]
        if row["array"] or row["group"]["kind"] != "heap" or scattered < OFTEN * max(row["visits"], 1):
            continue
        known = parts_of(row)
        masks = np.array([mask for mask, _ in row["patterns"]], np.uint64)
        counts = np.array([visits for _, visits in row["patterns"]], np.float64)
        used = np.array([masks & np.uint64(cells) != 0 for _, cells in known], np.bool_).T
        places = [(part.offset, part.size) for part, _ in known]
        size = max(row["size"], 1)
        now, then = (
            float(counts @ lines_touched(places, size, is_array, share, used)) / max(float(counts.sum()), 1.0)
            for is_array, share in ((False, 0.0), (True, 1.0))
        )
        found.append(
            {
                "group": row["group"],
                "type": row["type"],
                "size": row["size"],
                "visits": row["visits"],
                "in_order": round(100 * row["in_order"] / row["visits"], 1),
                "near": round(100 * row["near"] / row["visits"], 1),
                "bytes_saved": round((now - then) * scattered * LINE),
            }
        )
    return sorted(found, key=lambda row: -row["bytes_saved"])


def _key(rows: Any, row: int) -> tuple[int, int]:
    """Group and structure of a row of the table of structures."""
    key = int(rows["key"][row])
    return key >> 32, key & 0xFFFF_FFFF


def followers(follow: Any, structures: Any, groups: Any, known: Structures, elements: Elements) -> list[Json]:
    """For each structure what was visited after it, and how often; `of`: all its visits. They add over runs."""
    rows = used_rows(structures)

    def name(row: int) -> Json:
        group, kind = _key(rows, row)
        structure = known.all[kind if elements.rows["mode"][group] == BY_ACCESS else int(elements.structures[group])]
        return {"group": groups.describe(group), "type": structure.name if structure else None}

    found = []
    for key, visits, paired in used_rows(follow)[1:].tolist():
        first, then = key >> 32, key & 0xFFFF_FFFF
        (group, kind), (next_group, next_kind) = _key(rows, first), _key(rows, then)
        if group == next_group and known.may_overlap(kind, next_kind):
            continue  # the same objects
        of = int(rows["visits"][first])
        found.append({"first": name(first), "then": name(then), "visits": visits, "paired": paired, "of": of})
    return sorted(found, key=lambda row: (-row["visits"], str(row)))


def clusters(following: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Structures whose visits follow one another, at least every second time: make the objects beside one another."""
    found = [
        {
            "first": row["first"],
            "then": row["then"],
            "visits": row["visits"],
            "percent": round(100 * row["visits"] / row["of"], 1),
            "same_number": round(100 * row["paired"] / row["visits"], 1),
        }
        for row in following
        if row["visits"] >= OFTEN * row["of"] and row["visits"] > 1
    ]
    return sorted(found, key=lambda row: (-row["visits"], str(row)))


def joined_followers(runs: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Those of several runs; `runs`: the merge state of each, with ``structures`` and ``following``.

    A structure's visits count in the runs, too, in which nothing of the pair came.
    """
    sums: dict[str, Json] = {}
    visits: Counter[str] = Counter()
    for run in runs:
        for row in run["structures"]:
            visits[_as_name(row)] += row["visits"]
        for row in run["following"]:
            old = sums.setdefault(as_key(row, ("first", "then")), {**row, "visits": 0, "paired": 0})
            for column in ("visits", "paired"):
                old[column] += row[column]
    for row in sums.values():
        row["of"] = max(visits[_as_name(row["first"])], row["visits"])
    return sorted(sums.values(), key=lambda row: (-row["visits"], as_key(row, ("first", "then"))))


def _as_name(row: Mapping[str, Any]) -> str:
    return as_key(row, ("group", "type"))
