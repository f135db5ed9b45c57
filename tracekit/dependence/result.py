"""Turns what the dependence kernels found into a profile whose rows have a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import sorting_order
from tracekit.contexts.nodes import NODE
from tracekit.contexts.table import ContextTable
from tracekit.dependence.kernels.dependence_table import END_BITS
from tracekit.dependence.profile import ACCESS, DEPENDENCE, EXPOSED, LEVEL, LISTED_OBJECTS, OBJECT, DependenceProfile
from tracekit.dependence.reduce import Findings
from tracekit.formats.events import NONE
from tracekit.jit.kernel import kernel

Rows = NDArray[Any]
Ints = NDArray[np.int64]

LOW = np.uint64(0xFFFF_FFFF)


def profile(findings: Findings, contexts: ContextTable | None, instructions: int) -> DependenceProfile:
    """The profile; `instructions` is the row that stands for the instruction NONE. Without contexts there is one."""
    return profile_and_levels(findings, contexts, instructions)[0]


def profile_and_levels(
    findings: Findings, contexts: ContextTable | None, instructions: int
) -> tuple[DependenceProfile, Ints]:
    """The profile, and for each of its levels its row among ``findings.levels`` without row 0, which is none."""
    instruction, context = _keys(findings.accesses)
    if contexts is None:
        nodes, new_node = np.zeros(1, NODE), np.zeros(1, np.int64)
        nodes["parent"] = nodes["function"] = nodes["loop"] = nodes["call"] = nodes["external"] = NONE
    else:
        used = np.zeros(contexts.known, np.bool_)
        used[context[1:]] = True
        nodes, new_node = contexts.where(used)
    ends = (np.where(instruction == instructions, NONE, instruction).astype(np.uint32), new_node[context])
    dependences, new_dependence, objects = _dependences(findings, ends)
    levels, old_level = _levels(findings, new_dependence, new_node)
    made = DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=levels,
        exposed=_exposed(findings, ends, new_node),
        accesses=_accesses(findings.accesses, ends),
        objects=objects,
        shadow_bytes=findings.shadow_bytes,
    )
    return made, old_level


def _ordered(rows: Rows, *fields: str, then: Sequence[Ints] = ()) -> Ints:
    """The order of `rows` by `fields`, the first the most significant, and then by other columns.

    The depths of a recursion have one node, so that rows may be equal in all fields: the numbers of their contexts, the
    same however many workers there were, tell which comes first.
    """
    return sorting_order(*(rows[field] for field in fields), *then)


def _places(order: Ints) -> Ints:
    """Where each row of the old order stands in the new one."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _keys(rows: Rows) -> tuple[Ints, Ints]:
    """The upper and the lower 32 bits of the keys of rows."""
    return (rows["key"] >> np.uint64(32)).astype(np.int64), (rows["key"] & LOW).astype(np.int64)


def _dependences(findings: Findings, ends: tuple[Rows, Ints]) -> tuple[Rows, Ints, Rows]:
    """The rows of ``dependences``, the new row of each old one, and ``objects``."""
    instruction, node = ends
    _, context = _keys(findings.accesses)
    old = findings.dependences[1:]
    rows = np.zeros(len(old), DEPENDENCE)
    rows["kind"], rows["count"] = old["key"] >> np.uint64(2 * END_BITS), old["count"]
    contexts = []
    for name, shift in (("source", END_BITS), ("destination", 0)):
        end = (old["key"] >> np.uint64(shift) & np.uint64((1 << END_BITS) - 1)).astype(np.int64)
        rows[name], rows[name + "_node"] = instruction[end], node[end]
        contexts.append(context[end])
    objects = _list_objects(findings, rows)
    order = _ordered(rows, "kind", "source", "source_node", "destination", "destination_node", then=contexts)
    return rows[order], _places(order), objects


def _list_objects(findings: Findings, dependences: Rows) -> Rows:
    """The rows of ``objects``, those that some dependence happened in; `dependences` lists its own in order of time."""
    dependence, identity = _keys(findings.objects[1:])
    used = np.unique(identity)
    objects = np.zeros(len(used), OBJECT)
    objects["kind"], objects["site"] = _keys(findings.identities[used])
    objects["site"][used == 0] = NONE
    order = _ordered(objects, "kind", "site")
    row_of = np.zeros(len(findings.identities), np.int64)
    row_of[used[order]] = np.arange(len(order))
    by_time = np.lexsort([row_of[identity], findings.objects["execution"][1:], dependence])
    dependence, identity = dependence[by_time] - 1, identity[by_time]
    count = np.bincount(dependence, minlength=len(dependences))
    place = np.arange(len(dependence)) - (np.cumsum(count) - count)[dependence]
    listed = place < LISTED_OBJECTS
    dependences["objects"] = count
    dependences["object_list"] = NONE
    dependences["object_list"][dependence[listed], place[listed]] = row_of[identity[listed]]
    dependences["first_object"] = dependences["object_list"][:, 0]
    return objects[order]


def _levels(findings: Findings, new_dependence: Ints, new_node: Ints) -> tuple[Rows, Ints]:
    """The rows of ``levels``, and which of the old ones each of them was."""
    old = findings.levels[1:]
    rank = _places(sorting_order(new_node, np.arange(len(new_node))))
    dependence, node = _keys(old)
    key = new_dependence[dependence - 1] * len(rank)
    key += rank[node]
    del dependence, node  # it is the most memory that an analysis takes
    order = sorting_order(key)
    rows = np.empty(len(old), LEVEL)
    _fill_levels(old, new_dependence, new_node, order, rows)
    return rows, order


@kernel
def _fill_levels(old: Rows, new_dependence: Ints, new_node: Ints, order: Ints, rows: Rows) -> None:
    """Fill `rows` with those of `old` in `order`; numpy takes six times as long, a field after the other."""
    for place in range(order.size):
        found, row = old[np.uint64(order[place])], rows[np.uint64(place)]
        row.dependence = new_dependence[(found.key >> np.uint64(32)) - np.uint64(1)]
        row.node = new_node[found.key & LOW]
        row.intra, row.inter = found.intra != 0, found.inter != 0
        row.min_distance, row.max_distance = found.least, found.greatest
        row.carried = found.carried


def _exposed(findings: Findings, ends: tuple[Rows, Ints], new_node: Ints) -> Rows:
    access, level = _keys(findings.exposed[1:])
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
    return rows[_ordered(rows, "instruction", "node", then=[_keys(accesses)[1][counted]])]
