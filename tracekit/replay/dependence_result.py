"""Turns the state of the dependence kernels into a profile whose rows have a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.jit import allocating_kernel
from tracekit.replay.dependence_profile import (
    ACCESS,
    DEPENDENCE,
    EXPOSED,
    LEVEL,
    LISTED_OBJECTS,
    NODE,
    OBJECT,
    DependenceProfile,
)
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels import engine as dep
from tracekit.replay.kernels.contexts import Contexts, Stream
from tracekit.replay.kernels.engine import Engine
from tracekit.replay.kernels.hashmap import HashMap
from tracekit.replay.shadow import shadow_bytes

Rows = NDArray[Any]
Ints = NDArray[np.int64]


def profile(engine: Engine, streams: Sequence[Stream], instructions: int) -> DependenceProfile:
    """The profile of all streams; `instructions` is the row that stands for the instruction NONE."""
    accesses = engine.accesses[: engine.control[dep.ACCESSES]]
    nodes, new_node = _nodes(engine.contexts, streams, accesses)
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


def _nodes(contexts: Contexts, streams: Sequence[Stream], accesses: Rows) -> tuple[Rows, Ints]:
    """The rows of ``nodes`` in pre-order, and the new row of each old one (-1: not shown)."""
    old = contexts.nodes[: contexts.used[0]].copy()
    for stream in streams:
        _close_open_levels(old, stream)
    shown = old["kind"] != ctx.PAIR
    used = np.zeros(len(old), np.bool_)
    used[accesses["context"][1:]] = True
    shown[0] = not contexts.aware[0] or used[0] or bool(np.any(old["parent"][1:][shown[1:]] == 0))
    kept = np.flatnonzero(shown)
    row_of = np.full(len(old) + 1, -1, np.int64)  # the last element answers for parent -1
    row_of[kept] = np.arange(len(kept))
    old = old[kept]
    parent = row_of[old["parent"]]
    order = np.lexsort([old["function"], old["loop"], old["call"], old["kind"], parent])
    place = np.empty(len(kept), np.int64)
    _number_in_preorder(parent, order, place)
    nodes = np.zeros(len(kept), NODE)
    for field in NODE.names or ():
        nodes[field][place] = old[field].astype(NODE[field])  # -1 becomes NONE
    nodes["parent"][place] = np.where(parent >= 0, place[parent], NONE)
    new_node = np.full(len(shown), -1, np.int64)
    new_node[kept] = place
    return nodes, new_node


def _close_open_levels(nodes: Rows, stream: Stream) -> None:
    """Count what the open levels of a stream have done so far."""
    for level in stream.levels[: stream.control[ctx.LEVELS]]:
        node = nodes[level["node"]]
        node["iterations"] += level["iteration"]
        node["most_iterations"] = max(node["most_iterations"], level["iteration"])
        if level["outermost"]:
            node["accesses"] += stream.control[ctx.ACCESSES] - level["accesses"]


@allocating_kernel
def _number_in_preorder(parent: Ints, order: Ints, place: Ints) -> None:
    """Number the nodes of a forest; `order` sorts them by parent, then as siblings shall stand.

    Parents have smaller rows than their children, and roots have parent -1.
    """
    size = np.ones(parent.size, np.int64)
    for row in range(parent.size - 1, -1, -1):
        if parent[row] >= 0:
            size[parent[row]] += size[row]
    following = np.zeros(parent.size + 1, np.int64)  # where the next child goes; the last is for roots
    for row in order:
        place[row] = following[parent[row]]
        following[parent[row]] += size[row]
        following[row] = place[row] + 1


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
