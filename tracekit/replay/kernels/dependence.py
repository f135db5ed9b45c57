"""Memory dependences at every level and in every context: CAMP's Algorithm 1 on event columns.

For each access the history of its bytes gives the earlier ends of its dependences; the stream's levels
say how far both ends lie in the same iterations. All work on an event can be repeated from the granule at
which some table ran out of room (see :func:`consume`), so kernels never allocate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels import shadow as shd
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.engine import (
    CONTEXTS,
    EXECUTIONS,
    EXTERNAL_CALL,
    FUNCTION_ENTRY,
    FUNCTION_EXIT,
    GLOBAL_INIT,
    HEAP_ALLOC,
    LARGEST,
    LOAD,
    LOOP_EXIT,
    LOOP_INVOCATION,
    LOOP_ITERATION,
    NO_ACCESSES,
    OK,
    RAW,
    SHADOW,
    STORE,
    TOO_LARGE,
    WAR,
    WAW,
    Engine,
)
from tracekit.replay.kernels.executions import add_pending, begin_execution, change_objects, cut_pending, end_execution
from tracekit.replay.kernels.hashmap import Int
from tracekit.replay.kernels.history import add_reader
from tracekit.replay.kernels.levels import shared_levels
from tracekit.replay.kernels.prefetch import prefetch
from tracekit.replay.kernels.relations import access_of, expose, relate


@kernel
def consume(engine: Engine, stream: Stream, kinds: Any, subjects: Any, addresses: Any, sizes: Any,
            start: Int) -> tuple[int, int]:
    """Take the events from number `start` on; returns (events taken, status).

    After a status other than OK the caller grows what the status names and calls again from there.
    """
    for event in range(start, kinds.size):
        kind = kinds[event]
        status = OK
        if kind == LOAD or kind == STORE:
            status = _access(engine, stream, kind == STORE, np.int64(subjects[event]), addresses[event], sizes[event])
        else:
            if stream.control[ctx.RUN_INSTRUCTION] >= 0:
                status = end_execution(engine, stream)
                if status != OK:
                    return event, status
            if kind == FUNCTION_ENTRY:
                status = ctx.enter_function(engine.contexts, stream, np.int64(subjects[event]), sizes[event])
                if status != OK:
                    status += CONTEXTS
            elif kind == FUNCTION_EXIT:
                ctx.leave_function(engine.contexts, stream)
            elif kind == LOOP_ITERATION:
                status = ctx.iterate(stream)
                if status != OK:
                    status += CONTEXTS
            elif kind == LOOP_INVOCATION:
                status = ctx.enter_loop(engine.contexts, stream, np.int64(subjects[event]))
                if status != OK:
                    status += CONTEXTS
            elif kind == LOOP_EXIT:
                ctx.leave_loop(engine.contexts, stream, sizes[event])
            elif kind == EXTERNAL_CALL:
                ctx.note_external(engine.contexts, stream, np.int64(subjects[event]))
            elif HEAP_ALLOC <= kind <= GLOBAL_INIT:
                status = change_objects(engine, kind, np.int64(subjects[event]), addresses[event], sizes[event])
        if status != OK:
            return event, status
    return kinds.size, OK


@inlined
def _access(engine: Any, stream: Any, is_store: Any, instruction: Any, address: Any, size: Any) -> Any:
    """A load or a store of `size` bytes at `address`; returns a status (then call again)."""
    control, shadow = stream.control, engine.shadow
    instruction = min(instruction, np.int64(engine.instructions.size - 1))
    known = engine.instructions[instruction]
    if known.context != control[ctx.CONTEXT]:
        found = access_of(engine.contexts.nodes, engine.accesses, engine.access_index, engine.control,
                           instruction, control[ctx.CONTEXT])
        if found < 0:
            return NO_ACCESSES
        known.access = found
        known.context = control[ctx.CONTEXT]
    access = np.int64(known.access)
    place = np.int64(address)
    if control[ctx.RESUMED] != 0:
        control[ctx.RESUMED] = 0
        place = control[ctx.CURSOR]
    else:
        if size < 0 or size > LARGEST:
            return TOO_LARGE
        if known.updates != 0 or control[ctx.RUN_INSTRUCTION] >= 0:
            status = begin_execution(engine, stream, instruction, known.updates, is_store)
            if status != OK:
                return status
        else:
            engine.control[EXECUTIONS] += 1
            control[ctx.EXECUTION] = engine.control[EXECUTIONS]
        engine.accesses[access].count += 1
        control[ctx.ACCESSES] += 1
    end = address + size
    while place < end:
        page = shd.page_slots(shadow, stream.pages, control[ctx.STREAM], place >> shd.PAGE_BITS)
        if page < 0:
            return _pause(control, place, SHADOW - page)
        word = page + ((place >> 3) & (shd.WORDS - 1))
        first = place & 7
        last = min(np.int64(8), first + (end - place))
        parts = shd.granules(shadow, word, first, last)
        if parts < 0:
            return _pause(control, place, SHADOW - parts)
        shift = parts & 3
        block = parts >> 2
        for number in range(block + (first >> shift), block + (last >> shift)):
            slot = np.uint32(number)
            status = _granule(engine, stream, is_store, slot, access, address)
            if status == OK and not is_store and known.updates == 0:
                if not add_reader(shadow, stream, engine.accesses, slot, access):
                    status = SHADOW + shd.NO_READERS
            if status != OK:
                return _pause(control, place - first + ((number - block) << shift), status)
        if is_store and shift < 3 and last - first == 8:
            shd.join(shadow.slots, shadow.control, word)
        place += last - first
    if known.updates != 0 and size > 0:
        if is_store:
            cut_pending(engine.pending, engine.control, False, control[ctx.STREAM], address, end)
        else:
            add_pending(engine.pending, engine.control, control, access, address, end)
    return OK


@inlined
def _pause(control: Any, place: Any, status: Any) -> Any:
    """Remember that the bytes of the access before `place` are done."""
    control[ctx.CURSOR] = place
    control[ctx.RESUMED] = 1
    return np.int64(status)


@inlined
def _granule(engine: Any, stream: Any, is_store: Any, slot: Any, access: Any, address: Any) -> Any:
    """Find the dependences of one granule of an access, and for a store make it the history; returns a status."""
    slots, readers = engine.shadow.slots, engine.shadow.readers
    kind = WAW if is_store else RAW
    source = np.int64(slots[slot].store) - 1
    stamp = slots[slot].stamp
    entry = np.int64(0)
    before = np.int64(0)
    done = np.int64(0)
    shared = np.int64(0)
    while True:
        if source >= 0:
            shared = np.int64(shared_levels(stream, stamp, engine.accesses[source].depth))
            status = relate(engine, stream, kind, source, access, stamp, shared, address)
            if status != OK:
                _drop_readers(slots, readers, engine.shadow.control, slot, before, done)
                return status
        if not is_store:
            break
        if entry == 0:
            kind = WAR
            entry = np.int64(slots[slot].readers)
        elif stamp != readers[entry].earliest:
            stamp = readers[entry].earliest
            continue
        else:
            done += 1
            before = entry
            entry = np.int64(readers[entry].next)
        if entry == 0:
            break
        prefetch(readers, readers[entry].next)
        source = np.int64(readers[entry].access)
        stamp = readers[entry].latest
    if is_store:
        _drop_readers(slots, readers, engine.shadow.control, slot, before, done)
        slots[slot].store = access + 1
        slots[slot].stamp = stream.control[ctx.CLOCK]
        return OK
    return expose(engine, stream, engine.accesses[access].printed, shared >> 1)


@inlined
def _drop_readers(slots: Any, readers: Any, control: Any, slot: Any, last: Any, count: Any) -> None:
    """Take the first `count` readers, up to the entry `last`, off a granule's list and give them back together."""
    if count > 0:
        first = np.int64(slots[slot].readers)
        rest = np.int64(readers[last].next)
        slots[slot].readers = rest
        if rest != 0:
            readers[rest].length = readers[first].length - count
            readers[rest].limit = readers[first].limit
        shd.give_readers(readers, control, first, last, count)
