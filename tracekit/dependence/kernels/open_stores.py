"""Stores of a segment of the trace to what was perhaps loaded before it, and not stored since.

Who loaded the bytes, the segment does not know: it notes each such store and where it *stands*, and the dependences are
found when the segments before are known (seams.py). A byte has one such store in a segment at most.

A source before the segment can share no levels with such a store but those that were open when the segment began and
have not gone on since. Of these the clocks at which invocations and iterations began, and by which recursion each is
left (activations.py), are all that is needed to tell how the two lie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import USED, Arena, take
from tracekit.containers.kernels.initial_pages import OPEN
from tracekit.containers.kernels.shadow import changing, parts_of
from tracekit.contexts.kernels.activations import activations_since, recursion_of
from tracekit.contexts.kernels.levels import last_begun, shared_from
from tracekit.contexts.kernels.streams import DEPTH, LEAF_LEVEL, LEVELS, NEVER
from tracekit.dependence.kernels.executions import INSTRUCTION
from tracekit.dependence.kernels.sharding import ADDRESS, ELSEWHERE, HERE, MAY_BE_SHARED, STORES, TIME
from tracekit.jit.kernel import inlined, kernel

OPEN_STORE = np.dtype(
    [
        ("start", "<i8"),  # its bytes, those of them
        ("end", "<i8"),
        ("stream", "<i8"),
        ("access", "<i8"),
        ("execution", "<i8"),
        ("time", "<i8"),
        ("identity", "<i8"),  # of the object
        ("stand", "<i8"),
        ("iteration", "<i8"),  # the present one of the loop that has gone on, if one has
        ("is_alone", "<i8"),  # 1: of this execution the segment itself finds no dependence on a load
    ]
)
STAND = np.dtype(
    [
        ("first", "<i8"),  # of its rows of KEPT_LEVEL
        ("places", "<i8"),  # up to here `begun` is as it was when the segment began (levels.py, `last_begun`)
        ("leaf", "<i8"),  # the number of the open recursion leaf, if it was open then, or -1
        ("depth", "<i8"),  # the depth in it
    ]
)
KEPT_LEVEL = np.dtype(
    [
        ("level", "<i8"),  # its number
        ("invocation", "<i8"),  # the clocks at which its invocation and its iteration began; NEVER: it has gone on
        ("iteration", "<i8"),
        ("node", "<i4"),  # of the activation that carries what lies in this iteration, or -1
        ("distance", "<i4"),  # over so many activations
    ]
)
"""A telling level that was open when the segment began, and is so still."""


class OpenStores(NamedTuple):
    """What a segment notes."""

    stores: Arena  # OPEN_STORE
    stands: Arena  # STAND
    levels: Arena  # KEPT_LEVEL
    began: NDArray[np.int64]  # [stream]: its clock when the segment began
    last: NDArray[np.int64]  # [stream]: its last stand


@inlined
def note_open(state: Any, opened: Any, levels: Any, access: Any, given: Any, now: Any, identity: Any) -> None:
    """Before a store: note it, if it is to bytes that may have been loaded before the segment."""
    if opened is not None:  # Numba compiles it for segments alone
        some_open = False
        for row in changing(state.memory, given.address, given.size):
            some_open |= state.memory.rows[row].store & np.uint32(OPEN) != 0
        if some_open:
            _note_open(
                state, opened, levels, access, given.address, given.size, given.stream, given.time, now, identity
            )


@inlined
def come_to(state: Any, opened: Any, row: Any, address: Any) -> Any:
    """A store comes to a row, whose bytes begin at `address`; returns where those of the next one begin."""
    if opened is not None:
        state.shared.control[ADDRESS] = address
        address += 8 >> parts_of(state.memory, row)
    return address


@kernel
def _note_open(
    state: Any,
    opened: OpenStores,
    levels: Any,
    access: Any,
    address: Any,
    size: Any,
    stream: Any,
    time: Any,
    now: Any,
    identity: Any,
) -> None:
    start = at = np.int64(address)  # of what is open, if was_open
    was_open = False
    is_alone = state.runs.control[INSTRUCTION] == 0
    first = opened.stores.control[USED]
    for row in changing(state.memory, address, size):
        is_open = state.memory.rows[row].store & np.uint32(OPEN) != 0
        is_alone &= state.memory.rows[row].reader == 0
        if is_open and not was_open:
            start = at
        elif was_open and not is_open:
            _note(opened, levels, start, at, stream, access, now, time, identity)
        was_open = is_open
        at += 8 >> parts_of(state.memory, row)
    if was_open:
        _note(opened, levels, start, at, stream, access, now, time, identity)
    if is_alone:
        for noted in range(first, opened.stores.control[USED]):
            opened.stores.rows[noted].is_alone = 1
    else:
        control = state.shared.control
        control[MAY_BE_SHARED] = 1
        control[TIME] = time
        control[STORES] |= HERE | ELSEWHERE


@kernel
def _note(
    opened: OpenStores,
    levels: Any,
    start: Any,
    end: Any,
    stream: Any,
    access: Any,
    execution: Any,
    time: Any,
    identity: Any,
) -> None:
    """Note that a store has the open bytes start .. end - 1."""
    noted = opened.stores.rows[take(opened.stores, 1)]
    noted.start = start
    noted.end = end
    noted.stream = stream
    noted.access = access
    noted.execution = execution
    noted.time = time
    noted.identity = identity
    places = last_begun(levels.begun, levels.control, opened.began[stream])
    noted.stand = _stand(opened, levels, stream, places)
    noted.is_alone = 0
    noted.iteration = 0
    if places & 1 != 0:
        noted.iteration = levels.levels[levels.telling[places >> 1].level].iteration


@kernel
def _stand(opened: OpenStores, levels: Any, stream: Any, places: Any) -> int:
    """The row of the present stand of a stream: the last one, if it is the same."""
    leaf, depth = np.int64(levels.control[LEAF_LEVEL]), np.int64(levels.control[DEPTH])
    if not 0 <= leaf < levels.control[LEVELS] or levels.levels[leaf].invocation > opened.began[stream]:
        leaf, depth = np.int64(-1), np.int64(0)
    count = (places + 1) >> 1
    first = np.int64(take(opened.levels, max(count, np.int64(1))))
    for number in range(count):
        kept = opened.levels.rows[first + number]
        kept.level = levels.telling[number].level
        kept.invocation = levels.begun[2 * number + 1]
        kept.iteration = NEVER
        kept.node = -1
        kept.distance = 0
        if 2 * number + 2 <= places:
            kept.iteration = levels.begun[2 * number + 2]
            carrier = np.int64(recursion_of(levels, shared_from(levels, 2 * number + 2)))
            if carrier >= 0:
                kept.node = levels.levels[carrier].node
                kept.distance = activations_since(levels, carrier)
    last = opened.last[stream]
    if last != 0 and _is_same(opened, opened.stands.rows[last], places, leaf, depth, first, count):
        opened.levels.control[USED] = first  # they are not needed
        return int(last)
    row = np.int64(take(opened.stands, 1))
    stand = opened.stands.rows[row]
    stand.first = first
    stand.places = places
    stand.leaf = leaf
    stand.depth = depth
    opened.last[stream] = row
    return int(row)


@kernel
def _is_same(opened: OpenStores, last: Any, places: Any, leaf: Any, depth: Any, first: Any, count: Any) -> bool:
    if last.places != places or last.leaf != leaf or last.depth != depth:
        return False
    for number in range(count):
        one, other = opened.levels.rows[first + number], opened.levels.rows[last.first + number]
        if one.level != other.level or one.node != other.node or one.distance != other.distance:
            return False
    return True
