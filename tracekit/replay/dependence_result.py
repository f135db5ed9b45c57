"""Turns what the dependence kernels found into a profile whose rows have a canonical order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.replay import arena
from tracekit.replay.contexttable import ContextTable
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
from tracekit.replay.kernels.dependence import State
from tracekit.replay.kernels.keyed import Keyed
from tracekit.replay.kernels.shadows import PAGES, WORDS
from tracekit.replay.keyed import used_rows

Rows = NDArray[Any]
Ints = NDArray[np.int64]

LOW = np.uint64(0xFFFF_FFFF)


def profile(state: State, contexts: ContextTable | None, instructions: int) -> DependenceProfile:
    """The profile; `instructions` is the row that stands for the instruction NONE. Without contexts there is one."""
    return profile_and_levels(state, contexts, instructions)[0]


def profile_and_levels(state: State, contexts: ContextTable | None,
                       instructions: int) -> tuple[DependenceProfile, Ints]:
    """The same, and for each row of ``state.relations.levels`` its row among the profile's levels (-1 for row 0)."""
    accesses = used_rows(state.relations.accesses)
    instruction, context = _keys(accesses)
    if contexts is None:
        nodes, new_node = np.zeros(1, NODE), np.zeros(1, np.int64)
        nodes["parent"] = nodes["function"] = nodes["loop"] = nodes["call"] = nodes["external"] = NONE
    else:
        used = np.zeros(contexts.known, np.bool_)
        used[context[1:]] = True
        nodes, new_node = contexts.where(used)
    ends = (np.where(instruction == instructions, NONE, instruction).astype(np.uint32), new_node[context])
    dependences, new_dependence, objects = _dependences(state, ends)
    levels, place = _levels(state, new_dependence, new_node)
    found = DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=levels,
        exposed=_exposed(state, ends, new_node),
        accesses=_accesses(accesses, ends),
        objects=objects,
        shadow_bytes=_bytes(state),
    )
    return found, np.concatenate([[-1], place])


def _bytes(state: State) -> int:
    """Bytes of the rows of all words of the pages touched, as if none were divided, and of the loads since stores."""
    words = int(state.memory.control[PAGES]) * WORDS
    loads = int(state.readers.control[arena.USED])
    return words * (state.memory.rows.itemsize + 1) + loads * state.readers.rows.itemsize


def _ordered(rows: Rows, *fields: str) -> Ints:
    """The order of `rows` by `fields`, the first the most significant."""
    return np.lexsort([rows[field] for field in reversed(fields)])


def _places(order: Ints) -> Ints:
    """Where each row of the old order stands in the new one."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _keys(rows: Rows) -> tuple[Ints, Ints]:
    """The upper and the lower 32 bits of the keys of rows."""
    return (rows["key"] >> np.uint64(32)).astype(np.int64), (rows["key"] & LOW).astype(np.int64)


def _made(table: Keyed) -> Rows:
    """The rows of a table, without the one that is none."""
    return used_rows(table)[1:]


def _dependences(state: State, ends: tuple[Rows, Ints]) -> tuple[Rows, Ints, Rows]:
    """The rows of ``dependences``, the new row of each old one, and ``objects``."""
    instruction, node = ends
    old = _made(state.relations.dependences)
    objects, object_row = _objects(state)
    rows = np.zeros(len(old), DEPENDENCE)
    rows["kind"] = old["key"] >> np.uint64(60)
    rows["count"], rows["objects"] = old["count"], old["objects"]
    for name, shift in (("source", 30), ("destination", 0)):
        end = (old["key"] >> np.uint64(shift) & np.uint64((1 << 30) - 1)).astype(np.int64)
        rows[name], rows[name + "_node"] = instruction[end], node[end]
    for place in range(LISTED_OBJECTS):
        rows["object_list"][:, place] = np.where(old["objects"] > place, object_row[old[f"object_{place}"]], NONE)
    rows["first_object"] = rows["object_list"][:, 0]
    order = _ordered(rows, "kind", "source", "source_node", "destination", "destination_node")
    return rows[order], _places(order), objects


def _objects(state: State) -> tuple[Rows, Ints]:
    """The rows of ``objects``, those that some dependence happened in, and the row of each identity."""
    rows = np.zeros(len(used_rows(state.identities)), OBJECT)
    rows["kind"], rows["site"] = _keys(used_rows(state.identities))
    rows["site"][0] = NONE
    used = np.unique(_keys(_made(state.relations.objects))[1])
    order = used[_ordered(rows[used], "kind", "site")]
    row_of = np.zeros(len(rows), np.int64)
    row_of[order] = np.arange(len(order))
    return rows[order], row_of


def _levels(state: State, new_dependence: Ints, new_node: Ints) -> tuple[Rows, Ints]:
    old = _made(state.relations.levels)
    dependence, node = _keys(old)
    rows = np.zeros(len(old), LEVEL)
    rows["dependence"], rows["node"] = new_dependence[dependence - 1], new_node[node]
    rows["intra"], rows["inter"] = old["intra"] != 0, old["inter"] != 0
    rows["min_distance"], rows["max_distance"] = old["least"], old["greatest"]
    rows["carried"] = old["carried"]
    order = _ordered(rows, "dependence", "node")
    return rows[order], _places(order)


def _exposed(state: State, ends: tuple[Rows, Ints], new_node: Ints) -> Rows:
    access, level = _keys(_made(state.relations.exposed))
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
