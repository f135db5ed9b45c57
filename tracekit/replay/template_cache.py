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
        made = templates.make_templates(self.program, tables, self.keep, new, values=self.values)
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
        tables.templates[new] = made.rows
        return tables._replace(**larger)
