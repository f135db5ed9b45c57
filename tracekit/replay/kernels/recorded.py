"""Delivers the events that the runtime recorded as such: allocations, library accesses, threads, images, signals."""

from __future__ import annotations

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels import heap
from tracekit.replay.kernels.frames import NO, emit, pop, push, unwind, violate
from tracekit.replay.kernels.layouts import (
    BAD_SIGNAL,
    CREATED,
    FRAMES,
    FULL,
    HEAP,
    I8,
    INPUT,
    LOST,
    NEED,
    OBJECTS,
    OPEN_CALL,
    STACK,
    TOP,
    U8,
    Columns,
    Int,
    Process,
    Stream,
    Tables,
)
from tracekit.replay.kernels.resumed import (
    RESUMED_FRAME,
    RESUMED_OBJECT,
    RESUMED_REGISTER,
    RESUMED_RETURN,
    has_room,
    resume,
    returned_to,
)

LOAD = CODE["load"]
STORE = CODE["store"]
HEAP_ALLOC = CODE["heap_alloc"]
HEAP_FREE = CODE["heap_free"]
GLOBAL_INIT = CODE["global_init"]
HEAP_REALLOC = CODE["heap_realloc"]
LIBRARY_LOAD = CODE["library_load"]
LIBRARY_STORE = CODE["library_store"]
THREAD_START = CODE["thread_start"]
THREAD_EXIT = CODE["thread_exit"]
THREAD_CREATE = CODE["thread_create"]
SIGNAL_ENTER = CODE["signal_enter"]
SIGNAL_LEAVE = CODE["signal_leave"]
IMAGE_LOAD = CODE["image_load"]
DROPPED = CODE["dropped"]
WINDOW_BEGIN = CODE["window_begin"]
WINDOW_END = CODE["window_end"]
MPI_SEND = CODE["mpi_send"]
MPI_POST = CODE["mpi_post"]
MPI_COLLECTIVE = CODE["mpi_collective"]


@inlined
def room_to_unwind(stream: Stream, target: Int) -> Int:
    """How many events ending all frames above `target` can cause at most."""
    top = stream.scalars[TOP]
    if top <= target:
        return 0
    lowest, frame = stream.frames[target + 1], stream.frames[top]
    loops = np.int64(frame.loop_base) + np.int64(frame.loops) - np.int64(lowest.loop_base)
    return 2 * (top - target) + loops + stream.scalars[OBJECTS] - np.int64(lowest.object_base)


@inlined
def pending_call(stream: Stream) -> Int:
    """The instruction of the call that is open in instrumented code, or NONE."""
    if stream.scalars[TOP] < 0:
        return NO
    return stream.frames[stream.scalars[TOP]].pending


@kernel
def deliver(
    tables: Tables, stream: Stream, process: Process, out: Columns, cursor: I8, code: Int, words: U8, word: Int
) -> Int:
    """Deliver the recorded event `code` whose words begin at words[word]; returns INPUT, or why it cannot yet."""
    n = cursor[2]
    need = _room_for(tables, stream, code, words, word)
    if n + need > len(out.kind):
        cursor[NEED] = need
        return FULL
    if (code == HEAP_ALLOC or code == HEAP_REALLOC) and heap.is_full(process):
        return HEAP
    if code == SIGNAL_ENTER and stream.scalars[TOP] + 2 > len(stream.frames):
        return FRAMES
    if code == RESUMED_OBJECT and not has_room(stream):
        return STACK
    status = INPUT
    if code == HEAP_ALLOC:
        heap.put(process, words[word + 1], words[word + 2])
        n = emit(out, n, HEAP_ALLOC, pending_call(stream), words[word + 1], words[word + 2])
    elif code == HEAP_FREE:
        n = _free(process, pending_call(stream), out, n, words[word + 1])
    elif code == HEAP_REALLOC:
        n = _realloc(process, pending_call(stream), out, n, words[word + 1], words[word + 2], words[word + 3])
    elif code == LIBRARY_LOAD or code == LIBRARY_STORE:
        if words[word + 1] != 0:
            kind = LOAD if code == LIBRARY_LOAD else STORE
            n = emit(out, n, kind, pending_call(stream), words[word], words[word + 1])
    elif code >= MPI_SEND and code <= MPI_COLLECTIVE:
        second = words[word + 2] if code != MPI_POST else np.uint64(0)
        n = emit(out, n, code, pending_call(stream), words[word + 1], second)
    elif code >= RESUMED_REGISTER and code <= RESUMED_FRAME:
        n = resume(tables, stream, out, n, code, words, word)
    elif code == RESUMED_RETURN:
        n = unwind(stream, out, n, returned_to(stream, words[word]))
    else:
        n = _plain(tables, stream, out, n, code, words, word)
        if code == IMAGE_LOAD:
            n = _initialise(tables, out, n, words[word + 1])
        elif code == THREAD_EXIT or code == WINDOW_BEGIN or code == WINDOW_END:
            n = _end(stream, out, n)
        elif code == THREAD_CREATE:
            if words[word + 1] < np.uint64(len(process.created)):
                process.created[words[word + 1]] = 1
            status = CREATED
        elif code == SIGNAL_ENTER:
            push(tables, stream, NO)
        elif code == SIGNAL_LEAVE:
            n = _leave_signal(stream, out, n, words[word + 1])
        elif code == DROPPED:
            stream.scalars[LOST] = 1
    cursor[2] = n
    return status


