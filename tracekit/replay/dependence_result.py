"""Turns the state of the dependence kernels into a profile whose rows have a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.replay.contexttable import final_nodes
from tracekit.replay.dependence_profile import (
    ACCESS,
    DEPENDENCE,
    EXPOSED,
    LEVEL,
    LISTED_OBJECTS,
    OBJECT,
    DependenceProfile,
)
from tracekit.replay.kernels import engine as dep
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.engine import Engine
from tracekit.replay.kernels.hashmap import HashMap
from tracekit.replay.shadow import shadow_bytes

Rows = NDArray[Any]
Ints = NDArray[np.int64]


def profile(engine: Engine, streams: Sequence[Stream], instructions: int) -> DependenceProfile:
    """The profile of all streams; `instructions` is the row that stands for the instruction NONE."""
    accesses = engine.accesses[: engine.control[dep.ACCESSES]]
    used = np.zeros(engine.contexts.used[0], np.bool_)
    used[accesses["context"][1:]] = True
    nodes, new_node = final_nodes(engine.contexts, streams, used)
    instruction = accesses["instruction"].astype(np.uint32)
    instruction[accesses["instruction"] == instructions] = NONE
    node = new_node[engine.contexts.nodes["printed"][accesses["context"]]]
    ends = (instruction, node)
    dependences, new_dependence, objects = _dependences(engine, ends)
    return DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=_levels(engine, new_dependence, new_node),
        exposed=_exposed(engine, ends, new_node),
        accesses=_accesses(accesses, ends),
        objects=objects,
        shadow_bytes=shadow_bytes(engine.shadow),
    )


def _ordered(rows: Rows, *fields: str) -> Ints:
    """The order of `rows` by `fields`, the first the most significant."""
    return np.lexsort([rows[field] for field in reversed(fields)])


def _places(order: Ints) -> Ints:
    """Where each row of the old order stands in the new one."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _keys(table: HashMap) -> tuple[Ints, Ints]:
    """The upper and the lower 32 bits of the keys of a map."""
    keys = table.cells[0::2][table.cells[1::2] != 0]
    return keys >> 32, keys & 0xFFFF_FFFF


def _dependences(engine: Engine, ends: tuple[Rows, Ints]) -> tuple[Rows, Ints, Rows]:
    """The rows of ``dependences``, the new row of each old one, and ``objects``."""
    instruction, node = ends
    old = engine.dependences[: engine.control[dep.DEPENDENCES]]
    objects, object_row = _objects(engine)
    rows = np.zeros(len(old), DEPENDENCE)
    for field in ("kind", "count", "objects"):
        rows[field] = old[field]
    for end in ("source", "destination"):
        rows[end] = instruction[old[end]]
        rows[end + "_node"] = node[old[end]]
    for place in range(LISTED_OBJECTS):
        rows["object_list"][:, place] = np.where(old["objects"] > place, object_row[old[f"object_{place}"]], NONE)
    rows["first_object"] = rows["object_list"][:, 0]
    order = _ordered(rows, "kind", "source", "source_node", "destination", "destination_node")
    return rows[order], _places(order), objects


def _objects(engine: Engine) -> tuple[Rows, Ints]:
    """The rows of ``objects``, those that some dependence happened in, and the row of each identity."""
    kind, site = _keys(engine.identities)
    identity = engine.identities.cells[1::2][engine.identities.cells[1::2] != 0] - 1
    rows = np.zeros(len(identity) + 1, OBJECT)
    rows["site"][0] = NONE
    rows["kind"][identity] = kind
    rows["site"][identity] = site
    used = np.unique(_keys(engine.dependence_objects)[1])
    order = used[_ordered(rows[used], "kind", "site")]
    row_of = np.zeros(len(rows), np.int64)
    row_of[order] = np.arange(len(order))
    return rows[order], row_of


def _levels(engine: Engine, new_dependence: Ints, new_node: Ints) -> Rows:
    old = engine.level_rows[: engine.control[dep.LEVEL_ROWS]]
    rows = np.zeros(len(old), LEVEL)
    rows["dependence"] = new_dependence[old["dependence"]]
    rows["node"] = new_node[old["node"]]
    rows["intra"], rows["inter"] = old["intra"] != 0, old["inter"] != 0
    rows["min_distance"], rows["max_distance"] = old["least"], old["greatest"]
    return rows[_ordered(rows, "dependence", "node")]


def _exposed(engine: Engine, ends: tuple[Rows, Ints], new_node: Ints) -> Rows:
    access, level = _keys(engine.exposed)
    rows = np.zeros(len(access), EXPOSED)
    rows["instruction"], rows["node"] = ends[0][access], ends[1][access]
    rows["level"] = new_node[level]
    return rows[_ordered(rows, "instruction", "node", "level")]


def _accesses(accesses: Rows, ends: tuple[Rows, Ints]) -> Rows:
    """Counts per instruction and node; the depths of a recursion come together at its leaf."""
    counts = np.zeros(len(accesses), np.uint64)
    np.add.at(counts, accesses["printed"], accesses["count"].astype(np.uint64))
    counts[0] = 0
    counted = np.flatnonzero(counts)
    rows = np.zeros(len(counted), ACCESS)
    rows["instruction"], rows["node"], rows["count"] = ends[0][counted], ends[1][counted], counts[counted]
    return rows[_ordered(rows, "instruction", "node")]
