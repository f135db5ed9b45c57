"""Dependences between threads, and tasks of OpenMP: one history of each byte for all of them.

A row of shadow memory has the last store of its bytes, and the set of loads since, each as an *end*: an instruction, in
a context where these are told apart, and who ran it (agents.py). Sets are made once and shared: a set is the row of
(another set, the greatest end in it), so that the loads of an array take a row for each combination that there is, not
for each element. Which loop carries a dependence is not asked: no thread has the iterations of another one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.hash_table import HashTable, find_or_make, row_of
from tracekit.containers.kernels.shadow import Shadow, changing, writing
from tracekit.contexts.kernels.roles import Roles
from tracekit.dependence.kernels.agents import Agents, agent_of
from tracekit.dependence.kernels.dependence_table import END_BITS, RAW, WAR, WAW
from tracekit.formats.events import NONE
from tracekit.jit.kernel import inlined, kernel

CELL = np.dtype([("store", "<u4"), ("loads", "<u4")])
"""The last store of bytes (row of ends), and the loads since (row of sets); 0 if there is none."""
SET_FIELDS = [("united", "<u4")]
"""Of a set and an end: the set of both, which is the row itself if that is the form in which the set is kept."""
FOUND_FIELDS = [("count", "<i8"), ("execution", "<i8")]
"""Of a dependence: executions of its destination that had it, and the last of them."""
RECENT = np.dtype(
    [
        ("context", "<i8"),  # in which it ran last
        ("agent", "<i8"),
        ("end", "<i8"),  # that this is; 0: it has not run
        ("source", "<i8"),  # an end that it was compared with last
        ("foreign", "<i8"),  # 1 if that is another agent's
        ("loads", "<i8"),  # a set that it was added to last, plus 1
        ("united", "<i8"),  # and what came of it
    ]
)
"""What is known of an instruction; most of its accesses meet what the one before has met."""


class InterThread(NamedTuple):
    """What all threads did to each byte, and what was found."""

    memory: Shadow  # CELL
    places: HashTable  # instruction << 32 | context
    ends: HashTable  # agent << 32 | row of places
    recent: NDArray[Any]  # RECENT by instruction
    sets: HashTable  # SET_FIELDS by set << 32 | end
    above: NDArray[np.uint32]  # ends, while a set is made
    found: HashTable  # FOUND_FIELDS by kind << 60 | source << 30 | destination, which are ends
    roles: Roles  # by agent
    agents: Agents


@inlined
def loaded(state: Any, detail: Any, context: Any, access: Any, execution: Any) -> None:
    """A load, the `execution` of an instruction in a context."""
    recent = _recent(state, access.instruction, context, agent_of(state.agents, access.stream))
    for row in changing(state.memory, access.address, access.size):
        cell = state.memory.rows[row]
        if detail.raw:
            _depends(state, RAW, np.int64(cell.store), recent, execution)
        if detail.war:
            loads = np.int64(cell.loads)
            if recent.loads != loads + 1:
                recent.loads = loads + 1
                recent.united = _united(state.sets, state.above, loads, np.int64(recent.end))
            if recent.united != loads:
                cell.loads = recent.united


@inlined
def stored(state: Any, detail: Any, context: Any, access: Any, execution: Any) -> None:
    """A store."""
    recent = _recent(state, access.instruction, context, agent_of(state.agents, access.stream))
    end = np.int64(recent.end)
    is_divided = False
    for row in changing(state.memory, access.address, access.size):
        cell = state.memory.rows[row]
        if detail.waw:
            _depends(state, WAW, np.int64(cell.store), recent, execution)
        loads = np.int64(cell.loads)
        while loads != 0:
            key = state.sets.rows[loads].key
            _depends(state, WAR, np.int64(key & np.uint64(NONE)), recent, execution)
            loads = np.int64(key >> np.uint64(32))
        cell.store = end
        cell.loads = 0
        is_divided |= row >= np.uint64(2 * state.memory.granules.size)
    if is_divided:  # words that are covered become whole
        for row in writing(state.memory, access.address, access.size):
            state.memory.rows[row].store = end
            state.memory.rows[row].loads = 0


@inlined
def forgotten(state: Any, address: Any, size: Any) -> None:
    """Memory that begins or ends has no history."""
    clear(state.memory, address, size)


@inlined
def _recent(state: Any, instruction: Any, context: Any, agent: Any) -> Any:
    """What is known of an access's instruction (RECENT), of which the present end is set; instructions beyond the
    program's count as the one behind its last.
    """
    known = np.uint64(min(instruction, state.recent.size - 1))
    recent = state.recent[known]
    if recent.end == 0 or recent.agent != agent or recent.context != context:
        recent.context = context
        recent.agent = agent
        recent.end = _find_end(state.places, state.ends, np.int64(known), context, agent)
        recent.source = 0
        recent.loads = 0
    return recent


@kernel
def _find_end(places: HashTable, ends: HashTable, instruction: Any, context: Any, agent: Any) -> int:
    place = np.int64(row_of(places, (instruction << 32) | context))
    return int(row_of(ends, (agent << 32) | place))


@inlined
def _depends(state: Any, kind: Any, source: Any, recent: Any, execution: Any) -> None:
    """A byte of an access depends on an earlier one, if that is another thread's."""
    if source != 0:
        if recent.source != source:
            recent.source = source
            recent.foreign = np.int64(np.int64(state.ends.rows[source].key >> np.uint64(32)) != recent.agent)
        if recent.foreign:
            _count(state.found, (kind << (2 * END_BITS)) | (source << END_BITS) | np.int64(recent.end), execution)


@kernel
def _count(found: HashTable, key: Any, execution: Any) -> None:
    dependence = found.rows[row_of(found, key)]
    dependence.count += np.int64(dependence.execution != execution)
    dependence.execution = execution


@inlined
def _united(sets: Any, above: Any, loads: Any, end: Any) -> Any:
    """The set of `loads` and `end`."""
    row, is_new = find_or_make(sets, (np.uint64(loads) << np.uint64(32)) | np.uint64(end))
    if is_new:
        sets.rows[row].united = _unite(sets, above, loads, end, row)
    return np.int64(sets.rows[row].united)


@kernel
def _unite(sets: HashTable, above: Any, loads: Any, end: Any, row: Any) -> int:
    """The same when it was not asked for before; `row` is that of both. A set is kept with its ends ascending.

    An end that is in there twice, because there are more than `above` has room for, does no harm.
    """
    greater, below = 0, np.int64(loads)
    while below != 0 and np.int64(sets.rows[below].key & np.uint64(NONE)) > end:
        greater += 1
        below = np.int64(sets.rows[below].key >> np.uint64(32))
    if below != 0 and np.int64(sets.rows[below].key & np.uint64(NONE)) == end:
        return int(loads)
    if greater == 0 or greater > above.size:
        return int(row)
    other = np.int64(loads)
    for place in range(greater - 1, -1, -1):
        above[place] = sets.rows[other].key & np.uint64(NONE)
        other = np.int64(sets.rows[other].key >> np.uint64(32))
    made = np.int64(_kept(sets, below, np.int64(end)))
    for place in range(greater):
        made = np.int64(_kept(sets, made, np.int64(above[place])))
    return int(made)


@kernel
def _kept(sets: HashTable, below: Any, end: Any) -> int:
    """The row of a set whose greatest end is `end`, kept."""
    row = np.int64(row_of(sets, (np.uint64(below) << np.uint64(32)) | np.uint64(end)))
    sets.rows[row].united = row
    return int(row)
