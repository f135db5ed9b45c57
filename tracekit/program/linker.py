"""Joins the image tables of all units of a trace into one set of tables whose indices are global.

Every reference of every row is checked here, once, so that kernels may index without asking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import DTYPES, Base, CauseKind, CauseOf, EdgeKind, LoopFate, NodeKind, OpKind, PartKind

Rows = NDArray[Any]
"""A table: a structured array with one of the dtypes of ``formats.image.DTYPES``."""


class UnitLike(Protocol):
    """One translation unit's tables, as a reader or a test builder gives them."""

    @property
    def tables(self) -> Mapping[str, Rows]:
        """Table name -> rows; indices count rows of this unit."""

    @property
    def hash(self) -> str:
        """The unit's hash in hex."""


BYTES = ("strings", "folder")
"""Tables of bytes, not rows."""

STRINGS: dict[str, tuple[str, ...]] = {
    "unit": ("source", "producer", "target", "at"),
    "sources": ("path", "md5"),
    "locations": ("function",),
    "functions": ("name", "source_name", "signature"),
    "ops": ("name",),
    "calls": ("callee", "signature"),
    "call_targets": ("name",),
    "phis": ("operator", "name"),
    "updates": ("operator",),
    "update_parts": ("operator",),
    "globals": ("name", "source_name", "type"),
    "address_taken": ("name",),
    "variables": ("name",),
    "variable_updates": ("operator",),
    "declarations": ("name", "source_name"),
    "options": ("option",),
}
"""Fields that hold an offset into ``strings``."""

REFERENCES: dict[str, dict[str, str]] = {
    "locations": {"source": "sources", "inlined_at": "locations"},
    "functions": {"location": "locations"},
    "path_blocks": {"block": "blocks!"},
    "blocks": {"function": "functions!", "loop": "loops", "call": "ops", "continues": "ops", "location": "locations"},
    "ops": {"location": "locations"},
    "terms": {"loop": "loops!"},
    "calls": {"op": "ops!", "block": "blocks!"},
    "loops": {"function": "functions!", "header": "blocks!", "parent": "loops", "location": "locations"},
    "loop_exits": {"source": "blocks!", "target": "blocks", "location": "locations"},
    "phis": {"location": "locations"},
    "updates": {"load": "ops!", "store": "ops!"},
    "update_parts": {"update": "updates!"},
    "globals": {"location": "locations"},
    "variables": {"loop": "loops!", "location": "locations"},
    "variable_updates": {"variable": "variables!"},
    "loop_fates": {"location": "locations!", "into": "locations"},
}
"""Fields that hold a row of another table; ``!`` says that NONE is not allowed."""

RANGES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "functions": (
        ("first_path", "paths", "paths"),
        ("first_block", "blocks", "blocks"),
        ("first_op", "ops", "ops"),
        ("first_loop", "loops", "loops"),
        ("first_edge", "edges", "edges"),
    ),
    "paths": (("first", "blocks", "path_blocks"),),
    "blocks": (("first_op", "ops", "ops"),),
    "ops": (("first_term", "terms", "terms"),),
    "calls": (("first_target", "targets", "call_targets"),),
    "loops": (("first_phi", "phis", "phis"), ("first_exit", "exits", "loop_exits")),
}
"""Fields (first, count) that name a run of rows of another table."""

NODE_TABLE = {NodeKind.OP: "ops", NodeKind.PHI: "phis", NodeKind.BRANCH: "blocks"}


def link(units: Sequence[UnitLike]) -> tuple[dict[str, Rows], bytes, dict[str, NDArray[np.int64]]]:
    """Join the tables of `units`.

    Returns the joined tables by name (all but ``strings`` and ``folder``), the joined strings, and per table the first
    row of each unit (int64, one more than there are units). Raises TracekitError for a reference that
    leads outside its table.
    """
    starts = {
        name: np.concatenate([[0], np.cumsum([len(unit.tables[name]) for unit in units])]).astype(np.int64)
        for name in DTYPES
    }
    if any(int(start[-1]) >= NONE for start in starts.values()):
        raise TracekitError("The trace's image tables have more than 2^32 rows.")
    tables = {name: np.empty(int(starts[name][-1]), dtype) for name, dtype in DTYPES.items() if name not in BYTES}
    for number, unit in enumerate(units):
        _check_strings(unit)
        for name, table in tables.items():
            rows = _own(unit.tables[name], name)
            _rebase(unit, name, rows, starts, number)
            table[starts[name][number] : starts[name][number + 1]] = rows
    strings = b"".join(unit.tables["strings"]["byte"].tobytes() for unit in units) or b"\0"
    return tables, strings, starts


