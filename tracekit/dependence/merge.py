"""The dependence profile that several runs of one program come to, from the profile of each.

A dependence is there if any run showed it, a load is exposed if it was in any run; counts add, distances keep their
extremes. Rows of the result have the canonical order that DependenceProfile promises, so that the union is
commutative and associative. Verdicts are then derived from it as from the profile of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped, sorting_order
from tracekit.containers.hash_table import hash_table
from tracekit.contexts.merge import unite_nodes
from tracekit.contexts.merge_state import as_columns, check_references, missing, read_tables
from tracekit.contexts.nodes import NODE
from tracekit.dependence.level_rows import levels_of
from tracekit.dependence.loop_sets import append_nodes, numbered
from tracekit.dependence.profile import (
    ACCESS,
    CARRIED,
    DEPENDENCE,
    EXPOSED,
    LEVEL,
    LISTED_OBJECTS,
    OBJECT,
    DependenceLevels,
    DependenceProfile,
)
from tracekit.dependence.united_levels import Renamed, united_levels
from tracekit.formats.events import NONE

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = npt.NDArray[Any]


def unite(profiles: Sequence[DependenceProfile]) -> DependenceProfile:
    """The union of profiles of one program: their rows of functions, loops, instructions and globals mean the same."""
    nodes, node_of = unite_nodes([profile.nodes for profile in profiles], _add_node)
    objects, object_of = _objects([profile.objects for profile in profiles])
    renamed = [_renamed(*each) for each in zip((profile.dependences for profile in profiles), node_of, object_of)]
    dependences, row_of = _dependences(np.concatenate(renamed))
    return DependenceProfile(
        nodes=nodes,
        dependences=dependences,
        levels=levels_of(_levels(profiles, node_of, row_of), len(dependences)),
        exposed=_exposed(profiles, node_of),
        accesses=_accesses(profiles, node_of),
        objects=objects,
        shadow_bytes=max(profile.shadow_bytes for profile in profiles),
    )


DTYPES = {
    "nodes": NODE,
    "dependences": DEPENDENCE,
    "exposed": EXPOSED,
    "accesses": ACCESS,
    "objects": OBJECT,
}


REFERENCES = {
    ("nodes", "parent"): "nodes",
    ("nodes", "loop"): "loops",
    ("nodes", "function"): "functions",
    ("nodes", "call"): "ops",
    ("nodes", "external"): "ops",
    ("exposed", "instruction"): "ops",
    ("exposed", "node"): "nodes",
    ("exposed", "level"): "nodes",
    ("accesses", "instruction"): "ops",
    ("accesses", "node"): "nodes",
    ("dependences", "source"): "ops",
    ("dependences", "source_node"): "nodes",
    ("dependences", "destination"): "ops",
    ("dependences", "destination_node"): "nodes",
    ("dependences", "object_list"): "objects",
}
"""Columns that hold rows of other tables, or of the program's."""
WITHIN = np.dtype([("set", "<u4")])
LOOP_SET = np.dtype([("set", "<u4"), ("node", "<u4")])
COMPACT = {"carried": CARRIED, "within": WITHIN, "loop_sets": LOOP_SET}
"""The tables of the levels; `loop_sets`: a row for each node of each set."""
COMPACT_REFERENCES = {
    ("carried", "dependence"): "dependences!",
    ("carried", "node"): "nodes!",
    ("within", "set"): "sets!",
    ("loop_sets", "set"): "sets!",
    ("loop_sets", "node"): "nodes!",
}
ROWS = {"levels": LEVEL}
"""Their table in profiles of before: a row for each level of each dependence."""
ROWS_REFERENCES = {("levels", "dependence"): "dependences!", ("levels", "node"): "nodes!"}


def as_merge_state(profile: DependenceProfile) -> dict[str, Any]:
    """The tables of a profile by name, each its columns by name, as profile files keep them."""
    carried, within, sets = profile.levels
    loop_sets = np.zeros(len(sets.nodes), LOOP_SET)
    loop_sets["set"], loop_sets["node"] = sets.of(np.arange(len(sets.sizes)))
    levels = {"carried": carried, "within": within.astype(np.uint32).view(WITHIN), "loop_sets": loop_sets}
    return as_columns({name: getattr(profile, name) for name in DTYPES} | levels)


def from_merge_state(merge_state: Any, program: Program) -> DependenceProfile:
    """The profile that :func:`as_merge_state` gave. Raises TracekitError if it is damaged."""
    of_before = isinstance(merge_state, dict) and "levels" in merge_state
    tables = read_tables(merge_state, DTYPES | (ROWS if of_before else COMPACT))
    sizes = {"loops": len(program.loops), "ops": len(program.ops), "functions": len(program.functions)}
    sizes["sets"] = len(tables.get("loop_sets", ())) + 1  # at most: all but the empty one have a row
    check_references(tables, REFERENCES | (ROWS_REFERENCES if of_before else COMPACT_REFERENCES), sizes)
    if of_before:
        levels = levels_of(tables.pop("levels"), len(tables["dependences"]))
    else:
        carried, within, loop_sets = (tables.pop(name) for name in COMPACT)
        levels = _compact_levels(carried, within, loop_sets, len(tables["dependences"]))
    return DependenceProfile(**tables, levels=levels, shadow_bytes=0)


