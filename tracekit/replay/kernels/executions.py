"""Executions of instructions that both load and store, and the beginning and end of objects.

The loads of such an execution enter the history only when it is over, so that its own stores do not depend on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels import objects as obj
from tracekit.replay.kernels import shadow as shd
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.engine import (
    EXECUTIONS,
    GLOBAL_INIT,
    HEAP_ALLOC,
    LARGEST,
    LOAD,
    NO_IDENTITIES,
    NO_PENDING,
    OBJECTS,
    OK,
    PENDINGS,
    SHADOW,
    STACK_ALLOC,
    STORE,
    TOO_LARGE,
    Engine,
)
from tracekit.replay.kernels.hashmap import Int, find, is_full, put
from tracekit.replay.kernels.history import add_reader


@kernel
def begin_execution(engine: Engine, stream: Stream, instruction: Int, updates: Int, is_store: bool) -> int:
    """An access of, or after, an instruction that both loads and stores: say which execution it belongs to.

    Its consecutive loads and then stores, with no other event between, are one execution.
    """
    control = stream.control
    if control[ctx.RUN_INSTRUCTION] == instruction and (is_store or control[ctx.RUN_PHASE] == LOAD):
        if 2 * engine.control[PENDINGS] + 1 > engine.pending.size:
            return NO_PENDING
        control[ctx.RUN_PHASE] = STORE if is_store else LOAD
        return OK
    status = end_execution(engine, stream)
    if status != OK:
        return status
    if 2 * engine.control[PENDINGS] + 1 > engine.pending.size:
        return NO_PENDING
    engine.control[EXECUTIONS] += 1
    control[ctx.EXECUTION] = engine.control[EXECUTIONS]
    if updates != 0:
        control[ctx.RUN_INSTRUCTION] = instruction
        control[ctx.RUN_PHASE] = STORE if is_store else LOAD
    return OK


@kernel
def end_execution(engine: Engine, stream: Stream) -> int:
    """Enter the loads of the execution that has ended into the history; returns a status."""
    control, shadow = stream.control, engine.shadow
    row = np.int64(0)
    while row < engine.control[PENDINGS]:
        if engine.pending[row].stream != control[ctx.STREAM]:
            row += 1
            continue
        pending = engine.pending[row]
        while pending.start < pending.end:
            place = pending.start
            page = shd.page_slots(shadow, stream.pages, control[ctx.STREAM], place >> shd.PAGE_BITS)
            if page < 0:
                return int(SHADOW - page)
            first = place & 7
            last = min(np.int64(8), first + (pending.end - place))
            parts = shd.granules(shadow, page + ((place >> 3) & (shd.WORDS - 1)), first, last)
            if parts < 0:
                return int(SHADOW - parts)
            shift = parts & 3
            block = parts >> 2
            for slot in range(block + (first >> shift), block + (last >> shift)):
                if not add_reader(shadow, stream, engine.accesses, slot, pending.access):
                    return SHADOW + shd.NO_READERS
                pending.start = place - first + ((slot - block + 1) << shift)
        engine.control[PENDINGS] -= 1
        engine.pending[row] = engine.pending[engine.control[PENDINGS]]
    control[ctx.RUN_INSTRUCTION] = -1
    return OK


@inlined
def add_pending(pending: Any, shared: Any, control: Any, access: Any, start: Any, end: Any) -> None:
    """Bytes start .. end - 1 were loaded by the execution that is under way; there is room."""
    row = pending[shared[PENDINGS]]
    shared[PENDINGS] += 1
    row.stream = control[ctx.STREAM]
    row.access = access
    row.start = start
    row.end = end


@inlined
def cut_pending(pending: Any, shared: Any, every: Any, stream: Any, start: Any, end: Any) -> None:
    """Take the bytes start .. end - 1 out of what `stream`, or every stream, has pending; needs twice the rows."""
    for row in range(shared[PENDINGS]):
        part = pending[row]
        if (every or part.stream == stream) and part.start < end and start < part.end:
            if part.start < start and end < part.end:
                behind = pending[shared[PENDINGS]]
                shared[PENDINGS] += 1
                behind.stream = part.stream
                behind.access = part.access
                behind.start = end
                behind.end = part.end
                part.end = start
            elif part.start < start:
                part.end = start
            elif end < part.end:
                part.start = end
            else:
                part.end = part.start


@kernel
def change_objects(engine: Engine, kind: Int, subject: Int, start: Int, size: Int) -> int:
    """An object begins or ends: its bytes lose their history in every stream; returns a status (then call again)."""
    if size < 0 or size > LARGEST:
        return TOO_LARGE
    if size == 0:
        return OK
    if 2 * engine.control[PENDINGS] + 1 > engine.pending.size:
        return NO_PENDING
    shadow = engine.shadow
    status = shd.clear_range(shadow.page_index.cells, shadow.page_index.used, shadow.pages, shadow.slots,
                             shadow.readers, shadow.control, start, start + size)
    if status != OK:
        return int(SHADOW + status)
    identity = np.int64(-1)
    if kind == HEAP_ALLOC or kind == STACK_ALLOC or kind == GLOBAL_INIT:
        object_kind = 1 if kind == HEAP_ALLOC else 2 if kind == STACK_ALLOC else 3
        key = (object_kind << 32) | subject
        identity = np.int64(find(engine.identities, key))
        if identity < 0:
            if is_full(engine.identities):
                return NO_IDENTITIES
            identity = np.int64(engine.identities.used[0]) + 1
            put(engine.identities, key, identity)
    status = obj.place(engine.objects, start, start + size, identity)
    if status != OK:
        return int(OBJECTS + status)
    cut_pending(engine.pending, engine.control, True, 0, start, start + size)
    return OK
