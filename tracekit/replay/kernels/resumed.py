"""What a window on a run finds when it opens: registers, iterations and stack objects of activations under way.

A path record whose block is ENTRY and LANDING has pushed the frame; these records fill it in (SPEC.md, "Windows").
"""

from __future__ import annotations

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.frames import NO, STACK_FREE, emit_if
from tracekit.replay.kernels.layouts import OBJECTS, TOP, U8, Columns, Int, Stream, Tables

STACK_ALLOC = CODE["stack_alloc"]
RESUMED_REGISTER = CODE["resumed_register"]
RESUMED_LOOP = CODE["resumed_loop"]
RESUMED_OBJECT = CODE["resumed_object"]
RESUMED_FRAME = CODE["resumed_frame"]
RESUMED_RETURN = CODE["resumed_return"]


@inlined
def has_room(stream: Stream) -> Int:
    """Whether one more stack object has a place."""
    return stream.scalars[OBJECTS] < len(stream.objects)


@kernel
def returned_to(stream: Stream, address: Int) -> Int:
    """The frame of this FRAME address, or the top one if there is none."""
    position = stream.scalars[TOP]
    while position >= 0 and stream.frames[position].function != NO:
        if stream.frames[position].address == address:
            return position
        position -= 1
    return stream.scalars[TOP]


@kernel
def resume(tables: Tables, stream: Stream, out: Columns, n: Int, code: Int, words: U8, word: Int) -> Int:
    """Fill in the top frame; what it cannot have is passed over. Returns the number of events."""
    top = stream.scalars[TOP]
    if top < 0 or stream.frames[top].function == NO:
        return n
    frame = stream.frames[top]
    function = tables.resumed[frame.function]
    if code == RESUMED_FRAME:
        frame.address = words[word]
    elif code == RESUMED_REGISTER:
        if words[word] < np.uint64(function.registers):
            stream.registers[np.int64(frame.register_base) + np.int64(words[word])] = words[word + 1]
    elif code == RESUMED_LOOP:
        base = np.int64(frame.loop_base)
        for level in range(base, base + np.int64(frame.loops)):
            if np.uint64(stream.open_loops[level]) - np.uint64(function.first_loop) == words[word]:
                stream.iterations[level] = words[word + 1]
    elif words[word] < np.uint64(function.allocs):
        rank = np.int64(words[word])
        slot = np.int64(frame.register_base) + np.int64(function.registers) + 2 * rank
        n = _begin(stream, slot, tables.allocs[np.int64(function.first_alloc) + rank], out, n, words, word)
    return n


@inlined
def _begin(stream: Stream, slot: Int, op: Int, out: Columns, n: Int, words: U8, word: Int) -> Int:
    """A stack object of the top frame is alive; one of the same operation that was said to be has ended."""
    address, size = words[word + 1], words[word + 2]
    position = np.int64(stream.registers[slot + 1]) - 1
    if position >= 0 and stream.objects[position].live:
        item = stream.objects[position]
        n = emit_if(out.objects, out, n, STACK_FREE, item.op, item.address, item.size)
    else:
        position = stream.scalars[OBJECTS]
        stream.scalars[OBJECTS] = position + 1
        item = stream.objects[position]
    item.address, item.size, item.op, item.slot, item.live = address, size, op, np.uint32(slot), 1
    stream.registers[slot] = address
    stream.registers[slot + 1] = np.uint64(position + 1)
    return emit_if(out.objects, out, n, STACK_ALLOC, op, address, size)
