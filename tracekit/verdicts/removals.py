"""What transformations come to at all loops of a profile at once: those to apply, and what is carried in spite of them.

A profile may have thousands of loops with a handful of dependences each: each step goes over the rows of all
(:class:`Levels`), as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices
from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag
from tracekit.verdicts.transformations import Transformation

if TYPE_CHECKING:
    from tracekit.dependence.profile import DependenceProfile
    from tracekit.verdicts.counters import Counters
    from tracekit.verdicts.levels import Levels
    from tracekit.verdicts.loop_facts import LoopFacts
    from tracekit.verdicts.transformations import Privates

Bools = npt.NDArray[np.bool_]


class Removals:
    """Of the loops at some nodes of a profile.

    `left`: per row of the levels, is the dependence carried whatever is done? `counting`: node -> loads of the loop's
    counter, of which it is known ahead what they return.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        profile: DependenceProfile,
        levels: Levels,
        facts: LoopFacts,
        privates: Privates,
        counters: Counters,
    ) -> None:
        self._loop = profile.nodes["loop"].astype(np.int64)
        self._levels = levels
        self._facts = facts
        self._privates = privates
        self._steps: dict[int, set[Transformation]] = {}
        self.counting: dict[int, frozenset[int]] = {}
        judged = np.zeros(len(profile.nodes), np.bool_)
        judged[nodes] = True
        carried = judged[levels.node] & ~self._explained(nodes, counters)
        reduced = facts.updates.reductions(levels) & carried
        self._reduce(np.flatnonzero(reduced))
        removed = privates.find(levels, carried, reduced)
        self._make_private(removed, np.flatnonzero(carried & ~reduced))
        self.left: Bools = carried & ~reduced & ~removed

    def of(self, node: int) -> set[Transformation]:
        """The transformations for the loop at a node."""
        return self._steps.get(node, set()) | self._facts.reductions(int(self._loop[node]))

    def _explained(self, nodes: Sequence[int], counters: Counters) -> Bools:
        """The rows that are due to nothing but the step of a loop's counter; fills `counting`."""
        explained = np.zeros(self._levels.node.size, np.bool_)
        for node in nodes:
            loop = int(self._loop[node])
            if counters.watched(loop):
                view = self._levels.view(node)
                found = counters.explained(loop, view)
                explained[self._levels.rows(node)] = found.dependences[view.carried]
                self.counting[node] = found.loads
        return explained

    def _reduce(self, rows: Indices) -> None:
        """Note the reductions of memory that rows of the levels belong to."""
        dependences, sources = self._levels.dependence[rows].tolist(), self._levels.sources[rows].tolist()
        for node, dependence, source in zip(self._levels.node[rows].tolist(), dependences, sources):
            operator = self._facts.updates.operator_of(source)
            for thing in self._privates.objects(dependence):
                self._steps.setdefault(node, set()).add(Transformation("reduction", NONE, thing, operator))

    def _make_private(self, removed: Bools, on_it: Indices) -> None:
        """Note what becomes private; `on_it`: rows that may say that all iterations only store the same in it."""
        private = np.unique(self._privates.things(self._levels, np.flatnonzero(removed)))
        private = private[private >= 0]
        things = self._privates.things(self._levels, on_it)
        differs = np.isin(private, things[~self._stores_the_same(on_it)])
        objects = len(self._privates.profile.objects)
        for thing, other_values in zip(private.tolist(), differs.tolist()):
            node, object_row = divmod(thing, objects)
            kind = "private" if other_values else "same value"
            self._steps.setdefault(node, set()).add(Transformation(kind, NONE, object_row, 0))

    def _stores_the_same(self, rows: Indices) -> Bools:
        """Per row: does one store in the loop's own text only repeat itself, with a value from outside?"""
        ops = self._facts.program.ops
        sources, loops = self._levels.sources[rows], self._loop[self._levels.node[rows]]
        stores = np.minimum(sources, len(ops) - 1)
        same: Bools = (sources == self._levels.destinations[rows]) & (ops["flags"][stores] & OpFlag.SAME_VALUE != 0)
        return same & self._facts.graphs.op_inside(stores, loops)
