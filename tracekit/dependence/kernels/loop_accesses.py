"""Many accesses of one instruction: those of consecutive iterations of the innermost loop, at constant distances.

Each is what dependence.py makes of it, one iteration later than the last. Nearly all of them find what the one before
them found: the same source, in the same iteration of all loops around or as many iterations ago (dependence_ways.py).
Such a dependence is counted, and the open levels are not looked at. Only for another one they are moved on to the
iteration (contexts/kernels/iterations.py), and the dependence goes the long way.

The loads of a byte are entered in the order of time, and so are its stores: whoever calls sees to that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.kernels.initial_pages import OPEN
from tracekit.containers.kernels.shadow import PAGE_BITS, WORDS, changing, page_of, writing
from tracekit.contexts.kernels.iterations import go_back, is_in_loop, iterate_often, mark_of
from tracekit.contexts.kernels.streams import CLOCK, LEAF_LEVEL, LEVELS, TELLING
from tracekit.dependence.kernels import executions as runs
from tracekit.dependence.kernels.accesses import access_in
from tracekit.dependence.kernels.dependence import (
    NO_LEVEL,
    Access,
    depends,
    enter,
    enter_store,
    identity_of,
    interrupt,
)
from tracekit.dependence.kernels.dependence_table import AS_BEFORE, RAW, WAR, WAW, expose
from tracekit.dependence.kernels.dependence_ways import (
    EARLIEST,
    INTERVAL,
    LATEST,
    LISTED,
    READER,
    STORE,
    WAYS,
    found_again,
    remember,
)
from tracekit.dependence.kernels.final_stores import by_access, has_history, is_needed
from tracekit.dependence.kernels.load_history import (
    ACCESS_BITS,
    GROWN_BITS,
    add_reader,
    collect,
    drop_readers,
    interval_of,
    read_again,
)
from tracekit.dependence.kernels.sharding import MAY_BE_SHARED, Part
from tracekit.jit.kernel import inlined, kernel
from tracekit.translation.kernels.identities import MIXED, SHARED, WHOLE, words_of_page


class Steps(NamedTuple):
    """From one access to the next, and how many there are: the fields of these names (modules/ranges.py)."""

    step: int
    times: int
    period: int


@inlined
def load_range(state: Any, detail: Any, levels: Any, context: Any, first: Any, steps: Steps) -> None:
    """Enter loads; `first`: the Access, in the present iteration of the innermost loop."""
    instruction = min(first.instruction, state.access.size - 1)
    if _is_plain(state, levels, instruction, first.stream):
        access = access_in(state, levels, instruction, context)
        _loads(state, detail, levels, access, first, steps)
    else:
        _one_by_one(state, detail, levels, context, first, steps, 0)


@inlined
def store_range(state: Any, detail: Any, levels: Any, context: Any, first: Any, steps: Steps) -> None:
    """Enter stores, as :func:`load_range` does loads."""
    instruction = min(first.instruction, state.access.size - 1)
    if _is_plain(state, levels, instruction, first.stream):
        access = access_in(state, levels, instruction, context)
        _stores(state, detail, levels, access, first, steps)
    else:
        _one_by_one(state, detail, levels, context, first, steps, 1)


@inlined
def _is_plain(state: Any, levels: Any, instruction: Any, stream: Any) -> Any:
    """Whether each access is an execution of its own, and an iteration of the innermost level takes a tick."""
    control, going_on = levels.control, state.runs.control
    if control[TELLING] == 0 or control[LEAF_LEVEL] >= 0 or going_on[runs.STREAM] != stream:
        return False
    innermost = control[LEVELS] - 1
    level = levels.levels[np.uint64(innermost)]
    return (
        going_on[runs.INSTRUCTION] == 0
        and state.runs.updating[np.uint64(instruction)] == 0
        and level.depth == 0
        and level.iteration_start == control[CLOCK]
        and levels.telling[np.uint64(control[TELLING] - 1)].level == innermost
    )


@inlined
def _access(first: Any, steps: Any, number: Any) -> Any:
    """The one that comes so many after the first."""
    return Access(
        first.instruction,
        first.address + number * steps.step,
        first.size,
        first.stream,
        first.time + number * steps.period,
    )


@kernel
def _one_by_one(state: Any, detail: Any, levels: Any, context: Any, first: Any, steps: Steps, storing: Any) -> None:
    """The same where there is no shorter way."""
    began = mark_of(levels)
    for number in range(steps.times):
        given = _access(first, steps, number)
        enter(state, detail, levels, context, given, Part(given.address, 1, 1), storing)
        interrupt(state, levels, given.stream)
        if number + 1 < steps.times:
            iterate_often(levels, 1)
    if is_in_loop(levels) and steps.times > 1:
        go_back(levels, began)


@kernel
def _loads(state: Any, detail: Any, levels: Any, access: Any, first: Any, steps: Steps) -> None:
    """Loads by `access`, each an execution of its own."""
    _begin(state, detail, access, steps)
    began, clock, reached, number = mark_of(levels), levels.control[CLOCK], np.int64(0), np.int64(0)
    exposed = np.int64(NO_LEVEL)
    while number < steps.times:
        is_exposed = exposed == 0 or detail.profile == 0
        number = np.int64(_quick_loads(state, detail, access, first, steps, number, clock, is_exposed))
        if number < steps.times:
            iterate_often(levels, number - reached)
            reached = np.int64(number)
            exposed = np.int64(_long_load(state, detail, levels, access, _access(first, steps, number), exposed))
            number += 1
    state.runs.control[runs.NUMBER] = first.time + (steps.times - 1) * steps.period + 1
    if reached > 0:
        go_back(levels, began)


@kernel
def _stores(state: Any, detail: Any, levels: Any, access: Any, first: Any, steps: Steps) -> None:
    """Stores by `access`, each an execution of its own."""
    _begin(state, detail, access, steps)
    began, clock, reached, number = mark_of(levels), levels.control[CLOCK], np.int64(0), np.int64(0)
    while number < steps.times:
        number = np.int64(_quick_stores(state, detail, access, first, steps, number, clock))
        if number < steps.times:
            iterate_often(levels, number - reached)
            reached = np.int64(number)
            _long_store(state, detail, levels, access, _access(first, steps, number))
            number += 1
    state.runs.control[runs.NUMBER] = first.time + (steps.times - 1) * steps.period + 1
    if reached > 0:
        go_back(levels, began)


# -- the short way ---------------------------------------------------------------------------------


@inlined
def _begin(state: Any, detail: Any, access: Any, steps: Any) -> None:
    """Nothing is known of how the first of the accesses lies."""
    if detail.profile:
        state.relations.accesses.rows[np.uint64(access)].count += steps.times
    state.shared.control[MAY_BE_SHARED] = 0
    for way in range(WAYS):
        state.ways[way].source = 0
    state.ways[INTERVAL].high = 0


@inlined
def _parts(address: Any, size: Any, step: Any) -> Any:
    """log2 of the parts that words are divided into by such accesses; -1 if it is not the same for all."""
    if size >= 8:
        return np.int64(0) if (address | size | step) & 7 == 0 else np.int64(-1)
    if size & (size - 1) != 0 or (address | step) & (size - 1) != 0:
        return np.int64(-1)
    return np.int64(1) if size == 4 else np.int64(2) if size == 2 else np.int64(3)


@inlined
def _row_of(memory: Any, word: Any, address: Any, parts: Any) -> Any:
    """The row of the bytes at an address in a word that is divided like this; row 0 if it is not."""
    is_so = np.int64(memory.granules[np.uint64(word)]) == parts
    return (
        np.uint64(((memory.granules.size + word) << parts) + ((address & 7) >> (3 - parts))) if is_so else np.uint64(0)
    )


@inlined
def _page_at(state: Any, detail: Any, address: Any, size: Any) -> Any:
    """The first word of a page, the first and the last address there of an access, the object, and ``words_of_page``.

    Word 0 if the page is not there, or the access goes beyond it.
    """
    identity, objects = identity_of(state, detail, address), np.int64(WHOLE)
    if detail.profile:
        objects = words_of_page(state.objects, address)
    start = (address >> PAGE_BITS) << PAGE_BITS
    last = start + (1 << PAGE_BITS) - size
    page = np.int64(page_of(state.memory, np.uint64(address) >> np.uint64(PAGE_BITS)))
    return page * WORDS if address <= last else np.int64(0), start, last, identity, objects


@inlined
def _object_at(state: Any, objects: Any, address: Any, identity: Any) -> Any:
    """The object of an address in the page that has been looked at for another one; -1 if that does not say it."""
    if objects == WHOLE:
        return identity
    if objects == MIXED:
        return np.int64(-1)
    word = np.int64(state.objects.words[np.uint64(objects + ((address >> 3) & (WORDS - 1)))])
    return word - 1 if 0 < word < SHARED else np.int64(-1)


@inlined
def _inside(address: Any, start: Any, end: Any, step: Any, most: Any) -> Any:
    """How many of `most` accesses, the first at `address`, are in start .. end before one is not."""
    if step > 0:
        return min(np.int64((end - address) // step + 1), most)
    if step < 0:
        return min(np.int64((address - start) // -step + 1), most)
    return most


@kernel
def _quick_loads(
    state: Any, detail: Any, access: Any, first: Any, steps: Steps, number: Any, clock: Any, is_exposed: Any
) -> int:
    """Enter loads from the `number`-th on as far as all goes the short way; returns which does not.

    `clock`: that of the first of all; `is_exposed`: a load of what was never stored needs nothing.
    """
    memory, interval, way, size = state.memory, state.ways[INTERVAL], state.ways[STORE], np.int64(first.size)
    dependence = state.relations.dependences.rows[np.uint64(way.row)]
    source = np.int64(way.source) if np.int64(dependence.begun) == way.begun else np.int64(-1)
    low, high, moves, known_identity = way.low, way.high, way.moves, np.int64(dependence.identity) - 1
    times, last = np.int64(0), np.int64(-1)
    address = np.int64(first.address + number * steps.step)
    parts, words = _parts(first.address, size, steps.step), (size + 7) >> 3
    goes_on = True
    while goes_on and number < steps.times:
        page, start, end, identity, objects = _page_at(state, detail, address, size)
        goes_on = page != 0 and parts >= 0
        stays = goes_on
        if detail.war and is_exposed and page == 0 and not has_history(state, address, size):
            needless = _inside(address, start, end, steps.step, steps.times - number)
            number += needless
            address += needless * steps.step
            goes_on = True
        while stays:
            word, now = page + ((address >> 3) & (WORDS - 1)), clock + number
            for behind in range(words):
                row = _row_of(memory, word + behind, address, parts)
                known = memory.rows[row]
                stored = np.int64(known.store) & ACCESS_BITS
                goes_on = row != 0
                if stored != 0:
                    place = known.stamp - (now & moves)
                    goes_on &= (stored == source) & (low <= place) & (place < high)
                    if detail.profile:
                        goes_on &= identity == known_identity
                    times += goes_on and last != number
                    last = number if goes_on else last
                else:
                    goes_on &= is_exposed
                if detail.war and goes_on and is_needed(known):
                    goes_on = read_again(state.readers, known, access, now, interval)
                if not goes_on:
                    break
            number += goes_on
            address += steps.step
            stays = goes_on and number < steps.times and start <= address <= end
            if stays and detail.profile:
                identity = _object_at(state, objects, address, identity)
                stays = identity >= 0
    if times > 0:
        dependence.execution = first.time + last * steps.period + 1
        dependence.count += times
        dependence.carried += times * (dependence.level != 0)
    return int(number)


@kernel
def _quick_stores(state: Any, detail: Any, access: Any, first: Any, steps: Steps, number: Any, clock: Any) -> int:
    """Enter stores from the `number`-th on as far as all goes the short way; returns which does not.

    `clock`: that of the first of all.
    """
    memory, size = state.memory, np.int64(first.size)
    address = np.int64(first.address + number * steps.step)
    parts, words = _parts(first.address, size, steps.step), (size + 7) >> 3
    goes_on = parts >= 0
    while goes_on and number < steps.times:
        page, start, end, identity, objects = _page_at(state, detail, address, size)
        goes_on = page != 0
        stays = goes_on
        while stays:
            word, now = page + ((address >> 3) & (WORDS - 1)), clock + number
            execution = first.time + number * steps.period + 1
            for behind in range(words):
                row = _row_of(memory, word + behind, address, parts)
                goes_on &= row != 0 and not _is_open(memory, state.open, row)
                goes_on = goes_on and found_again(state, detail, row, now, execution, identity)
            if goes_on:
                stored = by_access(state.final, access, execution - 1)
                for behind in range(words):
                    _become(memory, _row_of(memory, word + behind, address, parts), stored, now)
            number += goes_on
            address += steps.step
            stays = goes_on and number < steps.times and start <= address <= end
            if stays and detail.profile:
                identity = _object_at(state, objects, address, identity)
                stays = identity >= 0
    return int(number)


@inlined
def _is_open(memory: Any, opened: Any, row: Any) -> Any:
    """Whether a store is the first in a segment of the trace to a row."""
    is_open = False
    if opened is not None:  # Numba compiles it for segments alone
        is_open = memory.rows[row].store & np.uint32(OPEN) != 0
    return is_open


@inlined
def _become(memory: Any, row: Any, stored: Any, clock: Any) -> None:
    drop_readers(memory, row)
    memory.rows[row].store = stored
    memory.rows[row].stamp = clock


# -- the long way ----------------------------------------------------------------------------------


@kernel
def _long_load(state: Any, detail: Any, levels: Any, access: Any, given: Any, known_exposed: Any) -> int:
    """Enter a load; returns from which level on the loads of this instruction are known to be exposed."""
    now, identity = given.time + 1, identity_of(state, detail, given.address)
    exposed, is_stored = np.int64(NO_LEVEL), False
    if detail.war == 0 or has_history(state, given.address, given.size):
        for row in changing(state.memory, given.address, given.size):
            known = state.memory.rows[row]
            source = np.int64(known.store) & ACCESS_BITS
            is_stored |= source != 0
            if detail.raw and source != 0:
                shared = _depend(state, detail, levels, STORE, RAW, source, access, known.stamp, now, identity)
                if shared != AS_BEFORE:
                    exposed = min(exposed, np.int64(shared >> 1))
            if detail.war and is_needed(known):
                _read(state, levels, row, access)
    if detail.profile:
        if not is_stored and given.size > 0:
            exposed = np.int64(0)
        if exposed < known_exposed:
            expose(state.relations, levels, access, exposed)
            return int(exposed)
    return int(known_exposed)


@kernel
def _long_store(state: Any, detail: Any, levels: Any, access: Any, given: Any) -> None:
    """Enter a store."""
    memory, now, clock = state.memory, given.time + 1, levels.control[CLOCK]
    identity = identity_of(state, detail, given.address)
    is_open, is_divided = False, False
    for row in changing(memory, given.address, given.size):
        is_open |= _is_open(memory, state.open, row)
    if is_open:
        enter_store(state, detail, levels, access, given, now, identity)
        state.shared.control[MAY_BE_SHARED] = 0
        return
    stored = by_access(state.final, access, given.time)
    for row in changing(memory, given.address, given.size):
        _stored(state, detail, levels, access, row, now, identity)
        _become(memory, row, stored, clock)
        is_divided |= row >= np.uint64(2 * memory.granules.size)
    if is_divided:  # words that are covered become whole
        for row in writing(memory, given.address, given.size):
            _become(memory, row, stored, clock)


@kernel
def _read(state: Any, levels: Any, row: Any, access: Any) -> None:
    """Enter a load of a row, and remember the interval of the one before it."""
    known, interval = state.memory.rows[row], state.ways[INTERVAL]
    interval.low, interval.high = interval_of(
        levels.levels, levels.control[LEVELS], levels.control[CLOCK], known.loaded
    )
    add_reader(state.readers, state.memory, row, access, levels.control[CLOCK], levels)
    collect(state.readers, state.memory, levels)


@kernel
def _stored(state: Any, detail: Any, levels: Any, access: Any, row: Any, now: Any, identity: Any) -> None:
    """Enter all dependences of a store on what is known of a row, and remember each."""
    known, loads = state.memory.rows[row], state.readers.rows
    source, entry, number = np.int64(known.store) & ACCESS_BITS, np.int64(known.before), np.int64(STORE)
    kind, stamp = np.int64(WAW), known.stamp
    if detail.waw == 0:
        source = np.int64(0)
    while True:
        if source != 0:
            _depend(state, detail, levels, number, kind, source, access, stamp, now, identity)
        if number == STORE:
            number, kind, source, stamp = np.int64(READER), np.int64(WAR), np.int64(known.reader), known.loaded
            if detail.war == 0:
                break
        elif number == READER:
            number, source, stamp = np.int64(LATEST), np.int64(known.pair), known.latest
        elif number == LATEST:
            number, stamp = np.int64(EARLIEST), known.earliest
            if known.latest == known.earliest:
                source = np.int64(0)
        elif entry == 0:
            break
        else:
            number = max(min(number + 1, np.int64(WAYS)), np.int64(LISTED))
            load = loads[np.uint64(entry)]
            source, stamp, entry = np.int64(load.access), load.when >> GROWN_BITS, np.int64(load.before)


@kernel
def _depend(
    state: Any,
    detail: Any,
    levels: Any,
    number: Any,
    kind: Any,
    source: Any,
    access: Any,
    stamp: Any,
    now: Any,
    identity: Any,
) -> int:
    """Enter a dependence, and remember how it lies if `number` is a way; returns what ``depends`` does."""
    shared = np.int64(depends(state, detail, levels, kind, source, access, stamp, now, identity))
    if number < WAYS:
        row = state.relations.accesses.rows[np.uint64(access)].dependences[np.uint64(kind == WAR)]
        remember(state.ways[np.uint64(number)], state.relations.dependences.rows, levels, source, np.int64(row))
    return int(shared)