@inlined
def _room_for(tables: Tables, stream: Stream, code: Int, words: U8, word: Int) -> Int:
    """How many events the recorded event `code` may become."""
    if code == IMAGE_LOAD:
        return 1 + _globals_of(tables, words[word + 1])
    if code == THREAD_EXIT or code == SIGNAL_LEAVE or code == WINDOW_BEGIN or code == WINDOW_END:
        return 1 + room_to_unwind(stream, -1)
    if code == RESUMED_RETURN:
        return 1 + room_to_unwind(stream, returned_to(stream, words[word]))
    return 4


@inlined
def _plain(tables: Tables, stream: Stream, out: Columns, n: Int, code: Int, words: U8, word: Int) -> Int:
    """Deliver an event whose columns are its words, or the open call."""
    places = tables.event_words[code]
    subject = np.uint32(words[word + places[0]]) if places[0] >= 0 else np.uint32(0)
    address = words[word + places[1]] if places[1] >= 0 else np.uint64(0)
    size = words[word + places[2]] if places[2] >= 0 else np.uint64(0)
    if places[0] == OPEN_CALL:
        subject = np.uint32(pending_call(stream))
    return emit(out, n, code, subject, address, size)


@inlined
def _free(process: Process, call: Int, out: Columns, n: Int, address: Int) -> Int:
    n = emit(out, n, HEAP_FREE, call, address, heap.get(process, address))
    heap.remove(process, address)
    return n


@kernel
def _realloc(process: Process, call: Int, out: Columns, n: Int, old: Int, address: Int, size: Int) -> Int:
    """A reallocation as what it does to memory: a new object, the copy, the end of the old one; or its tail."""
    before = heap.get(process, old)
    if address == 0:
        # realloc(p, 0) may free and return NULL; with a size it has failed and changed nothing.
        return _free(process, call, out, n, old) if size == 0 and old != 0 else n
    if address == old:
        if size < before:
            n = emit(out, n, HEAP_FREE, call, address + size, before - size)
        elif size > before:
            n = emit(out, n, HEAP_ALLOC, call, address + before, size - before)
        heap.put(process, address, size)
        return n
    n = emit(out, n, HEAP_ALLOC, call, address, size)
    kept = min(before, size)
    if kept != 0:
        n = emit(out, n, LOAD, call, old, kept)
        n = emit(out, n, STORE, call, address, kept)
    if old != 0:
        n = _free(process, call, out, n, old)
    heap.put(process, address, size)
    return n


@inlined
def _globals_of(tables: Tables, image: Int) -> Int:
    if image >= np.uint64(len(tables.image_first) - 1):
        return 0
    return np.int64(tables.image_first[image + np.uint64(1)]) - np.int64(tables.image_first[image])


@kernel
def _initialise(tables: Tables, out: Columns, n: Int, image: Int) -> Int:
    """global_init for every global of an image that has an address."""
    count = _globals_of(tables, image)
    for k in range(count):
        row = tables.image_globals[np.int64(tables.image_first[image]) + k]
        n = emit(out, n, GLOBAL_INIT, row, tables.global_address[row], tables.global_size[row])
    return n


@kernel
def _end(stream: Stream, out: Columns, n: Int) -> Int:
    """A thread or a window ends: what is still open on its stack is unwound."""
    while stream.scalars[TOP] >= 0:
        if stream.frames[stream.scalars[TOP]].function == NO:
            stream.scalars[TOP] -= 1
        else:
            n = pop(stream, out, n, 1)
    return n


@kernel
def _leave_signal(stream: Stream, out: Columns, n: Int, abnormal: Int) -> Int:
    """A handler's run ends: frames down to its bottom are unwound, which only an abnormal end may do."""
    top = stream.scalars[TOP]
    if top < 0 or (stream.frames[top].function != NO and abnormal == 0):
        violate(stream, BAD_SIGNAL)
    while stream.scalars[TOP] >= 0 and stream.frames[stream.scalars[TOP]].function != NO:
        n = pop(stream, out, n, 1)
    if stream.scalars[TOP] >= 0:
        stream.scalars[TOP] -= 1
    return n
