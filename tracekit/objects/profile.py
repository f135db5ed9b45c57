"""What the modules that look at objects find, as plain structured arrays; and what several runs come to.

A profile is a context tree, a table of sites, and tables whose rows are told apart by some columns (:class:`Layout`).
All that these modules say follows from such tables, so joined profiles are shown by the code that serves one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices, grouped
from tracekit.contexts.merge import unite_nodes
from tracekit.contexts.merge_state import as_columns, check_references, missing, read_tables
from tracekit.formats.events import NONE
from tracekit.objects.kernels.live import CALLERS
from tracekit.objects.kinds import ObjectKind

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = npt.NDArray[Any]

TREE = np.dtype(
    [("parent", "<u4"), ("kind", "u1"), ("function", "<u4"), ("loop", "<u4"), ("call", "<u4"), ("camp_id", "<i8")]
)
"""A node of the context tree: the fields of NODE that say which it is."""

SITE = np.dtype(
    [
        ("kind", "u1"),  # ObjectKind
        ("site", "<u4"),  # row of the program's globals; else the instruction that makes the objects, or NONE
        ("node", "<u4"),  # row of nodes: its context; NONE of a global
        (
            "calls",
            "<u4",
            (CALLERS,),
        ),  # of a heap block in a recursion the innermost calls, the outermost first; then NONE
    ]
)

CLASSES = ("start", "interior", "past_end", "boundary", "dangling", "accesses", "dangling")
"""What a pointer is to an object; the last two are of loads and stores: to one that lives, and one that has ended."""

MIXED = -1
"""In place of an operator: different ones, or accesses that are parts of no update."""


def add(target: Rows, at: Indices, values: Rows) -> None:
    """Counts."""
    np.add.at(target, at, values)


def either(target: Rows, at: Indices, values: Rows) -> None:
    """Truth values: 1 if one is."""
    np.maximum.at(target, at, values)


def same(target: Rows, at: Indices, values: Rows) -> None:
    """Operators: MIXED unless all are the same."""
    least, most = (np.full(target.size, start, target.dtype) for start in (np.iinfo(np.int64).max, MIXED))
    np.minimum.at(least, at, values)
    np.maximum.at(most, at, values)
    target[:] = np.where(least == most, least, MIXED)


def most(target: Rows, at: Indices, values: Rows) -> None:
    """The greatest of numbers that are at least 0."""
    np.maximum.at(target, at, values)


def least(target: Rows, at: Indices, values: Rows) -> None:
    """The least."""
    target[:] = np.iinfo(target.dtype).max
    np.minimum.at(target, at, values)


@dataclass(frozen=True)
class Layout:
    """A table: a column ``site`` holds rows of the sites, ``node`` of the nodes; NONE is none."""

    dtype: np.dtype[Any]
    key: tuple[str, ...]
    """The columns that tell rows apart, and the order of rows."""
    join: Mapping[str, Callable[[Rows, Indices, Rows], None]] = field(default_factory=dict)
    """What two values of another column come to; those that are not here add."""


MEASURES = ("bytes", "accesses", "lifetime", "density", "lifetime_density")
"""Of a heap block: `density` is accesses a byte, times 100; `lifetime_density` is that by lifetime, times 100, in
milliseconds: as LLVM's runtime computes them, in whole numbers."""
BLOCKS = [("blocks", "<i8"), *((f"{how}{name}", "<i8") for name in MEASURES for how in ("", "least_", "most_"))]

