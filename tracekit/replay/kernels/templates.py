"""Replays records by path templates (replay/templates.py), as most are: no decision but those that a record needs.

Any other record, and one whose rules do not hold or whose room does not suffice, is left to derive.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.jit.kernel import inlined
from tracekit.replay.kernels.accesses import LOAD, begin, check_object, finish
from tracekit.replay.kernels.frames import (
    EXTERNAL_CALL,
    FUNCTION_ENTRY,
    LOOP_ITERATION,
    NO,
    emit,
    emit_if,
    leave,
    move_to,
    push,
)
from tracekit.replay.kernels.layouts import (
    ALLOC,
    FILLED,
    FRAME,
    FREE,
    GROUP,
    I8,
    OBJECTS,
    PAIR,
    RECORD,
    RECORDS,
    SPARE,
    STEP_GLOBAL,
    STEP_LOADS_TOO,
    STEP_STACK,
    TEMPLATE_DYNAMIC,
    TEMPLATE_EFFECTS,
    TEMPLATE_ENTERS,
    TEMPLATE_HEADER,
    TEMPLATE_LEAVES,
    TEMPLATE_LOOPS,
    TEMPLATE_TERMS,
    TOP,
    U4,
    U8,
    WORD,
    Columns,
    Int,
    Stream,
    Tables,
)
from tracekit.replay.kernels.vectors import copy_group


@inlined
def replay_templates(tables: Tables, stream: Stream, out: Columns, ids: U4, words: U8, cursor: I8, start: Int) -> None:
    """Replay records from cursor[RECORD] on as long as their paths have templates; `start`: records before ids[0]."""
    scalars = stream.scalars
    if scalars[TOP] < 0:
        return
    frame = stream.frames[scalars[TOP]]
    record, word, n = cursor[RECORD], cursor[WORD], cursor[FILLED]
    known, room, end = len(tables.templates), len(out.kind), len(words)
    while record < len(ids) and ids[np.uint64(record)] < known:
        path = tables.templates[ids[np.uint64(record)]]
        flags = path.flags
        need = np.int64(path.room) + GROUP
        if flags & TEMPLATE_LEAVES:
            need += scalars[OBJECTS] - np.int64(frame.object_base)
        if n + need > room or word + _grouped(np.int64(path.words)) > end:
            break
        if flags & TEMPLATE_DYNAMIC and scalars[OBJECTS] + np.int64(path.dynamic_steps) > len(stream.objects):
            break
        if flags & TEMPLATE_ENTERS:
            call = frame.pending
            if call == NO or frame.tail or not _has_room(tables, stream, frame, path.function):
                break
            frame.entered = 1
            frame = push(tables, stream, path.function)
            n = emit_if(out.functions, out, n, FUNCTION_ENTRY, path.function, 0, call)
        elif path.function != frame.function or path.continues != frame.pending:
            break
        elif (flags & TEMPLATE_EFFECTS) and not frame.entered:
            n = emit(out, n, EXTERNAL_CALL, path.continues, 0, 0)
        if path.loop != frame.loop:
            scalars[RECORDS] = start + record
            n = move_to(tables, stream, frame, path.loop, flags & TEMPLATE_HEADER, False, out, n)
        elif flags & TEMPLATE_HEADER:
            stream.iterations[np.uint64(frame.loop_base) + np.uint64(frame.loops) - np.uint64(1)] += np.uint64(1)
            n = emit_if(out.loops, out, n, LOOP_ITERATION, path.loop, 0, 0)
        bases = np.uint64(frame.register_base)
        _lay(stream.registers, bases + np.uint64(path.slots), words, np.uint64(word), np.uint64(path.words))
        n = _deliver(tables, stream, frame, path, path, out, n, bases)
        if flags & TEMPLATE_DYNAMIC:
            scalars[RECORDS] = start + record
            n = _parts(tables, stream, frame, path, out, n, bases)
        _define(tables, stream.registers, path, bases)
        if flags & TEMPLATE_LOOPS:
            _change(tables, stream, frame, path)
        frame.block = path.block
        frame.pending = path.call
        frame.entered = 0
        record += 1
        word += np.int64(path.words)
        if flags & TEMPLATE_LEAVES:
            n = leave(stream, out, n)
            if scalars[TOP] < 0:
                break
            frame = stream.frames[scalars[TOP]]
    cursor[RECORD], cursor[WORD], cursor[FILLED] = record, word, n


@inlined
def _has_room(tables: Tables, stream: Stream, frame: Any, function: Int) -> Int:
    """Whether the stream's arrays can take an activation of `function` above the top frame."""
    above, own = tables.functions[frame.function], tables.functions[function]
    slots = np.int64(above.slots) + np.int64(own.slots) + SPARE
    return (
        stream.scalars[TOP] + 2 <= len(stream.frames)
        and np.int64(frame.loop_base) + np.int64(above.depth) + np.int64(own.depth) <= len(stream.open_loops)
        and np.int64(frame.register_base) + slots <= len(stream.registers)
    )


@inlined
def _grouped(count: Int) -> Int:
    return (count + GROUP - 1) & -GROUP


@inlined
def _lay(registers: U8, at: Int, words: U8, word: Int, count: Int) -> None:
    """Lay the words of a record behind the frame's registers, so that every base is found in one array."""
    group = np.uint64(0)
    while group < count:
        copy_group(registers, at + group, words, word + group)
        group += np.uint64(GROUP)


