"""Dependences across the beginnings of segments: of stores on what was loaded before their segment.

Segments are taken in one after the other. Of those so far the history has the loads of each byte since its last store;
the open stores of the next (open_stores.py) depend on them, and then its own history goes on top.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import HashTable, find_or_make, row_of
from tracekit.containers.kernels.initial_pages import OPEN
from tracekit.containers.kernels.shadow import (
    NOWHERE,
    PAGE_BITS,
    PAGES,
    SCRATCH,
    WORDS,
    changing,
    page_of,
    parts_of,
    reading,
    turn_to,
    writing,
)
from tracekit.contexts.kernels.levels import iteration_at
from tracekit.dependence.kernels.dependence_table import WAR, access_of, carry, relate, tally_of
from tracekit.dependence.kernels.load_history import (
    GROWN_BITS,
    append_list,
    collect_idle,
    drop_readers,
    list_all,
    push_reader,
)
from tracekit.dependence.kernels.loop_sets import mark_within, unnamed_set_of
from tracekit.dependence.kernels.open_stores import OpenStores
from tracekit.dependence.kernels.sharding import ADDRESS, NOTHING, TIME, note
from tracekit.jit.kernel import inlined, kernel

MARK_BITS = 32
"""Of what is marked: how many levels; the rest is a number of the stream in the segment."""


@kernel
def number_accesses(relations: Any, rows: Any, numbers: Any) -> None:
    """numbers[n]: the access here that row n of another segment's table is."""
    for row in range(1, rows.size):
        key, printed = np.int64(rows[row].key), rows[row].printed
        if printed != 0:
            shown = np.int64(rows[printed].key & np.uint64(0xFFFFFFFF))
            instruction, context = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
            numbers[row] = access_of(relations, instruction, context, shown, np.int64(rows[row].depth))
        else:
            numbers[row] = row_of(relations.accesses, key)


@kernel
def number_rows(table: Any, rows: Any, numbers: Any) -> None:
    """numbers[n]: the row in `table` that has the key of row n."""
    for row in range(1, rows.size):
        numbers[row] = row_of(table, rows[row].key)


@kernel
def depend(
    state: Any, detail: Any, opened: OpenStores, levels: Any, stream: Any, accesses: Any, identities: Any, tag: Any
) -> None:
    """Find what the open stores of one stream of a segment depend on.

    levels: those of the stream when the segment began; `accesses`, `identities`: the numbers here of those there; tag:
    a number of the stream in the segment, from 1.
    """
    turn_to(state.memory, stream)
    for number in range(1, opened.stores.control[USED]):
        store = opened.stores.rows[number]
        if store.stream == stream:
            state.shared.control[TIME] = store.time
            at = store.start
            for row in reading(state.memory, store.start, store.end - store.start):
                state.shared.control[ADDRESS] = at
                _depend_on(state, detail, opened, levels, store, row, accesses, identities, tag)
                width = 8 >> parts_of(state.memory, row)
                at = (at & -width) + width
    collect_idle(state.readers, state.memory, levels)


@inlined
def _depend_on(
    state: Any,
    detail: Any,
    opened: Any,
    levels: Any,
    store: Any,
    row: Any,
    accesses: Any,
    identities: Any,
    tag: Any,
) -> None:
    """The loads of a row, the latest first, as a store of the same stream would meet them (dependence.py)."""
    known, loads = state.memory.rows[row], state.readers.rows
    if known.reader == 0:
        return
    destination, identity = np.int64(accesses[store.access]), np.int64(store.identity)
    if identity != NOTHING:
        identity = np.int64(identities[identity])
    stand = opened.stands.rows[store.stand]
    _meet(state, detail, opened, levels, store, stand, known.reader, known.loaded, destination, identity, tag)
    if known.pair == 0:
        return
    _meet(state, detail, opened, levels, store, stand, known.pair, known.latest, destination, identity, tag)
    if known.latest != known.earliest:
        _meet(state, detail, opened, levels, store, stand, known.pair, known.earliest, destination, identity, tag)
    entry = np.int64(known.before)
    while entry != 0:
        source, stamp = loads[entry].access, loads[entry].when >> GROWN_BITS
        _meet(state, detail, opened, levels, store, stand, source, stamp, destination, identity, tag)
        entry = np.int64(loads[entry].before)