def _compact_levels(carried: Rows, within: Rows, loop_sets: Rows, dependences: int) -> DependenceLevels:
    """The levels of so many dependences. Raises TracekitError if they have not each a set."""
    if len(within) != dependences:
        raise missing("sets")
    (owners, nodes), _ = grouped(loop_sets["set"], loop_sets["node"])
    ways, rows = hash_table([]), np.zeros(len(loop_sets) + 1, np.int64)
    append_nodes(ways, rows, owners, nodes)
    carried = carried[sorting_order(carried["dependence"], carried["node"])]
    return DependenceLevels(carried, *numbered(ways, rows[within["set"]]))


def _add_node(node: Any, row: Any) -> None:
    if node["invocations"] and row["invocations"]:  # else one of the two was no level in its run
        node["least_iterations"] = min(node["least_iterations"], row["least_iterations"])
    else:
        node["least_iterations"] = max(node["least_iterations"], row["least_iterations"])
    for field in ("invocations", "iterations", "accesses"):
        node[field] += row[field]
    node["most_iterations"] = max(node["most_iterations"], row["most_iterations"])
    node["external"] = min(node["external"], row["external"])


def _objects(tables: Sequence[Rows]) -> tuple[Rows, list[Indices]]:
    """All objects, and for each object of each table its row there; the last stands for NONE."""
    together = np.concatenate(tables)
    keys, row_of = grouped(together["kind"], together["site"])
    objects = np.zeros(keys.shape[1], OBJECT)
    objects["kind"], objects["site"] = keys
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return objects, [np.append(part, NONE) for part in np.split(row_of, ends)]


def _renamed(dependences: Rows, node_of: Indices, object_of: Indices) -> Rows:
    """The dependences of one run, with the nodes and objects of the union."""
    renamed = dependences.copy()
    for field in ("source_node", "destination_node"):
        renamed[field] = node_of[dependences[field]]
    renamed["object_list"] = object_of[np.minimum(dependences["object_list"], len(object_of) - 1)]
    return renamed


def _dependences(together: Rows) -> tuple[Rows, Indices]:
    """One row for each dependence, and for each old row the new one."""
    fields = ("kind", "source", "source_node", "destination", "destination_node")
    keys, row_of = grouped(*(together[field] for field in fields))
    result = np.zeros(keys.shape[1], DEPENDENCE)
    for field, column in zip(fields, keys):
        result[field] = column
    np.add.at(result["count"], row_of, together["count"])
    _unite_objects(together, row_of, result)
    return result, row_of


def _unite_objects(together: Rows, row_of: Indices, result: Rows) -> None:
    """The objects of each dependence, sorted; of more than a row lists only that they are too many.

    How many there are, and which came first in time, is not known of a union; no verdict asks.
    """
    wide = np.zeros(len(result), np.bool_)
    wide[row_of[together["objects"] > LISTED_OBJECTS]] = True
    rows, columns = np.nonzero(together["object_list"] != NONE)
    pairs, _ = grouped(row_of[rows], together["object_list"][rows, columns])
    count = np.bincount(pairs[0], minlength=len(result))
    wide |= count > LISTED_OBJECTS
    place = np.arange(pairs.shape[1]) - np.repeat(np.cumsum(count) - count, count)
    listed = ~wide[pairs[0]]
    result["object_list"] = NONE
    result["object_list"][pairs[0][listed], place[listed]] = pairs[1][listed]
    result["first_object"] = result["object_list"][:, 0]
    result["objects"] = np.where(wide, LISTED_OBJECTS + 1, count)


def _levels(profiles: Sequence[DependenceProfile], node_of: Sequence[Indices], row_of: Indices) -> Rows:
    ends = np.cumsum([len(profile.dependences) for profile in profiles])[:-1]
    levels = (profile.levels for profile in profiles)
    return united_levels([Renamed(*part) for part in zip(levels, np.split(row_of, ends), node_of, strict=True)])[0]


def _exposed(profiles: Sequence[DependenceProfile], node_of: Sequence[Indices]) -> Rows:
    together = np.concatenate([profile.exposed for profile in profiles])
    for field in ("node", "level"):
        together[field] = np.concatenate([nodes[profile.exposed[field]] for profile, nodes in zip(profiles, node_of)])
    keys, _ = grouped(together["instruction"], together["node"], together["level"])
    result = np.zeros(keys.shape[1], EXPOSED)
    result["instruction"], result["node"], result["level"] = keys
    return result


def _accesses(profiles: Sequence[DependenceProfile], node_of: Sequence[Indices]) -> Rows:
    together = np.concatenate([profile.accesses for profile in profiles])
    together["node"] = np.concatenate([nodes[profile.accesses["node"]] for profile, nodes in zip(profiles, node_of)])
    keys, at = grouped(together["instruction"], together["node"])
    result = np.zeros(keys.shape[1], ACCESS)
    result["instruction"], result["node"] = keys
    np.add.at(result["count"], at, together["count"])
    return result
