"""What a loop carries between the instructions of a blocker, from the rows of a profile one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CarriedPair = tuple[list[int], list[int] | None, list[tuple[int, int]], int, int, int]

NONE = 0xFFFFFFFF


def carried_pair(profile: Any, placed: Sequence[tuple[int, int, int]]) -> CarriedPair:
    """Kinds, objects, contexts, executions, least and greatest distance; `placed`: source, destination, node."""
    kinds, objects, contexts, distances = set(), set(), set(), []
    executions, are_many = 0, False
    for source, destination, node in placed:
        for level in profile.levels.carried:
            dependence = profile.dependences[level["dependence"]]
            if level["node"] != node:
                continue
            if (dependence["source"], dependence["destination"]) != (source, destination):
                continue
            kinds.add(int(dependence["kind"]))
            objects |= set(dependence["object_list"].tolist()) - {NONE}
            are_many |= bool(dependence["objects"] > len(dependence["object_list"]))
            contexts.add((int(dependence["source_node"]), int(dependence["destination_node"])))
            executions += int(level["carried"])
            distances += [int(level["min_distance"]), int(level["max_distance"])]
    listed = None if are_many else sorted(objects)
    return sorted(kinds), listed, sorted(contexts), executions, min(distances), max(distances)
