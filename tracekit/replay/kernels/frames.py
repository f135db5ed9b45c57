"""Activations and their loops and stack objects: what begins and ends as control moves from block to block.

Every function takes the number `n` of events in the columns and returns it as it is afterwards; the caller has
made sure that there is room (derive.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.layouts import (
    BESIDE_HEADER,
    LOST,
    OBJECTS,
    RECORDS,
    SLOTS,
    TOP,
    Columns,
    Int,
    Stream,
    Tables,
)

NO = np.uint32(NONE)
HEADER = np.uint32(BlockFlag.LOOP_HEADER)
LANDING = np.uint32(BlockFlag.LANDING)

STACK_FREE = CODE["stack_free"]
FUNCTION_ENTRY = CODE["function_entry"]
FUNCTION_EXIT = CODE["function_exit"]
LOOP_INVOCATION = CODE["loop_invocation"]
LOOP_ITERATION = CODE["loop_iteration"]
LOOP_EXIT = CODE["loop_exit"]
EXTERNAL_CALL = CODE["external_call"]


@inlined
def store(column: Any, n: Int, value: Int) -> None:
    """Fill in one column of an event, if it was asked for: Numba leaves the branch out where `column` is None."""
    if column is not None:
        column[n] = value


@inlined
def put(out: Columns, n: Int, kind: Int, subject: Int, address: Int, size: Int) -> None:
    """Fill in event `n`."""
    out.kind[n] = kind
    store(out.subject, n, subject)
    store(out.address, n, address)
    store(out.size, n, size)
    store(out.value, n, 0)


@inlined
def emit(out: Columns, n: Int, kind: Int, subject: Int, address: Int, size: Int) -> Int:
    """Append one event; the next one takes its place if it is not wanted."""
    put(out, n, kind, subject, address, size)
    return n + np.int64(out.keep[kind])


@inlined
def emit_if(group: Any, out: Columns, n: Int, kind: Int, subject: Int, address: Int, size: Int) -> Int:
    """Append one event of a group of `out`; nothing is compiled where the group is None."""
    if group is not None:
        n = emit(out, n, kind, subject, address, size)
    return n


@inlined
def violate(stream: Stream, violation: Int) -> None:
    """Count a violation of the event stream's rules; the first one's record is kept."""
    if stream.scalars[LOST]:
        return
    if stream.violations[violation, 0] == 0:
        stream.violations[violation, 1] = stream.scalars[RECORDS]
    stream.violations[violation, 0] += 1


@inlined
def compare(stream: Stream, counter: Int, violation: Int, derived: Int, recorded: Int) -> None:
    """Compare what was derived with what the program recorded in place."""
    if derived != recorded:
        violate(stream, violation)
    elif not stream.scalars[LOST]:
        stream.scalars[counter] += 1


@inlined
def close_loops(stream: Stream, frame: Any, out: Columns, n: Int, tested: Int) -> Int:
    """End all open loops of a frame, innermost first; that of `tested` ends by its header's own test."""
    frame.loop = NO
    n = _exits(out.loops, stream, frame, out, n, tested)
    frame.loops = 0
    return n


@inlined
def _exits(wanted: Any, stream: Stream, frame: Any, out: Columns, n: Int, tested: Int) -> Int:
    if wanted is not None:
        outermost = np.int64(frame.loop_base)
        for level in range(outermost + np.int64(frame.loops) - 1, outermost - 1, -1):
            loop = stream.open_loops[level]
            n = emit(out, n, LOOP_EXIT, loop, 0, 1 if loop == tested else 0)
    return n


@inlined
def free_objects(stream: Stream, frame: Any, out: Columns, n: Int) -> Int:
    """End all live stack objects of the top frame, newest first."""
    n = _frees(out.objects, stream, frame, out, n)
    stream.scalars[OBJECTS] = frame.object_base
    frame.dead = 0
    return n


@inlined
def _frees(wanted: Any, stream: Stream, frame: Any, out: Columns, n: Int) -> Int:
    if wanted is not None:
        for position in range(stream.scalars[OBJECTS] - 1, np.int64(frame.object_base) - 1, -1):
            item = stream.objects[position]
            if item.live:
                n = emit(out, n, STACK_FREE, item.op, item.address, item.size)
    return n


