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

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.merge import unite_nodes
from tracekit.contexts.merge_state import as_columns, check_references, read_tables
from tracekit.contexts.nodes import NODE
from tracekit.dependence.profile import ACCESS, DEPENDENCE, EXPOSED, LEVEL, LISTED_OBJECTS, OBJECT, DependenceProfile
from tracekit.dependence.united_levels import united_levels
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
        levels=_levels(profiles, node_of, row_of),
        exposed=_exposed(profiles, node_of),
        accesses=_accesses(profiles, node_of),
        objects=objects,
        shadow_bytes=max(profile.shadow_bytes for profile in profiles),
    )


DTYPES = {
    "nodes": NODE,
    "dependences": DEPENDENCE,
    "levels": LEVEL,
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
    ("levels", "dependence"): "dependences",
    ("levels", "node"): "nodes",
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


def as_merge_state(profile: DependenceProfile) -> dict[str, Any]:
    """The tables of a profile by name, each its columns by name, as profile files keep them."""
    return as_columns({name: getattr(profile, name) for name in DTYPES})


def from_merge_state(merge_state: Any, program: Program) -> DependenceProfile:
    """The profile that :func:`as_merge_state` gave. Raises TracekitError if it is damaged."""
    tables = read_tables(merge_state, DTYPES)
    check_references(
        tables, REFERENCES, {"loops": len(program.loops), "ops": len(program.ops), "functions": len(program.functions)}
    )
    return DependenceProfile(**tables, shadow_bytes=0)


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
    starts = np.cumsum([0, *(len(profile.dependences) for profile in profiles)])
    tables = [profile.levels for profile in profiles]
    dependence = np.concatenate([row_of[start + table["dependence"]] for start, table in zip(starts, tables)])
    node = np.concatenate([nodes[table["node"]] for nodes, table in zip(node_of, tables)])
    return united_levels(np.concatenate(tables), dependence, node)[0]


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
