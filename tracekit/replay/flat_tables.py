"""The flat paths of a replay: flattened when the kernel has met them often enough, for most paths never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.replay import flat_paths
from tracekit.replay.kernels import state

if TYPE_CHECKING:
    from tracekit.replay.program import Program

PARTS = {"moves": state.MOVES, "strides": state.STRIDES, "specials": state.SPECIAL, "defines": state.DEFINE,
         "changes": state.CHANGE}
"""The tables that flat paths share."""
POINTERS = (("rows", "first_move", "moves"), ("specials", "first_move", "moves"), ("rows", "first_special", "specials"),
            ("rows", "first_define", "defines"), ("rows", "first_change", "changes"))
"""Their columns (part of Flat, name) that count the rows of a table."""


def none_yet(program: Program) -> dict[str, Any]:
    """The tables of flat paths before any is flattened."""
    flat = np.zeros(max(len(program.path_row), FIRST_PATH), state.FLAT)
    flat["room"] = state.NEVER
    flat["flags"][np.flatnonzero(program.path_row != NONE)] = state.FLAT_UNKNOWN
    return {"flat": flat, **{name: np.zeros(256, dtype) for name, dtype in PARTS.items()}}


class FlatTables:
    """Adds flat paths to the tables of a replay; with `values` none that moves wide ones, which are not flat."""

    def __init__(self, program: Program, keep: NDArray[np.uint8], *, values: bool) -> None:
        self.program, self.keep, self.values = program, keep, values
        self.used = dict.fromkeys(PARTS, 0)

    def add(self, tables: state.Tables, ids: NDArray[np.uint32]) -> state.Tables:
        """Flatten the paths among `ids` that were not looked at yet; returns the tables to go on with."""
        new = np.unique(ids[ids < len(tables.flat)])
        new = new[tables.flat["flags"][new] & state.FLAT_UNKNOWN != 0].astype(np.int64)
        found = flat_paths.flatten(self.program, tables, self.keep, new, values=self.values)
        for part, column, counted in POINTERS:
            getattr(found, part)[column] += self.used[counted]
        larger = {}
        for name in PARTS:
            table, added = getattr(tables, name), getattr(found, name)
            used = self.used[name]
            self.used[name] = used + len(added)
            if self.used[name] > len(table):
                table = np.zeros(2 * self.used[name], table.dtype)
                table[:used] = getattr(tables, name)[:used]
            table[used : self.used[name]] = added
            larger[name] = table
        tables.flat[new] = found.rows
        return tables._replace(**larger)
