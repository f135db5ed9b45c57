"""Joins the rows that the module ``dependence`` found in several runs of one build."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tracekit.contexts.names import Json
from tracekit.dependence.rows import KIND_RANK, instruction_key, mixed
from tracekit.modules.merge_rows import add, greatest, join_rows, least

KEY = ("kind", "source", "destination", "source_context", "destination_context")


def join_dependences(tables: Iterable[Sequence[Json]]) -> list[Json]:
    """One row for each dependence: counts add, levels are or'ed, histograms of distances add."""
    joined = join_rows(tables, KEY, {"count": add, "levels": _join_levels}, _order)
    for row in joined:
        if "levels" in row:
            path = (row.get("source_context") or {}).get("path", [])
            row["levels"] = sorted(row["levels"], key=lambda level: _depth(level["loop"], path))
    return joined


def _join_levels(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    by_loop: dict[str, Json] = {}
    for level in (*first, *second):
        known = by_loop.setdefault(json.dumps(level["loop"]), level)
        if known is not level:
            by_loop[json.dumps(level["loop"])] = {
                "loop": level["loop"],
                "intra": known["intra"] or level["intra"],
                "inter": known["inter"] or level["inter"],
                "min_distance": least(known["min_distance"], level["min_distance"]),
                "max_distance": greatest(known["max_distance"], level["max_distance"]),
                "histogram": _join_histograms(known["histogram"], level["histogram"]),
            }
    return list(by_loop.values())


def _join_histograms(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first or second
    counted = Counter(dict(first))
    counted.update(dict(second))
    return [list(pair) for pair in sorted(counted.items())]


def _depth(loop: Json, path: Sequence[str]) -> tuple[Any, ...]:
    """Outermost first: by the place in the context, by the depth in the function, by name."""
    steps = [f"loop {loop.get('function')}:{loop.get('line')}"]
    if "recursion" in loop:
        steps = [f"recursion {loop['recursion']}", loop["recursion"]]
    place = min((path.index(step) for step in steps if step in path), default=len(path))
    return (place, loop.get("depth", 0), mixed(tuple(loop.values())))


def _order(row: Any) -> tuple[Any, ...]:
    ends = (instruction_key(row[end]) for end in ("source", "destination"))
    contexts = (json.dumps(row.get(end + "_context")) for end in ("source", "destination"))
    return (KIND_RANK[row["kind"]], *ends, *contexts)
