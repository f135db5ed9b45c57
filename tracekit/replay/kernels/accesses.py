"""Runs operations that are more than plain recorded accesses: address expressions, sizes, stack objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.frames import EXTERNAL_CALL, NO, STACK_FREE, compare, emit, emit_if, violate
from tracekit.replay.kernels.layouts import (
    ACCESS,
    ADDRESSES,
    ALLOC,
    BAD_FREE,
    BLOCKS,
    EXTERNAL,
    FRAME,
    FREE,
    LOOP_NOT_OPEN,
    NUMBER,
    OBJECTS,
    OUTSIDE,
    POINTER,
    REGISTER,
    STEP_DYNAMIC,
    STEP_GLOBAL,
    STEP_GROUND_TRUTH,
    STEP_LOADS_TOO,
    STEP_REGISTER,
    STEP_SAME_SIZE,
    STEP_STACK,
    STEP_WORD,
    U8,
    WRONG_ADDRESS,
    WRONG_BLOCK,
    Columns,
    Int,
    Stream,
    Tables,
    Wide,
)

LOAD = CODE["load"]
POINTER_CREATION = CODE["pointer_creation"]
STACK_ALLOC = CODE["stack_alloc"]

COMPACT_AT = 64
"""Ended stack objects in a frame from which on it pays to sweep them out."""


# What is known of the object that an address is based on.
NOWHERE = 0  # there is none
BOUNDED = 1  # its bounds
ANYWHERE = 2  # nothing: a global variable


@inlined
def run_steps(
    tables: Tables, stream: Stream, frame: Any, block: Any, out: Columns, n: Int, words: U8, word: Int
) -> Int:
    """Run all steps of a block in the top frame; its words begin at words[word]. Returns the number of events.

    Inlined, like all that it calls often: a call would pass every array of every tuple.
    """
    registers = np.int64(frame.register_base)
    size: Int = np.uint64(0)
    for k in range(np.int64(block.first_step), np.int64(block.last_step)):
        step = tables.steps[k]
        address = step.offset
        if step.flags & STEP_WORD:
            recorded: Int = words[word]
            word += 1
            if step.defines != NO:
                stream.registers[registers + np.int64(step.defines)] = recorded
            address += recorded
        elif step.flags & STEP_REGISTER:
            address += stream.registers[registers + np.int64(step.base)]
        if step.terms:
            address += affine(tables, stream, frame, step)
        if step.flags & STEP_DYNAMIC:
            size = words[word]
            word += 1
        elif not step.flags & STEP_SAME_SIZE:
            size = step.size
        values = word
        word += np.int64(step.values)
        if step.flags & STEP_GROUND_TRUTH:
            if size != 0 or step.code > ACCESS:
                compare(stream, ADDRESSES, WRONG_ADDRESS, address, words[word])
            word += 1
        if step.code <= ACCESS:
            if step.flags & (STEP_GLOBAL | STEP_STACK):
                check_object(tables, stream, registers, step, address, size)
            if size != 0:
                count = np.int64(step.values)
                if step.flags & STEP_LOADS_TOO:  # the words are those of two values
                    count >>= 1
                    n = emit_access(out, n, LOAD, step.subject, address, size, words, values, count)
                    values += count
                n = emit_access(out, n, step.kind, step.subject, address, size, words, values, count)
        elif step.code == ALLOC:
            n = begin(stream, frame, step, out, n, address, size)
        elif step.code == FREE:
            n = finish(stream, frame, step, out, n, address)
        elif step.code == FRAME:
            frame.address = address
        elif step.code == POINTER:
            n = emit(out, n, POINTER_CREATION, step.subject, address, step.size)
        elif step.code == EXTERNAL:
            n = emit(out, n, EXTERNAL_CALL, step.subject, 0, 0)
        elif step.code == NUMBER:
            compare(stream, BLOCKS, WRONG_BLOCK, np.uint64(block.number), address)
        elif step.code == REGISTER:
            pass  # its word has set the register
    return n


@inlined
def emit_access(
    out: Columns, n: Int, kind: Int, subject: Int, address: Int, size: Int, words: U8, first: Int, count: Int
) -> Int:
    """Append a load or store whose value is the `count` words from words[first] on."""
    after = emit(out, n, kind, subject, address, size)
    _put_value(out.value, out.wide, n, after > n, words, first, count)
    return after


@inlined
def _put_value(column: Any, wide: Any, n: Int, kept: Int, words: U8, first: Int, count: Int) -> None:
    """Fill in the value of an event, if values were asked for."""
    if column is not None:
        if count > 0:
            column[n] = words[first]
        if count > 1 and kept:
            _put_wide(wide, n, words[first + 1 : first + count])


@kernel
def _put_wide(wide: Wide, n: Int, words: U8) -> None:
    """The words of a value behind its first. There is room: the derive kernel made sure of the record's words."""
    filled = wide.filled[0]
    for k in range(len(words)):
        wide.words[filled + k] = words[k]
        wide.events[filled + k] = n
    wide.filled[0] = filled + len(words)


