"""Brings a DependenceProfile and the naive reference to one form that can be compared: dicts keyed by paths."""

from __future__ import annotations

from typing import Any

from tests.naive.dependence import NaiveDependence, Path
from tests.naive.folding import NaiveFolding
from tracekit.contexts.nodes import CALLS, ContextKind
from tracekit.dependence.profile import LISTED_OBJECTS, DependenceProfile
from tracekit.formats.events import NONE

Key = tuple[int, int, Path, int, Path]


def paths_of(profile: DependenceProfile, folding: bool = False) -> list[Path]:
    """The path of every node, as the naive reference writes it; of tests/naive/folding.py with `folding`."""
    paths: list[Path] = []
    for row in profile.nodes:
        around = paths[row["parent"]] if row["parent"] != NONE else ()
        kind = ContextKind(row["kind"])
        if kind is ContextKind.ROOT:
            own: Path = (("root", int(row["function"])),) if row["function"] != NONE else ()
        elif kind in CALLS:
            static = kind is ContextKind.RECURSION and not folding
            own = (("recursion" if static else "call", _row(row["call"]), int(row["function"])),)
        else:
            own = (("left out" if folding and kind is ContextKind.RECURSION_LOOP else "loop", int(row["loop"])),)
        paths.append(around + own)
    return paths


def _row(value: Any) -> int:
    return int(value)


def kinds_of(profile: DependenceProfile) -> dict[Path, ContextKind]:
    """What became of each node (folding)."""
    return {path: ContextKind(row["kind"]) for path, row in zip(paths_of(profile, True), profile.nodes)}


def keys_of(profile: DependenceProfile, paths: list[Path]) -> list[Key]:
    """Of each dependence in order its kind, and its source and destination with the paths of their nodes."""
    return [
        (
            int(row["kind"]),
            int(row["source"]),
            paths[row["source_node"]],
            int(row["destination"]),
            paths[row["destination_node"]],
        )
        for row in profile.dependences
    ]


def from_profile(profile: DependenceProfile, folding: bool = False) -> dict[str, Any]:
    """All that a profile says, without row numbers."""
    paths = paths_of(profile, folding)
    objects = [(int(row["kind"]), int(row["site"])) for row in profile.objects]
    keys = keys_of(profile, paths)
    dependences: dict[Any, Any] = {}
    for key, row in zip(keys, profile.dependences):
        listed = [objects[place] for place in row["object_list"] if place != NONE]
        assert row["first_object"] == row["object_list"][0]
        dependences[key] = (int(row["count"]), int(row["objects"]), listed, {})
    for row in profile.levels.rows:
        distances = (int(row["min_distance"]), int(row["max_distance"])) if row["inter"] else None
        levels = dependences[keys[row["dependence"]]][3]
        levels[paths[row["node"]]] = (bool(row["intra"]), bool(row["inter"]), int(row["carried"]), distances)
    return {
        "dependences": dependences,
        "exposed": {(int(row["instruction"]), paths[row["node"]], paths[row["level"]]) for row in profile.exposed},
        "accesses": {(int(row["instruction"]), paths[row["node"]]): int(row["count"]) for row in profile.accesses},
        "nodes": {
            path: (
                int(row["invocations"]),
                int(row["iterations"]),
                int(row["most_iterations"]),
                int(row["least_iterations"]),
                int(row["accesses"]),
                int(row["external"]),
                int(row["camp_id"]),
            )
            for path, row in zip(paths, profile.nodes)
        },
    }


def from_naive(naive: NaiveDependence) -> dict[str, Any]:
    """The same of the naive reference, whose events have all been fed."""
    naive.finish()
    dependences = {
        key: (
            found.count,
            len(found.objects),
            found.objects[:LISTED_OBJECTS],
            {
                node: (*flags, (min(distances), max(distances)) if distances else None)
                for node, (flags, distances) in found.levels.items()
            },
        )
        for key, found in naive.dependences.items()
    }
    nodes = {
        path: (
            node.invocations,
            sum(node.iterations),
            max(node.iterations, default=0),
            min(node.iterations, default=0),
            node.accesses,
            node.external,
            naive.camp_id(path),
        )
        for path, node in naive.nodes.items()
    }
    if isinstance(naive, NaiveFolding):
        for path in nodes:
            if naive.kind(path) is ContextKind.CALL:
                nodes[path] = (0, 0, 0, 0, 0, NONE, nodes[path][-1])
    for path in list(nodes) + [path for _, path in naive.accesses]:
        for length in range(0 if () in nodes or not naive.context else 1, len(path)):
            nodes.setdefault(path[:length], (0, 0, 0, 0, 0, NONE, naive.camp_id(path[:length])))
    if not naive.context or any(path == () for _, path in naive.accesses):
        nodes.setdefault((), (0, 0, 0, 0, 0, NONE, -1))
    return {"dependences": dependences, "exposed": naive.exposed, "accesses": dict(naive.accesses), "nodes": nodes}
