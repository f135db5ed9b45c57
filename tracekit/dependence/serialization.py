"""How states of the dependence family are taken to other processes: of tables beside tables what is in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.kernels.arena import USED
from tracekit.containers.serialization import Reduced, register_reducer
from tracekit.dependence.kernels import load_history
from tracekit.dependence.kernels.dependence_table import DependenceTable
from tracekit.dependence.kernels.load_history import LoadHistory


def _of_loads(loads: LoadHistory) -> Reduced:
    """What is in use of the log; what is noted while lists are merged serves no more."""
    used = loads.rows[load_history.first_entry(loads) : loads.control[USED]].copy()
    return _loads, (used, loads.control, len(loads.rows), len(loads.seen))


def _loads(used: NDArray[Any], control: NDArray[np.int64], entries: int, accesses: int) -> LoadHistory:
    loads = LoadHistory(
        arena.reserve(load_history.LOAD, entries),
        control,
        arena.reserve(load_history.SEEN, accesses),
        np.zeros(2 * load_history.WAYS, np.int64),
    )
    first = load_history.first_entry(loads)
    loads.rows[first : first + len(used)] = used
    return loads


def _of_relations(relations: DependenceTable) -> Reduced:
    """All its tables; of those beside others as many rows as these have."""
    lying = relations.lying[: relations.dependences.control[USED]].copy()
    tallies = relations.tallies[: relations.levels.control[USED]].copy()
    return _relations, ({**relations._asdict(), "lying": lying, "tallies": tallies},)


def _relations(tables: dict[str, Any]) -> DependenceTable:
    beside = {"lying": "dependences", "tallies": "levels"}
    reserved = {name: _beside(tables[name], len(tables[other].rows)) for name, other in beside.items()}
    return DependenceTable(**{**tables, **reserved})


def _beside(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """The rows, with room for so many."""
    made = arena.reserve(rows.dtype, most)
    made[: len(rows)] = rows
    return made


register_reducer(LoadHistory, _of_loads)
register_reducer(DependenceTable, _of_relations)