@inlined
def _deliver(tables: Tables, stream: Stream, frame: Any, path: Any, part: Any, out: Columns, n: Int, bases: Int) -> Int:
    """Deliver the events of a part of a path, and some of no meaning behind them: groups need no branch for their end.

    `bases`: where the frame's registers begin, and behind them the record's words.
    """
    row, at, end = np.uint64(part.first_template_event), np.uint64(n), np.uint64(n) + np.uint64(part.template_events)
    if path.flags & TEMPLATE_TERMS:
        levels = np.uint64(frame.loop_base)
        while at < end:
            _group(tables.template_events[row], stream.registers, bases, out, at)
            _add_terms(tables, stream.iterations, levels, row * np.uint64(GROUP), out.address, at)
            row += np.uint64(1)
            at += np.uint64(GROUP)
        return np.int64(end)
    while True:
        _group(tables.template_events[row], stream.registers, bases, out, at)
        row += np.uint64(1)
        at += np.uint64(GROUP)
        if at >= end:
            break
    return np.int64(end)


@inlined
def _group(events: Any, registers: U8, bases: Int, out: Columns, at: Int) -> None:
    """Fill in the events of one group from row `at` on."""
    copy_group(out.kind, at, events.kind, 0)
    _copy(out.subject, at, events.subject)
    _copy(out.size, at, events.size)
    _fill(out.address, at, registers, bases, events.base, events.offset)
    _fill(out.value, at, registers, bases, events.value, None)


@inlined
def _copy(column: Any, at: Int, given: Any) -> None:
    """Fill in a column of a group, if it was asked for: Numba leaves the branch out where `column` is None."""
    if column is not None:
        copy_group(column, at, given, 0)


@inlined
def _fill(column: Any, at: Int, registers: U8, bases: Int, which: Any, offsets: Any) -> None:
    """Fill in what stands in registers, with offsets if there are any."""
    if column is not None:
        for k in range(GROUP):
            column[at + np.uint64(k)] = _plus(registers[bases + np.uint64(which[k])], offsets, k)


@inlined
def _plus(base: Int, offsets: Any, k: Int) -> Int:
    if offsets is not None:
        return base + offsets[k]
    return base


@inlined
def _add_terms(tables: Tables, iterations: U8, levels: Int, first: Int, address: Any, at: Int) -> None:
    """Add what the addresses of a group count."""
    if address is not None:
        for k in range(GROUP):
            address[at + np.uint64(k)] += _terms(tables.strides[first + np.uint64(k)], iterations, levels)


@inlined
def _terms(strides: Any, iterations: U8, levels: Int) -> Int:
    return (
        strides.stride1 * iterations[levels + np.uint64(strides.level1)]
        + strides.stride2 * iterations[levels + np.uint64(strides.level2)]
    )


@inlined
def _parts(tables: Tables, stream: Stream, frame: Any, path: Any, out: Columns, n: Int, bases: Int) -> Int:
    """The dynamic steps of a path, each with the events behind it."""
    first = np.uint64(path.first_dynamic_step)
    for k in range(first, first + np.uint64(path.dynamic_steps)):
        step = tables.dynamic_steps[k]
        address = stream.registers[bases + np.uint64(step.base)] + step.offset
        if path.flags & TEMPLATE_TERMS:
            address += _terms(step, stream.iterations, np.uint64(frame.loop_base))
        size = stream.registers[bases + np.uint64(step.size_base)] + step.size
        if step.code == ALLOC:
            n = begin(stream, frame, step, out, n, address, size)
        elif step.code == FREE:
            n = finish(stream, frame, step, out, n, address)
        elif step.code == FRAME:
            frame.address = address
        else:
            if step.flags & (STEP_GLOBAL | STEP_STACK):
                check_object(tables, stream, np.int64(bases), step, address, size)
            if size != 0:
                if step.flags & STEP_LOADS_TOO:
                    n = emit(out, n, LOAD, step.subject, address, size)
                n = emit(out, n, step.kind, step.subject, address, size)
        n = _deliver(tables, stream, frame, path, step, out, n, bases)
    return n


@inlined
def _define(tables: Tables, registers: U8, path: Any, bases: Int) -> None:
    """Set the registers that the path defines; its own addresses have used the words.

    Whole pairs: padding sets a register that nothing uses.
    """
    first, pair = np.uint64(path.first_define), np.uint64(0)
    while True:
        for k in range(PAIR):
            define = tables.defines[first + pair + np.uint64(k)]
            registers[bases + np.uint64(define.register)] = registers[bases + np.uint64(define.word)]
        pair += np.uint64(PAIR)
        if pair >= np.uint64(path.defines):
            break


@inlined
def _change(tables: Tables, stream: Stream, frame: Any, path: Any) -> None:
    """The loops that the path leaves open, and their iterations."""
    levels = np.int64(frame.loop_base)
    for k in range(np.int64(path.first_change), np.int64(path.first_change) + np.int64(path.changes)):
        change = tables.changes[k]
        level = levels + np.int64(change.level)
        if change.opens:
            stream.open_loops[level] = change.loop
            stream.iterations[level] = 0
        else:
            stream.iterations[level] += np.uint64(1)
    frame.loop = path.last_loop
    frame.loops = path.last_depth
