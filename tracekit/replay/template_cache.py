"""The path templates of a replay: made when the kernel has met their paths often enough, for most never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.replay import templates
from tracekit.replay.kernels import layouts

if TYPE_CHECKING:
    from tracekit.program.program import Program

PARTS = {
    "template_events": layouts.TEMPLATE_EVENT_GROUP,
    "strides": layouts.STRIDES,
    "dynamic_steps": layouts.DYNAMIC_STEP,
    "defines": layouts.DEFINE,
    "changes": layouts.CHANGE,
}
"""The tables that templates share."""
POINTERS = (
    ("rows", "first_template_event", "template_events"),
    ("dynamic_steps", "first_template_event", "template_events"),
    ("rows", "first_dynamic_step", "dynamic_steps"),
    ("rows", "first_define", "defines"),
    ("rows", "first_change", "changes"),
)
"""Their columns (part of Templates, name) that count the rows of a table."""


def none_yet(program: Program) -> dict[str, Any]:
    """The tables of templates before any is made."""
    unknown = np.zeros(max(len(program.path_row), FIRST_PATH), layouts.TEMPLATE)
    unknown["room"] = layouts.NEVER
    unknown["flags"][np.flatnonzero(program.path_row != NONE)] = layouts.TEMPLATE_UNKNOWN
    return {"templates": unknown, **{name: np.zeros(256, dtype) for name, dtype in PARTS.items()}}


class TemplateCache:
    """Adds templates to the tables of a replay; with `values` none for paths that move wide ones."""

    def __init__(self, program: Program, keep: NDArray[np.uint8], *, values: bool) -> None:
        self.program, self.keep, self.values = program, keep, values
        self.used = dict.fromkeys(PARTS, 0)

    def add(self, tables: layouts.Tables, ids: NDArray[np.uint32]) -> layouts.Tables:
        """Make the templates of those paths among `ids` that are new; returns the tables to go on with."""
        new = np.unique(ids[ids < len(tables.templates)])
        new = new[tables.templates["flags"][new] & layouts.TEMPLATE_UNKNOWN != 0].astype(np.int64)
        if not len(new):
            return tables
        made, tables = self._made(tables, new)
        tables.templates[new] = made.rows
        return tables

    def add_runs(
        self, tables: layouts.Tables, ids: NDArray[np.uint32]
    ) -> tuple[layouts.Tables, Any, NDArray[np.int64]]:
        """Make the templates of those paths among `ids` that are runs, for compiled paths.

        Returns the tables to go on with, the rows of the templates (layouts.TEMPLATE), and beside them the record ids.
        """
        runs = np.unique(ids[ids < len(tables.paths)]).astype(np.int64)
        runs = runs[tables.paths["run"][runs] != 0]
        if not len(runs):
            return tables, np.zeros(0, layouts.TEMPLATE), runs
        made, tables = self._made(tables, runs, runs_only=True)
        return tables, made.rows, runs

    def _made(
        self, tables: layouts.Tables, numbers: NDArray[np.int64], runs_only: bool = False
    ) -> tuple[templates.Templates, layouts.Tables]:
        """The templates of these paths, and the tables with what templates share."""
        made = templates.make_templates(
            self.program, tables, self.keep, numbers, values=self.values, runs_only=runs_only
        )
        for part, column, counted in POINTERS:
            getattr(made, part)[column] += self.used[counted]
        larger = {}
        for name in PARTS:
            table, added = getattr(tables, name), getattr(made, name)
            used = self.used[name]
            self.used[name] = used + len(added)
            if self.used[name] > len(table):
                table = np.zeros(2 * self.used[name], table.dtype)
                table[:used] = getattr(tables, name)[:used]
            table[used : self.used[name]] = added
            larger[name] = table
        return made, tables._replace(**larger)