@inlined
def affine(tables: Tables, stream: Stream, frame: Any, step: Any) -> Int:
    """The sum of stride * iteration over the step's terms, modulo 2^64."""
    total = np.uint64(0)
    for k in range(np.int64(step.first_term), np.int64(step.first_term) + np.int64(step.terms)):
        term = tables.terms[k]
        depth = np.int64(tables.loops[term.loop].depth)
        level = np.int64(frame.loop_base) + depth - 1
        if depth > np.int64(frame.loops) or stream.open_loops[level] != term.loop:
            violate(stream, LOOP_NOT_OPEN)
            continue
        stride = term.stride
        if term.register != NO:
            stride += stream.registers[np.int64(frame.register_base) + np.int64(term.register)]
        total += stride * stream.iterations[level]
    return total


@inlined
def check_object(tables: Tables, stream: Stream, registers: Int, step: Any, address: Int, size: Int) -> None:
    """Count an access that does not lie inside the object that its address is based on."""
    start, length, known = object_bounds(tables, stream, registers, step)
    if known == NOWHERE or (known == BOUNDED and (address - start > length or size > length - (address - start))):
        violate(stream, OUTSIDE)


@inlined
def object_bounds(tables: Tables, stream: Stream, registers: Int, step: Any) -> Int:
    """First byte and length of the object that a step's address is based on, and whether it is known where it is."""
    if step.flags & STEP_GLOBAL:
        start = tables.global_address[step.object]
        return start, tables.global_size[step.object], ANYWHERE if start == 0 else BOUNDED
    position = stream.registers[registers + np.int64(step.base) + 1]
    if position == 0 or position > np.uint64(stream.scalars[OBJECTS]):
        return np.uint64(0), np.uint64(0), NOWHERE
    item = stream.objects[position - np.uint64(1)]
    return item.address, item.size, BOUNDED


@inlined
def begin(stream: Stream, frame: Any, step: Any, out: Columns, n: Int, address: Int, size: Int) -> Int:
    """A stack object begins. One that begins again in the same place had ended without a word."""
    slot = np.int64(frame.register_base) + np.int64(step.object)
    position = np.int64(stream.registers[slot + 1]) - 1
    if position >= 0 and stream.objects[position].live and stream.objects[position].address == address:
        item = stream.objects[position]
        n = emit_if(out.objects, out, n, STACK_FREE, item.op, item.address, item.size)
        item.size = size
    else:
        position = stream.scalars[OBJECTS]
        stream.scalars[OBJECTS] = position + 1
        item = stream.objects[position]
        item.address, item.size, item.op, item.slot, item.live = address, size, step.subject, np.uint32(slot), 1
        stream.registers[slot] = address
        stream.registers[slot + 1] = np.uint64(position + 1)
    return emit_if(out.objects, out, n, STACK_ALLOC, step.subject, address, size)


@inlined
def finish(stream: Stream, frame: Any, step: Any, out: Columns, n: Int, address: Int) -> Int:
    """A stack object of the top frame ends before its frame."""
    position = _object_at(stream, frame, step, address)
    if position < 0:
        violate(stream, BAD_FREE)
        return n
    item = stream.objects[position]
    n = emit_if(out.objects, out, n, STACK_FREE, step.subject, item.address, item.size)
    item.live = 0
    frame.dead += 1
    bottom = np.int64(frame.object_base)
    while stream.scalars[OBJECTS] > bottom and not stream.objects[stream.scalars[OBJECTS] - 1].live:
        stream.scalars[OBJECTS] -= 1
        ended = stream.objects[stream.scalars[OBJECTS]]
        _forget(stream, ended.slot, stream.scalars[OBJECTS])
        frame.dead -= 1
    if frame.dead > COMPACT_AT and 2 * np.int64(frame.dead) > stream.scalars[OBJECTS] - bottom:
        _compact(stream, frame)
    return n


@inlined
def _forget(stream: Stream, slot: Int, position: Int) -> None:
    """The object at `position` is gone: its slot no longer names it."""
    if stream.registers[np.int64(slot) + 1] == np.uint64(position + 1):
        stream.registers[np.int64(slot) + 1] = 0


@inlined
def _object_at(stream: Stream, frame: Any, step: Any, address: Int) -> Int:
    """The live object of the top frame at `address`: its slot says which, or the newest one there; -1 if none."""
    if step.flags & STEP_STACK:
        position = np.int64(stream.registers[np.int64(frame.register_base) + np.int64(step.base) + 1]) - 1
        if position >= 0 and stream.objects[position].live:
            return position
        return -1
    for other in range(stream.scalars[OBJECTS] - 1, np.int64(frame.object_base) - 1, -1):
        if stream.objects[other].live and stream.objects[other].address == address:
            return other
    return -1


@kernel
def _compact(stream: Stream, frame: Any) -> None:
    """Sweep the ended objects out of the top frame, so that a long-running one stays small."""
    kept = np.int64(frame.object_base)
    for position in range(np.int64(frame.object_base), stream.scalars[OBJECTS]):
        item = stream.objects[position]
        if not item.live:
            _forget(stream, item.slot, position)
            continue
        into = stream.objects[kept]
        if stream.registers[np.int64(item.slot) + 1] == np.uint64(position + 1):
            stream.registers[np.int64(item.slot) + 1] = np.uint64(kept + 1)
        into.address, into.size, into.op, into.slot, into.live = item.address, item.size, item.op, item.slot, item.live
        kept += 1
    stream.scalars[OBJECTS] = kept
    frame.dead = 0