@kernel
def _meet(
    state: Any,
    detail: Any,
    opened: OpenStores,
    levels: Any,
    store: Any,
    stand: Any,
    source: Any,
    stamp: Any,
    destination: Any,
    identity: Any,
    tag: Any,
) -> None:
    """Enter that a store depends on one load."""
    execution, shared = np.int64(store.execution), state.shared
    row, is_new = relate(state.relations, WAR, np.int64(source), destination, execution)
    if is_new and not store.is_alone:
        note(shared.dependences, shared.control, np.int64(row), execution, identity)
    elif is_new and detail.profile:
        _note_object(state.relations.objects, row, identity, execution)
    if detail.loops:
        depth = np.int64(state.relations.accesses.rows[np.uint64(source)].depth)
        intra, node, distance = _lying(opened.levels.rows, stand, levels, stamp, depth, np.int64(store.iteration))
        mark = (tag << MARK_BITS) | intra
        before = state.relations.lying[row].mark
        if before >> MARK_BITS != tag or before < mark:
            state.relations.lying[row].mark = mark
            mark_within(state.relations.sets, row, unnamed_set_of(state.relations.sets, levels.levels, intra))
        if node >= 0:
            carrier, is_first = carry(state.relations, row, node, distance, execution)
            if is_first:
                if detail.histogram:
                    tally_of(state.relations, carrier, distance)
                else:
                    distance = np.int64(NOTHING)
                if not store.is_alone:
                    note(shared.levels, shared.control, carrier, execution, distance)


@kernel
def _note_object(objects: HashTable, row: Any, identity: Any, execution: Any) -> None:
    """A dependence happened in an object; streams are taken in one after the other, so this may be no later one."""
    found, is_new = find_or_make(objects, (np.uint64(row) << np.uint64(32)) | np.uint64(identity))
    if is_new or execution < objects.rows[found].execution:
        objects.rows[found].execution = execution


@kernel
def _lying(kept: Any, stand: Any, levels: Any, stamp: Any, depth: Any, iteration: Any) -> tuple[Any, Any, Any]:
    """How a load before the segment lies to an open store.

    Returns how many of the outermost levels are in one iteration at both, the node that carries the dependence or -1,
    and the distance there.
    """
    leaf = np.int64(stand.leaf)
    if leaf >= 0 and depth != stand.depth and stamp >= levels.levels[leaf].invocation:
        return leaf, np.int64(levels.levels[leaf].node), abs(stand.depth - depth)
    place = _last_place(kept, stand, stamp)
    if place == 0:
        return np.int64(0), np.int64(-1), np.int64(0)
    last = kept[stand.first + ((place - 1) >> 1)]
    level = np.int64(last.level)
    if place & 1 == 0:
        return level + 1, np.int64(last.node), np.int64(last.distance)
    present = np.int64(levels.levels[level].iteration)
    there = np.int64(iteration_at(levels, level, stamp))
    if place == stand.places:
        present = iteration
    return level, np.int64(levels.levels[level].node), present - there


@inlined
def _last_place(kept: Any, stand: Any, stamp: Any) -> Any:
    """What ``last_begun`` says of the places that are as they were."""
    low, high = np.int64(0), np.int64(stand.places)
    while low < high:
        middle = (low + high + 1) >> 1
        level = kept[stand.first + ((middle - 1) >> 1)]
        begun = level.invocation if middle & 1 else level.iteration
        if stamp >= begun:
            low = middle
        else:
            high = middle - 1
    return low


# -- the history goes on top -----------------------------------------------------------------------


@kernel
def lay_over(state: Any, memory: Any, readers: Any, accesses: Any, idle: Any) -> None:
    """Take in the loads that a segment leaves behind: its shadow `memory` and its `readers`."""
    for page in range(SCRATCH + 1, memory.control[PAGES]):
        turn_to(state.memory, memory.pages[page].stream)
        number = memory.pages[page].number
        is_known = page_of(state.memory, np.uint64(number)) != NOWHERE
        for word in range(page * WORDS, (page + 1) * WORDS):
            parts = np.int64(memory.granules[word])
            width = 8 >> parts
            address = (number << PAGE_BITS) | ((word & (WORDS - 1)) << 3)
            row = (memory.granules.size + word) << parts
            for part in range(row, row + (1 << parts)):
                _lay(state, memory.rows[part], readers.rows, accesses, address, width, is_known)
                address += width
    collect_idle(state.readers, state.memory, idle)


@inlined
def _lay(state: Any, known: Any, loads: Any, accesses: Any, address: Any, width: Any, is_known: Any) -> None:
    """Take in a row: its loads come after those that were known, or there was a store since those."""
    if known.store & np.uint32(OPEN) != 0:
        if known.reader != 0:
            for row in changing(state.memory, address, width):
                _append(state.readers, state.memory, row, known, loads, accesses)
    elif known.reader != 0 or is_known:
        for row in writing(state.memory, address, width):
            drop_readers(state.memory, row)
            if known.reader != 0:
                _append(state.readers, state.memory, row, known, loads, accesses)


@kernel
def _append(readers: Any, memory: Any, row: Any, known: Any, loads: Any, accesses: Any) -> None:
    """The loads of a row of a segment come after those of a row here."""
    if known.pair == 0:
        push_reader(readers, memory, row, accesses[known.reader], known.loaded)
        return
    into = memory.rows[row]
    list_all(readers, into)
    if known.before != 0:
        into.before = append_list(readers, into.before, loads, known.before, accesses)
    into.pair = accesses[known.pair]
    into.earliest = known.earliest
    into.latest = known.latest
    into.reader = accesses[known.reader]
    into.loaded = known.loaded
