"""Where work lies: counts of paths as work of functions and of source lines."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.formats.image import LOADS, STORES
from tracekit.program.nearest import Nearest
from tracekit.program.program import Program
from tracekit.program.validation import runs

I8 = NDArray[np.int64]


class Places:
    """Answers for one program. A *site* is what has work: a block if that is counted in blocks, else an operation."""

    def __init__(self, program: Program, measure: str) -> None:
        self.program = program
        owner = np.repeat(np.arange(len(program.blocks)), program.blocks["ops"].astype(np.int64))
        if measure == "blocks":
            self._block = np.arange(len(program.blocks))
            self._weight = np.ones(len(program.blocks), np.int64)
        else:
            kinds = program.ops["kind"]
            self._block = owner
            self._weight = np.isin(kinds, LOADS).astype(np.int64) + np.isin(kinds, STORES)
            size = program.ops["size"].astype(np.int64)
            self._weight *= size if measure == "bytes" else size != 0
        self._of_ops = measure != "blocks"

    @cached_property
    def function_of_record(self) -> NDArray[np.uint32]:
        """By record id: the function that a path lies in, NONE of other ids."""
        program = self.program
        found = np.full(len(program.path_row), NONE, np.uint32)
        used = np.flatnonzero(program.path_row != NONE)
        starts = program.paths["first"][program.path_row[used]]
        found[used] = program.blocks["function"][program.path_blocks["block"][starts]]
        return found

    def by_site(self, counts: I8) -> I8:
        """Work by site; `counts`: how often each path ran, by record id."""
        program = self.program
        used = np.flatnonzero((program.path_row != NONE) & (counts[: len(program.path_row)] != 0))
        rows = program.path_row[used]
        members = program.path_blocks["block"][runs(program.paths["first"][rows], program.paths["blocks"][rows])]
        ran = np.zeros(len(program.blocks), np.int64)
        np.add.at(ran, members, np.repeat(counts[used], program.paths["blocks"][rows].astype(np.int64)))
        return ran[self._block] * self._weight

    def function_of_site(self) -> NDArray[np.uint32]:
        """By site: its function."""
        functions: NDArray[np.uint32] = self.program.blocks["function"][self._block]
        return functions

    def line_of(self, site: int) -> tuple[str, str, int]:
        """Function, file and line that a site stands in; of inlined code those of its own text."""
        program = self.program
        operation = site
        if not self._of_ops:
            operation = int(program.blocks["first_op"][site])
            if not program.blocks["ops"][site]:
                location = int(program.blocks["location"][site])
                if not self._nearest.has_line(location):
                    location = self._nearest.to_block(site)
                place = program.place(location)
                return program.function_name(int(program.blocks["function"][site])), place["file"], place["line"]
        row = program.instruction(operation)
        return row["function"], row["file"], row["line"]

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self.program)