@inlined
def pop(stream: Stream, out: Columns, n: Int, unwound: Int) -> Int:
    """End the top frame: its loops, its stack objects, itself."""
    frame = stream.frames[stream.scalars[TOP]]
    n = close_loops(stream, frame, out, n, NO)
    n = free_objects(stream, frame, out, n)
    stream.scalars[TOP] -= 1
    return emit_if(out.functions, out, n, FUNCTION_EXIT, frame.function, 0, unwound)


@kernel
def end_tail(stream: Stream, out: Columns, n: Int) -> Int:
    """End the top frame, whose tail call to code that was not instrumented has returned."""
    frame = stream.frames[stream.scalars[TOP]]
    if frame.effects:
        n = emit(out, n, EXTERNAL_CALL, frame.pending, 0, 0)
    return pop(stream, out, n, 0)


@inlined
def leave(stream: Stream, out: Columns, n: Int) -> Int:
    """The top frame returns; frames that tail-called it return with it."""
    n = pop(stream, out, n, 0)
    while stream.scalars[TOP] >= 0 and stream.frames[stream.scalars[TOP]].tail:
        n = pop(stream, out, n, 0)
    return n


@kernel
def unwind(stream: Stream, out: Columns, n: Int, target: Int) -> Int:
    """Pop the frames above `target`: those whose tail call returned have ended, the others are unwound."""
    unwound = 0
    while stream.scalars[TOP] > target:
        frame = stream.frames[stream.scalars[TOP]]
        if not frame.tail or frame.entered:
            unwound = 1
        if unwound == 0:
            n = end_tail(stream, out, n)
        elif frame.function == NO:  # the bottom of a signal handler's run
            stream.scalars[TOP] -= 1
        else:
            n = pop(stream, out, n, 1)
    return n


@inlined
def push(tables: Tables, stream: Stream, function: Int) -> Any:
    """Begin an activation; the caller has made sure that there is room."""
    top = stream.scalars[TOP] + 1
    stream.scalars[TOP] = top
    frame = stream.frames[top]
    if top == 0:
        frame.loop_base = 0
        frame.register_base = 0
    else:
        below = stream.frames[top - 1]
        depth, slots = np.uint32(0), np.uint32(0)
        if below.function != NO:
            depth = tables.functions[below.function].depth
            slots = tables.functions[below.function].slots
        frame.loop_base = below.loop_base + depth
        frame.register_base = below.register_base + slots
    frame.function = function
    frame.pending = NO
    frame.block = NO
    frame.loop = NO
    frame.loops = 0
    frame.object_base = stream.scalars[OBJECTS]
    frame.dead = 0
    frame.address = 0
    frame.entered = 0
    frame.tail = 0
    frame.effects = 0
    if function != NO:
        first = np.int64(frame.register_base)
        for group in range(first, first + np.int64(tables.functions[function].slots), SLOTS):
            for slot in range(SLOTS):
                stream.registers[np.uint64(group + slot)] = 0
    return frame


@inlined
def move_to(
    tables: Tables, stream: Stream, frame: Any, target: Int, header: Int, landing: Int, out: Columns, n: Int
) -> Int:
    """Loop events on the way from the frame's last block to one whose innermost loop is `target`.

    header, landing: whether that block is a loop's header, whether control may land in it.
    """
    depth = np.int64(0)
    if target != NO:
        depth = np.int64(tables.loops[target].depth)
    base = np.int64(frame.loop_base)
    count = np.int64(frame.loops)
    tested = NO
    if frame.block != NO:
        tested = tables.blocks[frame.block].test_of
    around = target  # the loop of depth `count` that contains the block
    for _ in range(depth - count):
        around = tables.loops[around].parent
    while count > 0 and (count > depth or stream.open_loops[base + count - 1] != around):
        loop = stream.open_loops[base + count - 1]
        n = emit_if(out.loops, out, n, LOOP_EXIT, loop, 0, 1 if loop == tested else 0)
        if count <= depth:
            around = tables.loops[around].parent
        count -= 1
    if count == depth:
        if header:
            stream.iterations[base + depth - 1] += np.uint64(1)
            n = emit_if(out.loops, out, n, LOOP_ITERATION, target, 0, 0)
    else:
        if not header and not landing:
            violate(stream, BESIDE_HEADER)
        inner = target
        for level in range(depth - 1, count - 1, -1):
            stream.open_loops[base + level] = inner
            stream.iterations[base + level] = 0
            inner = tables.loops[inner].parent
        for level in range(count, depth):
            n = emit_if(out.loops, out, n, LOOP_INVOCATION, stream.open_loops[base + level], 0, 0)
    frame.loops = depth
    frame.loop = target
    return n
