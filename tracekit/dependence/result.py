"""Turns what the dependence kernels found into a profile whose rows have a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.grouping import grouped, sorting_order
from tracekit.contexts.nodes import NODE
from tracekit.contexts.table import ContextTable
from tracekit.dependence.kernels.dependence_table import END_BITS
from tracekit.dependence.level_rows import levels_found
from tracekit.dependence.profile import ACCESS, DEPENDENCE, EXPOSED, LISTED_OBJECTS, OBJECT, DependenceProfile
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
    """The profile, and for each of ``findings.levels`` its row among those carried, -1 for row 0."""
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
    levels, row_of = levels_found(findings, new_dependence, new_node)
    made = DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=levels,
        exposed=_exposed(findings, ends, new_node),
        accesses=_accesses(findings.accesses, ends),
        objects=objects,
        shadow_bytes=findings.shadow_bytes,
    )
    return made, row_of


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
    shown, rank = grouped(instruction, node)  # of accesses, which are fewer than dependences
    key = findings.dependences["key"][1:]
    kind = key >> np.uint64(2 * END_BITS)
    source, destination = (
        (key >> np.uint64(shift) & np.uint64((1 << END_BITS) - 1)).astype(np.int64) for shift in (END_BITS, 0)
    )
    # Depths of a recursion have one node: see _ordered.
    contexts = [context[source], context[destination]] if shown.shape[1] < len(rank) else []
    order = sorting_order(kind, rank[source], rank[destination], *contexts)
    rows = np.zeros(len(order), DEPENDENCE)
    _fill_dependences(findings.dependences, order, instruction, node, rows)
    new_dependence = _places(order)
    return rows, new_dependence, _list_objects(findings, new_dependence, rows)


@kernel
def _fill_dependences(old: Rows, order: Ints, instruction: Rows, node: Ints, rows: Rows) -> None:
    """Fill all of `rows` but their objects."""
    for place in range(order.size):
        found, row = old[np.uint64(order[place] + 1)], rows[np.uint64(place)]
        source = (found.key >> np.uint64(END_BITS)) & np.uint64((1 << END_BITS) - 1)
        destination = found.key & np.uint64((1 << END_BITS) - 1)
        row.kind, row.count = found.key >> np.uint64(2 * END_BITS), found.count
        row.source, row.source_node = instruction[source], node[source]
        row.destination, row.destination_node = instruction[destination], node[destination]


def _list_objects(findings: Findings, new_dependence: Ints, dependences: Rows) -> Rows:
    """The rows of ``objects``, those that some dependence happened in; `dependences` lists its own in order of time."""
    dependence, identity = _keys(findings.objects[1:])
    used = np.unique(identity)
    objects = np.zeros(len(used), OBJECT)
    objects["kind"], objects["site"] = _keys(findings.identities[used])
    objects["site"][used == 0] = NONE
    order = _ordered(objects, "kind", "site")
    row_of = np.zeros(len(findings.identities), np.int64)
    row_of[used[order]] = np.arange(len(order))
    dependence = new_dependence[dependence - 1]
    by_time = sorting_order(dependence, findings.objects["execution"][1:], row_of[identity])
    dependence, identity = dependence[by_time], identity[by_time]
    count = np.bincount(dependence, minlength=len(dependences))
    place = np.arange(len(dependence)) - (np.cumsum(count) - count)[dependence]
    listed = place < LISTED_OBJECTS
    dependences["objects"] = count
    dependences["object_list"] = NONE
    dependences["object_list"][dependence[listed], place[listed]] = row_of[identity[listed]]
    dependences["first_object"] = dependences["object_list"][:, 0]
    return objects[order]


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
