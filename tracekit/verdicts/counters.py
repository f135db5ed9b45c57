"""Loop counters in memory, which pointers may reach: the run shows that the loop's head alone assigns them.

At -O0 a counter whose address goes into a lambda's captures, or to a function of another file, is an object like any
other: its step is a store that the next iteration reads. OpenMP makes the counter of a `for` private whatever reads it,
so these dependences are none if nothing else assigns it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices
from tracekit.dependence.profile import DependenceKind
from tracekit.formats.events import NONE
from tracekit.formats.image import LoopFlag, OpFlag, OpKind, VariableFlag

if TYPE_CHECKING:
    from tracekit.program.loop_graph import LoopGraphs
    from tracekit.program.program import Program
    from tracekit.verdicts.levels import LevelView
    from tracekit.verdicts.source_variables import SourceVariables
    from tracekit.verdicts.transformations import Privates

Bools = npt.NDArray[np.bool_]

WATCHED = VariableFlag.INDUCTION | VariableFlag.WATCHED


class Explained(NamedTuple):
    """What is due to nothing but the step of a loop's counter."""

    dependences: Bools  # per dependence of the view
    loads: frozenset[int]  # the loop's own loads of the counter: they return another value in each iteration


class Counters:
    """Answers for the loops of one profile."""

    def __init__(
        self, program: Program, graphs: LoopGraphs, privates: Privates, source_variables: SourceVariables
    ) -> None:
        self.program = program
        self.graphs = graphs
        self.privates = privates
        self.source_variables = source_variables
        self._raw = privates.raw
        self._kind, self._source, self._destination = (
            privates.profile.dependences[name].astype(np.int64) for name in ("kind", "source", "destination")
        )

    def explained(self, loop: int, view: LevelView) -> Explained:
        """What the head of a loop explains of the dependences valid at it in a context (`view`)."""
        explained = np.zeros(view.dependences.size, np.bool_)
        loads: set[int] = set()
        for row in self.watched(loop):
            lists = self.privates.lists[view.dependences]
            own_loads, own_stores = self.by_name(loop, self.program.text(int(self.program.variables["name"][row])))
            is_elsewhere = int(self.program.variables["flags"][row]) & VariableFlag.ELSEWHERE
            for object_row in self._objects(row, lists):
                on_it = (lists == object_row).any(axis=1)
                stores, loads_on_it = self._ends(view.dependences[on_it])
                # A pointer from outside of the loop leads to the variable from there, not to a thread's own.
                if np.isin(stores, own_stores).all() and (not is_elsewhere or np.isin(loads_on_it, own_loads).all()):
                    explained |= on_it & ((lists != NONE).sum(axis=1) == 1)
            flows = view.dependences[self._raw[view.dependences] & ~explained]
            loads |= set(np.setdiff1d(own_loads, self._destination[flows]).tolist())
        return Explained(explained, frozenset(loads))

    def watched(self, loop: int) -> list[int]:
        """The rows of variables that are the loop's counter, if the run has to tell what assigns it: one at most."""
        return self._watched.get(loop, [])

    @cached_property
    def _watched(self) -> dict[int, list[int]]:
        variables = self.program.variables
        of_loop: dict[int, list[int]] = {}
        for row in np.flatnonzero(variables["flags"] & WATCHED == WATCHED).tolist():
            loop = int(variables["loop"][row])
            if int(self.program.loops["flags"][loop]) & LoopFlag.SOURCE:
                of_loop.setdefault(loop, []).append(row)
        return of_loop

    def _objects(self, row: int, lists: npt.NDArray[Any]) -> list[int]:
        """The objects among `lists` that are a variable."""
        rows = np.unique(lists[lists != NONE]).tolist()
        return [object_row for object_row in rows if self.source_variables.is_object(row, object_row)]

    def by_name(self, loop: int, name: str) -> tuple[Indices, Indices]:
        """The loads and the stores in the loop's text that get to the variable `name` by that name."""
        nodes = self.graphs[loop].nodes
        ops = nodes[nodes < len(self.program.ops)]
        rows = self.program.ops[ops]
        is_named = np.array([self.program.text(each) == name for each in rows["name"].tolist()], np.bool_)
        is_direct = is_named & (rows["flags"] & OpFlag.BY_POINTER == 0)
        return ops[is_direct & (rows["kind"] == OpKind.LOAD)], ops[is_direct & (rows["kind"] == OpKind.STORE)]

    def _ends(self, rows: Indices) -> tuple[Indices, Indices]:
        """The instructions that store at an end of dependences, and those that load."""
        kinds, sources, destinations = self._kind[rows], self._source[rows], self._destination[rows]
        after_write, before_write = kinds == DependenceKind.RAW, kinds == DependenceKind.WAR
        return (
            np.concatenate([sources[~before_write], destinations[~after_write]]),
            np.concatenate([sources[before_write], destinations[after_write]]),
        )
