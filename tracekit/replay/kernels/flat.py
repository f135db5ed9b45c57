"""Replays flat paths (flat_paths.py), which is what most records are: no decision but those that a record needs.

Any other record, and one whose rules do not hold or whose room does not suffice, is left to derive.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined
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
    put,
)
from tracekit.replay.kernels.state import (
    FILLED,
    FLAT_EFFECTS,
    FLAT_ENTERS,
    FLAT_HEADER,
    FLAT_LEAVES,
    FLAT_LOOPS,
    FLAT_TERMS,
    FROM_NOTHING,
    FROM_WORDS,
    GROUP,
    I8,
    NO_VALUE,
    OBJECTS,
    PAIR,
    RECORD,
    RECORDS,
    TOP,
    U4,
    U8,
    WORD,
    Columns,
    Int,
    Stream,
    Tables,
)


@inlined
def flat_records(tables: Tables, stream: Stream, out: Columns, ids: U4, words: U8, cursor: I8, start: Int) -> None:
    """Replay records from cursor[RECORD] on as long as they are flat paths; `start`: records before ids[0]."""
    scalars = stream.scalars
    if scalars[TOP] < 0:
        return
    frame = stream.frames[scalars[TOP]]
    record, word, n = cursor[RECORD], cursor[WORD], cursor[FILLED]
    readable = words if len(words) > 0 else stream.registers
    known, room, end = len(tables.flat), len(out.kind), len(words)
    while record < len(ids) and ids[record] < known:
        path = tables.flat[ids[record]]
        flags = path.flags
        need = np.int64(path.room) + GROUP
        if flags & FLAT_LEAVES:
            need += scalars[OBJECTS] - np.int64(frame.object_base)
        if n + need > room or word + np.int64(path.words) > end:
            break
        if flags & FLAT_ENTERS:
            call = frame.pending
            if call == NO or frame.tail or not _has_room(tables, stream, frame, path.function):
                break
            frame.entered = 1
            frame = push(tables, stream, path.function)
            n = emit_if(out.functions, out, n, FUNCTION_ENTRY, path.function, 0, call)
        elif path.function != frame.function or path.continues != frame.pending:
            break
        elif (flags & FLAT_EFFECTS) and not frame.entered:
            n = emit(out, n, EXTERNAL_CALL, path.continues, 0, 0)
        if path.loop != frame.loop:
            scalars[RECORDS] = start + record
            n = move_to(tables, stream, frame, path.loop, flags & FLAT_HEADER, False, out, n)
        elif flags & FLAT_HEADER:
            stream.iterations[np.int64(frame.loop_base) + np.int64(frame.loops) - 1] += np.uint64(1)
            n = emit_if(out.loops, out, n, LOOP_ITERATION, path.loop, 0, 0)
        _moves(tables, stream, frame, path, out, n, words, word, readable)
        n += np.int64(path.moves)
        _define(tables, stream, frame, path, readable, word)
        if flags & FLAT_LOOPS:
            _change(tables, stream, frame, path)
        frame.block = path.block
        frame.pending = path.call
        frame.entered = 0
        record += 1
        word += np.int64(path.words)
        if flags & FLAT_LEAVES:
            n = leave(stream, out, n)
            if scalars[TOP] < 0:
                break
            frame = stream.frames[scalars[TOP]]
    cursor[RECORD], cursor[WORD], cursor[FILLED] = record, word, n


@inlined
def _has_room(tables: Tables, stream: Stream, frame: Any, function: Int) -> Int:
    """Whether the stream's arrays can take an activation of `function` above the top frame."""
    above, own = tables.functions[frame.function], tables.functions[function]
    return (stream.scalars[TOP] + 2 <= len(stream.frames)
            and np.int64(frame.loop_base) + np.int64(above.depth) + np.int64(own.depth) <= len(stream.open_loops)
            and np.int64(frame.register_base) + np.int64(above.slots) + np.int64(own.slots) <= len(stream.registers))


@inlined
def _moves(tables: Tables, stream: Stream, frame: Any, path: Any, out: Columns, n: Int, words: U8, word: Int,
           readable: U8) -> None:
    """Deliver the path's events, and some of no meaning behind them: whole groups need no branch for their end."""
    registers = np.int64(frame.register_base)
    first = np.int64(path.first_move)
    if path.flags & FLAT_TERMS:
        levels = np.int64(frame.loop_base)
        for group in range(0, np.int64(path.moves), GROUP):
            for k in range(GROUP):
                step, strides = tables.moves[first + group + k], tables.strides[first + group + k]
                address = _base(stream.registers, registers, words, word, step) + step.offset
                address += strides.stride1 * stream.iterations[levels + np.int64(strides.level1)]
                address += strides.stride2 * stream.iterations[levels + np.int64(strides.level2)]
                put(out, np.uint64(n + group + k), step.kind, step.subject, address, step.size)
                _put_value(out.value, np.uint64(n + group + k), readable, word, step)
        return
    group = 0
    while True:
        for k in range(GROUP):
            step = tables.moves[first + group + k]
            address = _base(stream.registers, registers, words, word, step) + step.offset
            put(out, np.uint64(n + group + k), step.kind, step.subject, address, step.size)
            _put_value(out.value, np.uint64(n + group + k), readable, word, step)
        group += GROUP
        if group >= np.int64(path.moves):
            break


@inlined
def _put_value(column: Any, n: Int, words: U8, word: Int, step: Any) -> None:
    """Fill in the value of an event, if values were asked for and it has one; chosen without a branch."""
    if column is not None:
        nothing = step.value == NO_VALUE
        value = words[np.uint64(0 if nothing else word + np.int64(step.value))]
        column[n] = np.uint64(0) if nothing else value


@inlined
def _base(registers: U8, first: Int, words: U8, word: Int, step: Any) -> Int:
    """The word or register that an address begins with, or 0; chosen without a branch."""
    bank = words if step.source == FROM_WORDS else registers
    at = word if step.source == FROM_WORDS else first
    nothing = step.source == FROM_NOTHING
    value = bank[np.uint64(0 if nothing else at + np.int64(step.base))]
    return np.uint64(0) if nothing else value


@inlined
def _define(tables: Tables, stream: Stream, frame: Any, path: Any, words: U8, word: Int) -> None:
    """Set the registers that the path defines; its own addresses have used the words.

    Whole pairs: padding sets a register that nothing uses to any word. There may be none left, so it takes the last.
    """
    last = len(words) - 1
    registers = np.int64(frame.register_base)
    first, pair = np.int64(path.first_define), 0
    while True:
        for k in range(PAIR):
            define = tables.defines[first + pair + k]
            stream.registers[np.uint64(registers + np.int64(define.register))] = \
                words[np.uint64(min(word + np.int64(define.word), last))]
        pair += PAIR
        if pair >= np.int64(path.defines):
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