def _own(rows: Rows, name: str) -> Rows:
    """A copy of `rows` with exactly the fields this version knows."""
    own = np.zeros(len(rows), DTYPES[name])
    for field in DTYPES[name].names or ():
        if field in (rows.dtype.names or ()):
            own[field] = rows[field]
    return own


def _check_strings(unit: UnitLike) -> None:
    data = unit.tables["strings"]["byte"]
    if len(data) == 0 or data[0] != 0 or data[-1] != 0:
        _refuse(unit, "strings", "byte")


def _rebase(unit: UnitLike, name: str, rows: Rows, starts: Mapping[str, NDArray[np.int64]], number: int) -> None:
    """Check every reference in `rows` and make it global, in place."""
    size = {table: len(unit.tables[table]) for table in unit.tables}

    def shift(field: str, table: str, chosen: NDArray[np.bool_]) -> None:
        values = rows[field][chosen]
        if bool(np.any(values >= size[table])):
            _refuse(unit, name, field)
        rows[field][chosen] = values + np.uint32(starts[table][number])

    for field in STRINGS.get(name, ()):
        shift(field, "strings", rows[field] != 0)
    for field, target in REFERENCES.get(name, {}).items():
        chosen = np.full(len(rows), True) if target.endswith("!") else rows[field] != NONE
        shift(field, target.rstrip("!"), chosen)
    for first, count, table in RANGES.get(name, ()):
        used = rows[count] > 0
        if bool(np.any(rows[first].astype(np.int64)[used] + rows[count][used] > size[table])):
            _refuse(unit, name, first)
        rows[first] = np.where(used, rows[first] + np.uint32(starts[table][number]), 0)
    if name == "ops":
        call = rows["kind"] == OpKind.CALL
        shift("base", "calls", call)
        shift("base", "globals", ~call & (rows["base_kind"] == Base.GLOBAL))
        shift("base", "ops", ~call & (rows["base_kind"] == Base.STACK))
    if name == "edges":
        _rebase_edges(unit, rows, shift)
    if name == "causes":
        _rebase_causes(unit, rows, shift)
    if name == "update_parts":
        _rebase_parts(unit, rows, shift)
    if name == "loop_fates" and not bool(np.isin(rows["fate"], [int(fate) for fate in LoopFate]).all()):
        _refuse(unit, name, "fate")


def _rebase_edges(unit: UnitLike, rows: Rows, shift: Any) -> None:
    for end in ("from", "to"):
        for kind, table in NODE_TABLE.items():
            shift(end, table, rows[end + "_kind"] == kind)
        if not bool(np.isin(rows[end + "_kind"], [int(kind) for kind in NODE_TABLE]).all()):
            _refuse(unit, "edges", end + "_kind")
    if not bool(np.isin(rows["kind"], [int(kind) for kind in EdgeKind]).all()):
        _refuse(unit, "edges", "kind")


def _rebase_causes(unit: UnitLike, rows: Rows, shift: Any) -> None:
    shift("of", "loop_exits", rows["of_kind"] == CauseOf.EXIT)
    shift("of", "phis", rows["of_kind"] == CauseOf.PHI)
    shift("index", "ops", np.isin(rows["kind"], (CauseKind.LOAD, CauseKind.CALL, CauseKind.BEFORE, CauseKind.BEHIND)))
    shift("index", "phis", rows["kind"] == CauseKind.PHI)
    for field, kinds in (("of_kind", CauseOf), ("kind", CauseKind)):
        if not bool(np.isin(rows[field], [int(kind) for kind in kinds]).all()):
            _refuse(unit, "causes", field)


def _rebase_parts(unit: UnitLike, rows: Rows, shift: Any) -> None:
    shift("index", "ops", rows["kind"] != PartKind.DECISION)
    shift("index", "blocks", rows["kind"] == PartKind.DECISION)
    if not bool(np.isin(rows["kind"], [int(kind) for kind in PartKind]).all()):
        _refuse(unit, "update_parts", "kind")


def _refuse(unit: UnitLike, table: str, field: str) -> None:
    raise TracekitError(
        f"The trace's image tables are damaged: unit {unit.hash}, table {table}, field {field}. Record it again."
    )
