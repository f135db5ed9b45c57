"""How a dependence lay the last time: what the next access of a loop finds most often lies in the same way.

A *way* remembers the dependence, and between which stamps a source lies as its last one did, over a distance that is
known: such a dependence is counted without a look at the open levels (loop_accesses.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.iterations import is_steady
from tracekit.contexts.kernels.levels import began_at
from tracekit.contexts.kernels.streams import CHAIN, CLOCK, RUNS, TELLING
from tracekit.dependence.kernels.load_history import ACCESS_BITS, GROWN_BITS
from tracekit.jit.kernel import inlined

WAY = np.dtype(
    [
        ("source", "<i8"),  # the access; 0: nothing is known
        ("row", "<i8"),  # of the dependence
        ("begun", "<i8"),  # the place in `Stream.begun` that it lies at
        ("low", "<i8"),  # a source lies so whose stamp is from here
        ("high", "<i8"),  # to before here,
        ("moves", "<i8"),  # less the clock if this is -1, and not if it is 0
    ]
)
# The ways: what is found in a row of shadow memory (load_history.py).
STORE = 0
READER = 1
LATEST = 2
EARLIEST = 3
INTERVAL = 4  # of this only the stamps: what lies between them is of one interval
LISTED = 5  # and the next ones: the first entries of the list
MOST_LISTED = 8
WAYS = LISTED + MOST_LISTED
"""How many there are."""


@inlined
def again(state: Any, detail: Any, number: Any, source: Any, stamp: Any, clock: Any, now: Any, identity: Any) -> Any:
    """Count a dependence if it lies as the last one of this way did; whether it does."""
    way = state.ways[np.uint64(number)]
    place = stamp - (clock & way.moves)
    if np.int64(source) != way.source or place < way.low or place >= way.high:
        return False
    dependence = state.relations.dependences.rows[np.uint64(way.row)]
    if np.int64(dependence.begun) != way.begun:  # it lay in another way since
        return False
    if dependence.execution != now:
        if detail.profile and dependence.identity != identity + 1:
            return False
        dependence.execution = now
        dependence.count += 1
        dependence.carried += dependence.level != 0
    return True


@inlined
def found_again(state: Any, detail: Any, row: Any, clock: Any, now: Any, identity: Any) -> Any:
    """Count all dependences of a store on what is known of a row; False if one of them has to go the long way.

    Those that were counted before it are not counted twice there: the execution is the same.
    """
    known, loads = state.memory.rows[row], state.readers.rows
    source = np.int64(known.store) & ACCESS_BITS
    if detail.waw and source != 0 and not again(state, detail, STORE, source, known.stamp, clock, now, identity):
        return False
    if detail.war and known.reader != 0:
        if not again(state, detail, READER, known.reader, known.loaded, clock, now, identity):
            return False
        if known.pair != 0:
            if not again(state, detail, LATEST, known.pair, known.latest, clock, now, identity):
                return False
            if known.latest != known.earliest and not again(
                state, detail, EARLIEST, known.pair, known.earliest, clock, now, identity
            ):
                return False
            entry, number = np.int64(known.before), np.int64(LISTED)
            while entry != 0:
                load = loads[np.uint64(entry)]
                if number == WAYS or not again(
                    state, detail, number, load.access, load.when >> GROWN_BITS, clock, now, identity
                ):
                    return False
                entry = np.int64(load.before)
                number += 1
    return True


@inlined
def remember(way: Any, dependences: Any, levels: Any, source: Any, row: Any) -> None:
    """Remember how a dependence lies that was just entered, if that can be told without the open levels."""
    dependence, control = dependences[np.uint64(row)], levels.control
    way.source = 0
    if control[CHAIN] <= 0 or np.int64(dependence.chain) != control[CHAIN]:
        return
    place, last = np.int64(dependence.begun), 2 * control[TELLING]
    low, high = levels.begun[np.uint64(place)], levels.begun[np.uint64(place + 1)]
    way.moves = 0
    if place == last:  # in the present iteration
        way.moves = -1
        low, high = np.int64(0), np.int64(1)
    elif place == last - 1:  # in an earlier one of the innermost loop
        if not is_steady(levels):
            return
        way.moves = -1
        steady = levels.runs[np.uint64(control[RUNS] - 1)].start
        low, high = max(low, steady) - control[CLOCK], np.int64(0)
    if dependence.level != 0 and place & 1 != 0:
        if way.moves != 0:
            low, high = max(low, -dependence.greatest), min(high, 1 - dependence.least)
        else:
            level = levels.telling[np.uint64(place >> 1)].level
            iteration = levels.levels[np.uint64(level)].iteration
            low = max(low, began_at(levels, level, iteration - dependence.greatest))
            high = min(high, began_at(levels, level, iteration - dependence.least + 1))
    way.source, way.row, way.begun, way.low, way.high = source, row, place, low, high
