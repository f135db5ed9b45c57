"""Joins the image tables of all units of a trace into one set of tables whose indices are global.

Every reference of every row is checked here, once, so that kernels may index without asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import (
    DTYPES,
    Base,
    CauseKind,
    CauseOf,
    EdgeKind,
    LoopFate,
    NodeKind,
    OpKind,
    PartKind,
    StructureKind,
    TypedKind,
)

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
    "types": ("name",),
    "members": ("name", "type_name"),
    "counters": ("binary",),
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
    "types": {"location": "locations"},
    "members": {"type": "types", "location": "locations"},
    "typed": {"type": "types!"},
    "counters": {"op": "ops!"},
    "lines": {"block": "blocks!", "location": "locations!"},
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
    "types": (("first_member", "members", "members"),),
}
"""Fields (first, count) that name a run of rows of another table."""

NODE_TABLE = {NodeKind.OP: "ops", NodeKind.PHI: "phis", NodeKind.BRANCH: "blocks"}
CAUSES_IN_OPS = (CauseKind.LOAD, CauseKind.CALL, CauseKind.BEFORE, CauseKind.BEHIND)


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
    for unit in units:
        _check_strings(unit)
    tables = {name: _Linked(name, units, starts).rows for name in DTYPES if name not in BYTES}
    strings = b"".join(unit.tables["strings"]["byte"].tobytes() for unit in units) or b"\0"
    return tables, strings, starts


def _check_strings(unit: UnitLike) -> None:
    data = unit.tables["strings"]["byte"]
    if len(data) == 0 or data[0] != 0 or data[-1] != 0:
        _refuse(unit, "strings", "byte")


class _Linked:
    """One table of all units, `rows`; every reference in it is checked and made global."""

    def __init__(self, name: str, units: Sequence[UnitLike], starts: Mapping[str, NDArray[np.int64]]) -> None:
        self.name = name
        self.units = units
        self.starts = starts
        self.rows = _joined([unit.tables[name] for unit in units], DTYPES[name])
        self.unit = np.repeat(np.arange(len(units)), np.diff(starts[name]))  # of each row
        self._rebase()

    def _shift(self, field: str, table: str, chosen: NDArray[np.bool_]) -> None:
        """Make a field of the chosen rows, which refers to `table`, global."""
        values, unit = self.rows[field][chosen], self.unit[chosen]
        self._check(field, unit, values >= np.diff(self.starts[table])[unit])
        self.rows[field][chosen] = values + self.starts[table][unit].astype(np.uint32)

    def _check(self, field: str, unit: NDArray[np.int64], is_bad: NDArray[np.bool_]) -> None:
        """Refuse the first of these rows, of these units, that is bad."""
        if bool(is_bad.any()):
            _refuse(self.units[int(unit[np.argmax(is_bad)])], self.name, field)

    def _check_kinds(self, field: str, kinds: Iterable[int]) -> None:
        self._check(field, self.unit, ~np.isin(self.rows[field], [int(kind) for kind in kinds]))

    def _rebase(self) -> None:
        name, rows = self.name, self.rows
        for field in STRINGS.get(name, ()):
            self._shift(field, "strings", rows[field] != 0)
        for field, target in REFERENCES.get(name, {}).items():
            chosen = np.full(len(rows), True) if target.endswith("!") else rows[field] != NONE
            self._shift(field, target.rstrip("!"), chosen)
        for first, count, table in RANGES.get(name, ()):
            used = rows[count] > 0
            behind, unit = rows[first].astype(np.int64)[used] + rows[count][used], self.unit[used]
            self._check(first, unit, behind > np.diff(self.starts[table])[unit])
            rows[first][~used] = 0
            rows[first][used] += self.starts[table][unit].astype(np.uint32)
        special = {
            "ops": self._ops,
            "edges": self._edges,
            "causes": self._causes,
            "update_parts": self._parts,
            "loop_fates": self._fates,
            "types": self._types,
            "typed": self._typed,
        }
        if name in special:
            special[name]()

    def _ops(self) -> None:
        call = self.rows["kind"] == OpKind.CALL
        self._shift("base", "calls", call)
        self._shift("base", "globals", ~call & (self.rows["base_kind"] == Base.GLOBAL))
        self._shift("base", "ops", ~call & (self.rows["base_kind"] == Base.STACK))

    def _edges(self) -> None:
        for end in ("from", "to"):
            for kind, table in NODE_TABLE.items():
                self._shift(end, table, self.rows[end + "_kind"] == kind)
            self._check_kinds(end + "_kind", NODE_TABLE)
        self._check_kinds("kind", EdgeKind)

    def _causes(self) -> None:
        of, kind = self.rows["of_kind"], self.rows["kind"]
        self._shift("of", "loop_exits", of == CauseOf.EXIT)
        self._shift("of", "phis", of == CauseOf.PHI)
        self._shift("index", "ops", np.isin(kind, CAUSES_IN_OPS))
        self._shift("index", "phis", kind == CauseKind.PHI)
        self._check_kinds("of_kind", CauseOf)
        self._check_kinds("kind", CauseKind)

    def _fates(self) -> None:
        self._check_kinds("fate", LoopFate)

    def _types(self) -> None:
        self._check_kinds("kind", StructureKind)

    def _typed(self) -> None:
        kind = self.rows["of_kind"]
        self._shift("of", "ops", kind == TypedKind.OP)
        self._shift("of", "globals", kind == TypedKind.GLOBAL)
        self._check_kinds("of_kind", TypedKind)

    def _parts(self) -> None:
        is_decision = self.rows["kind"] == PartKind.DECISION
        self._shift("index", "ops", ~is_decision)
        self._shift("index", "blocks", is_decision)
        self._check_kinds("kind", PartKind)


def _joined(tables: Sequence[Rows], dtype: np.dtype[Any]) -> Rows:
    """The rows of all tables, with the fields that this version knows."""
    if all(table.dtype is dtype or table.dtype == dtype for table in tables):
        # np.concatenate takes five times as long: it goes from field to field.
        return np.frombuffer(bytearray().join([table.data for table in tables]), dtype)
    rows, first = np.zeros(sum(map(len, tables)), dtype), 0
    for table in tables:
        own = rows[first : first + len(table)]
        for field in dtype.names or ():
            if field in (table.dtype.names or ()):
                own[field] = table[field]
        first += len(table)
    return rows


def _refuse(unit: UnitLike, table: str, field: str) -> None:
    raise TracekitError(
        f"The trace's image tables are damaged: unit {unit.hash}, table {table}, field {field}. Record it again."
    )
