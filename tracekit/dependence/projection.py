"""What a context-oblivious profiler would have seen: camp's profile with the contexts taken away.

camp's summary compares itself with lamp (CAMP paper, Table II and Fig. 11). Dependences of the same two
instructions fall together whatever their contexts, and levels whatever node their loop has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.nodes import LOOPS, NODE, ContextKind
from tracekit.dependence.level_rows import levels_of
from tracekit.dependence.profile import ACCESS, DEPENDENCE, EXPOSED, LISTED_OBJECTS, DependenceProfile
from tracekit.dependence.united_levels import Renamed, united_levels
from tracekit.formats.events import NONE

Rows = npt.NDArray[Any]


def without_contexts(profile: DependenceProfile) -> DependenceProfile:
    """The profile by instruction and loop: node 0 is the one context, the others are loops below it."""
    nodes, node_of = _loops(profile.nodes)
    dependences, row_of = _dependences(profile.dependences)
    return DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=levels_of(united_levels([Renamed(profile.levels, row_of, node_of)])[0], len(dependences)),
        exposed=_exposed(profile.exposed, node_of),
        accesses=_accesses(profile.accesses),
        objects=profile.objects,
        shadow_bytes=profile.shadow_bytes,
    )


def _loops(nodes: Rows) -> tuple[Rows, Indices]:
    """One node for each loop, and for each old node the new one (-1: none)."""
    chosen = np.isin(nodes["kind"], LOOPS)
    loops, number = np.unique(nodes["loop"][chosen], return_inverse=True)
    result = np.zeros(loops.size + 1, NODE)
    result["parent"] = 0
    result["kind"] = ContextKind.LOOP
    result["call"] = result["external"] = NONE
    result["camp_id"] = -1
    result["loop"][1:] = loops
    root = result[:1]
    root["parent"] = root["function"] = root["loop"] = NONE
    root["kind"] = ContextKind.ROOT
    at = number + 1
    result["function"][at] = nodes["function"][chosen]
    for field in ("invocations", "iterations", "accesses"):
        np.add.at(result[field], at, nodes[field][chosen])
    np.maximum.at(result["most_iterations"], at, nodes["most_iterations"][chosen])
    np.minimum.at(result["external"], at, nodes["external"][chosen])
    result["least_iterations"][1:] = np.iinfo(np.uint64).max
    np.minimum.at(result["least_iterations"], at, nodes["least_iterations"][chosen])
    node_of = np.full(nodes.size, -1, np.int64)
    node_of[chosen] = at
    return result, node_of


def _dependences(dependences: Rows) -> tuple[Rows, Indices]:
    """One row for each (kind, source, destination), and for each old row the new one."""
    keys, row_of = grouped(dependences["kind"], dependences["source"], dependences["destination"])
    result = np.zeros(keys.shape[1], DEPENDENCE)
    result["kind"], result["source"], result["destination"] = keys
    np.add.at(result["count"], row_of, dependences["count"])
    _unite_objects(dependences, row_of, result)
    return result, row_of


def _unite_objects(dependences: Rows, row_of: Indices, result: Rows) -> None:
    """The objects of each group: exact while no member and not the union has more than a row can list."""
    lists = dependences["object_list"]
    rows, columns = np.nonzero(lists != NONE)
    pairs, _ = grouped(row_of[rows], lists[rows, columns])
    count = np.bincount(pairs[0], minlength=result.size)
    place = np.arange(pairs.shape[1]) - np.repeat(np.cumsum(count) - count, count)
    listed = place < LISTED_OBJECTS
    result["object_list"] = NONE
    result["object_list"][pairs[0][listed], place[listed]] = pairs[1][listed]
    result["first_object"] = result["object_list"][:, 0]
    result["objects"] = count
    np.maximum.at(result["objects"], row_of, dependences["objects"])


def _exposed(exposed: Rows, node_of: Indices) -> Rows:
    level = node_of[exposed["level"]]
    keys, _ = grouped(exposed["instruction"][level >= 0], level[level >= 0])
    result = np.zeros(keys.shape[1], EXPOSED)
    result["instruction"], result["level"] = keys
    return result


def _accesses(accesses: Rows) -> Rows:
    instructions, at = np.unique(accesses["instruction"], return_inverse=True)
    result = np.zeros(instructions.size, ACCESS)
    result["instruction"] = instructions
    np.add.at(result["count"], at, accesses["count"])
    return result