LAYOUTS = {
    # object_lifetime: the objects of each site, and the innermost scopes that held those that have ended
    "lifetimes": Layout(
        np.dtype([("site", "<u4"), ("objects", "<i8"), ("bytes", "<i8"), ("never_freed", "<i8")]), ("site",)
    ),
    "lives": Layout(
        np.dtype([("site", "<u4"), ("node", "<u4"), ("iteration", "u1"), ("objects", "<i8")]),
        ("site", "node", "iteration"),
    ),  # node NONE: the run; iteration 1: one iteration of that loop
    # points_to: pointers by class (a number of CLASSES), and those to no object; instruction NONE is a library's.
    # Site NONE: more sites than are listed
    "pointers": Layout(
        np.dtype([("instruction", "<u4"), ("site", "<u4"), ("what", "u1"), ("count", "<i8")]),
        ("instruction", "site", "what"),
    ),
    "totals": Layout(
        np.dtype(
            [
                ("instruction", "<u4"),
                ("null", "<i8"),
                ("elsewhere", "<i8"),
                ("unknown", "<i8"),
                ("never_dereferenced", "<i8"),
            ]
        ),
        ("instruction",),
    ),
    # privateer: what was accessed while a loop was open (site NONE: memory of no known object); a loop is the first
    # of its source location
    "sets": Layout(
        np.dtype([("loop", "<u4"), ("site", "<u4"), ("reads", "u1"), ("writes", "u1"), ("operator", "<i8")]),
        ("loop", "site"),
        {"reads": either, "writes": either, "operator": same},
    ),
    "loops": Layout(np.dtype([("loop", "<u4"), ("accesses", "<i8")]), ("loop",)),
    # memprof: the heap blocks of each site; of each measure the sum, the least and the most
    "blocks": Layout(
        np.dtype([("site", "<u4"), *BLOCKS]),
        ("site",),
        {
            name: most if name.startswith("most_") else least
            for name, _ in BLOCKS
            if name.startswith(("most_", "least_"))
        },
    ),
}


@dataclass(frozen=True)
class ObjectProfile:
    """What one run or several showed; tables by name, of those in LAYOUTS. Rows have a canonical order."""

    nodes: Rows  # TREE, in pre-order
    sites: Rows  # SITE, by kind, instruction or global, context, calls
    tables: Mapping[str, Rows]

    def __getitem__(self, name: str) -> Rows:
        return self.tables[name]


def unite(profiles: Sequence[ObjectProfile]) -> ObjectProfile:
    """What profiles of runs of one program come to; of one it is itself, for they are canonical."""
    nodes, node_of = unite_nodes([profile.nodes for profile in profiles])
    starts = np.cumsum([0] + [len(profile.sites) for profile in profiles])
    sites = [_renamed(profile.sites, node=place) for profile, place in zip(profiles, node_of)]
    tables = {
        name: np.concatenate(
            [
                _renamed(profile[name], node=place, site=np.arange(start, start + len(profile.sites)))
                for profile, place, start in zip(profiles, node_of, starts)
            ]
        )
        for name in profiles[0].tables
    }
    return canonical(ObjectProfile(nodes, np.concatenate(sites), tables))


def canonical(profile: ObjectProfile) -> ObjectProfile:
    """The same with each site and row once, in their order, and without sites and contexts that nothing names."""
    used = [rows["site"][rows["site"] != NONE] for rows in profile.tables.values() if "site" in _fields(rows)]
    wanted = np.unique(np.concatenate([*used, np.zeros(0, np.uint32)])).astype(np.int64)
    sites, numbers = _grouped_rows(profile.sites[wanted], _fields(profile.sites))
    site_of = np.full(len(profile.sites), NONE, np.int64)
    site_of[wanted] = numbers
    nodes, node_of = _named_nodes(profile.nodes, [sites, *profile.tables.values()])
    tables = {
        name: _joined(_renamed(rows, site=site_of, node=node_of), LAYOUTS[name])
        for name, rows in profile.tables.items()
    }
    return ObjectProfile(nodes, _renamed(sites, node=node_of), tables)


def _fields(rows: Rows) -> tuple[str, ...]:
    return rows.dtype.names or ()


