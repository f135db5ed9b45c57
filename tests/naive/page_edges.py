"""The edges that a page draws of each loop, found loop by loop and dependence by dependence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

PLACE = ("kind", "file", "line", "column", "function")


def edges_at(loops: Sequence[Json], dependences: Sequence[Json], most: int) -> list[tuple[list[Json], int, int]]:
    """Of each loop: the edges, those left out, and how many of these it carries."""
    found = []
    for loop in loops:
        edges = _edges(loop, dependences)
        edges.sort(key=lambda edge: (not edge["carried"], -edge["count"]))
        left = edges[most:]
        found.append((edges[:most], len(left), len([edge for edge in left if edge["carried"]])))
    return found


def _edges(loop: Json, dependences: Sequence[Json]) -> list[Json]:
    edges: list[Any] = []
    for row in dependences:
        levels = [level for level in row["levels"] if level["loop"] == loop["loop"]]
        if not all(_may_be_inside(loop, row[end]) for end in ("source_context", "destination_context")):
            continue
        for level in levels:
            edge = next((each for each in edges if _is_between(each, row)), None)
            if edge is None:
                edge = {name: row[name] for name in ("kind", "source", "destination")}
                edge |= {"count": 0, "carried": False, "min_distance": None, "max_distance": None}
                edges.append(edge)
            edge["count"] += row["count"]
            if level["inter"]:
                least, greatest = [level["min_distance"]], [level["max_distance"]]
                if edge["carried"]:
                    least.append(edge["min_distance"])
                    greatest.append(edge["max_distance"])
                edge |= {"carried": True, "min_distance": min(least), "max_distance": max(greatest)}
    return edges


def _is_between(edge: Json, row: Json) -> bool:
    return edge["kind"] == row["kind"] and all(
        edge[end][field] == row[end][field] for end in ("source", "destination") for field in PLACE
    )


def _may_be_inside(loop: Json, access: Json | None) -> bool:
    """Whether the path to an access begins with that to a loop, which itself may be missing in a recursion."""
    around = loop["context"]
    if around is None or access is None:
        return True
    if around["root"] != access["root"]:
        return False
    if loop.get("recursive"):
        return True
    *outer, last = around["path"]
    path = access["path"]
    return path[: len(outer)] == outer and path[len(outer) : len(outer) + 1] in ([], [last])