def _renamed(rows: Rows, **places: Indices) -> Rows:
    """Rows with other numbers in some columns, as far as they have them: column -> the new of each old; NONE stays."""
    renamed = rows.copy()
    for column, place in places.items():
        if column in _fields(rows):
            renamed[column] = np.append(place, NONE)[np.minimum(rows[column], len(place)).astype(np.int64)]
    return renamed


def _grouped_rows(rows: Rows, key: Sequence[str]) -> tuple[Rows, Indices]:
    """One row for each different key, the other columns zero, and for each old row the new one."""
    keys, at = grouped(*(column for name in key for column in np.atleast_2d(rows[name].T)))
    result = np.zeros(keys.shape[1], rows.dtype)
    for name in key:
        result[name][at] = rows[name]
    return result, at


def _joined(rows: Rows, layout: Layout) -> Rows:
    """Rows of one key as one row."""
    result, at = _grouped_rows(rows, layout.key)
    for name in _fields(rows):
        if name not in layout.key:
            layout.join.get(name, add)(result[name], at, rows[name])
    return result


def _named_nodes(nodes: Rows, tables: Sequence[Rows]) -> tuple[Rows, Indices]:
    """The nodes that are named in a column ``node``, with those around them; and the new row of each, or NONE."""
    kept = np.zeros(len(nodes), np.bool_)
    new = np.concatenate([rows["node"][rows["node"] != NONE] for rows in tables if "node" in _fields(rows)])
    while new.size:
        kept[new] = True
        new = np.unique(nodes["parent"][new])
        new = new[new != NONE]
        new = new[~kept[new]]
    node_of = np.where(kept, np.cumsum(kept) - 1, NONE)
    return _renamed(nodes[kept], parent=node_of), node_of


# -- profile files ---------------------------------------------------------------------------------

REFERENCES = {
    "nodes": {"parent": "nodes", "function": "functions", "loop": "loops", "call": "ops"},
    "sites": {"kind": "kinds of objects", "node": "nodes", "calls": "ops"},
    "lifetimes": {"site": "sites!"},
    "lives": {"site": "sites!", "node": "nodes"},
    "pointers": {"instruction": "ops", "site": "sites", "what": "classes of pointers"},
    "totals": {"instruction": "ops"},
    "sets": {"loop": "loops!", "site": "sites", "operator": "strings"},
    "loops": {"loop": "loops!"},
    "blocks": {"site": "sites!"},
}
"""Columns that hold rows of other tables, of the program's, or numbers of what there are only so many."""


def as_merge_state(profile: ObjectProfile) -> dict[str, Any]:
    """The tables of a profile by name, each its columns by name, as profile files keep them."""
    return as_columns({"nodes": profile.nodes, "sites": profile.sites, **profile.tables})


def from_merge_state(merge_state: Any, program: Program, tables: Sequence[str]) -> ObjectProfile:
    """The profile that :func:`as_merge_state` gave, with these tables. Raises TracekitError if it is damaged."""
    rows_of = read_tables(merge_state, {"nodes": TREE, "sites": SITE, **{name: LAYOUTS[name].dtype for name in tables}})
    references = {(name, column): target for name in rows_of for column, target in REFERENCES[name].items()}
    check_references(
        rows_of,
        references,
        {
            "loops": len(program.loops),
            "ops": len(program.ops),
            "functions": len(program.functions),
            "strings": len(program.strings),
            "kinds of objects": len(ObjectKind),
            "classes of pointers": len(CLASSES),
        },
    )
    nodes, sites = rows_of.pop("nodes"), rows_of.pop("sites")
    is_global = sites["kind"] == ObjectKind.GLOBAL
    if bool(np.any(sites["site"][is_global] >= len(program.globals))):
        raise missing("globals")
    if bool(np.any(sites["node"][~is_global] == NONE)):
        raise missing("contexts")
    made_by = sites["site"][~is_global]
    if bool(np.any((made_by >= len(program.ops)) & (made_by != NONE))):
        raise missing("ops")
    return ObjectProfile(nodes, sites, rows_of)
