"""Derives events from the records of one stream: the heart of replay.

Most records take the way of templates.py; ``_record`` here takes the others.

One call takes the records of a chunk, ``ids`` (uint32) and ``words`` (uint64), from where ``cursor`` stands, appends
events to ``out`` and says why it stopped (layouts.py). Before a record changes anything its room is made sure of, so
that the kernel may stop before any record and be called again with larger arrays.

Rules: docs/internals/replay.md. A record that breaks them is counted as a violation, and replay goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import FIRST_PATH
from tracekit.formats.image import BlockFlag
from tracekit.formats.limits import SEARCHES
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.accesses import run_steps
from tracekit.replay.kernels.frames import (
    EXTERNAL_CALL,
    FUNCTION_ENTRY,
    HEADER,
    LANDING,
    LOOP_ITERATION,
    NO,
    close_loops,
    emit,
    emit_if,
    end_tail,
    free_objects,
    leave,
    move_to,
    pop,
    push,
    unwind,
    violate,
)
from tracekit.replay.kernels.iterations import is_done
from tracekit.replay.kernels.layouts import (
    BLOCK_EFFECTS,
    BLOCK_TAIL_EFFECTS,
    BLOCK_TAIL_LEAVES,
    CREATED,
    FILLED,
    FRAMES,
    FULL,
    I8,
    INPUT,
    LOOK,
    LOOPS,
    LOST,
    MAY_START,
    NEED,
    NEXT_EVENT,
    NEXT_TICKET,
    NO_CALL,
    NO_FRAME,
    NO_PATH,
    NOT_CONTINUED,
    NOT_OPEN,
    OBJECTS,
    PATIENCE,
    RECORD,
    RECORDS,
    REGISTERS,
    RUN_DONE,
    SPARE,
    STACK,
    TEMPLATE_UNKNOWN,
    TICKET,
    TOP,
    U4,
    U8,
    UNKNOWN_LANDING,
    WORD,
    WRONG_ADDRESS,
    Columns,
    Int,
    Process,
    Stream,
    Tables,
)
from tracekit.replay.kernels.recorded import THREAD_START, deliver, room_to_unwind
from tracekit.replay.kernels.templates import replay_templates

ENTRY = np.uint32(BlockFlag.ENTRY)
ENDS = np.uint32(BlockFlag.RETURNS | BlockFlag.TAIL_CALL)
RETURNS = np.uint32(BlockFlag.RETURNS)
EFFECTS = np.uint32(BLOCK_EFFECTS)
TAIL_LEAVES = np.uint32(BLOCK_TAIL_LEAVES)
TAIL_EFFECTS = np.uint32(BLOCK_TAIL_EFFECTS)
ABSENT = -1
"""Returned where there is no activation to go on with."""
WAIT = -2
"""Returned where the columns have too little room."""


@kernel
def derive(
    tables: Tables, stream: Stream, process: Process, out: Columns, ids: U4, words: U8, cursor: I8, limit: Int
) -> Int:
    """Replay records from cursor[RECORD] on; stop before one whose ticket exceeds `limit`. Returns a status."""
    start = stream.scalars[RECORDS] - cursor[RECORD]
    status = INPUT
    while status == INPUT and cursor[RECORD] < len(ids):
        replay_templates(tables, stream, out, ids, words, cursor, start)
        if cursor[RECORD] < len(ids):
            stream.scalars[RECORDS] = start + cursor[RECORD]
            status = _record(tables, stream, process, out, ids, words, cursor, limit)
    stream.scalars[RECORDS] = start + cursor[RECORD]
    return status


@kernel
def _record(
    tables: Tables, stream: Stream, process: Process, out: Columns, ids: U4, words: U8, cursor: I8, limit: Int
) -> Int:
    """Replay the next record, whatever it is. Returns INPUT, or why it has to wait (CREATED: it has not)."""
    scalars = stream.scalars
    identity = np.int64(ids[cursor[RECORD]])
    word = cursor[WORD]
    if identity < FIRST_PATH:
        arity = tables.event_words[identity, 3]
        if arity < 0 or word + arity > len(words):
            return _give_up(stream, cursor, len(ids))
        if tables.event_words[identity, 4]:
            cursor[NEXT_EVENT] = identity
            cursor[NEXT_TICKET] = min(words[word], np.uint64(1 << 62))
            if cursor[NEXT_TICKET] > limit or (identity == THREAD_START and not scalars[MAY_START]):
                return TICKET
        status = deliver(tables, stream, process, out, cursor, identity, words, word)
        if status == INPUT or status == CREATED:
            if identity == THREAD_START:
                scalars[MAY_START] = 0
            _advance(cursor, arity)
        return status
    if identity >= len(tables.paths) or tables.paths[identity].block == NO:
        return _give_up(stream, cursor, len(ids))
    if tables.templates[identity].flags & TEMPLATE_UNKNOWN:
        if scalars[PATIENCE] <= 0:
            return LOOK
        scalars[PATIENCE] -= 1
    path = tables.paths[identity]
    if word + np.int64(path.words) > len(words):
        return _give_up(stream, cursor, len(ids))
    if path.run and is_done(tables, stream, path, out, cursor, words[word]):
        scalars[RUN_DONE] = 0
        _advance(cursor, 1)
        return INPUT
    need = np.int64(path.room)
    if path.leaves and scalars[TOP] >= 0:
        need += scalars[OBJECTS] - np.int64(stream.frames[scalars[TOP]].object_base)
    if cursor[FILLED] + need > len(out.kind) or not _has_room(out.wide, np.int64(path.words)):
        cursor[NEED] = need
        return FULL
    if path.allocs and scalars[OBJECTS] + np.int64(path.allocs) > len(stream.objects):
        return STACK
    status = _follow(tables, stream, out, path, words, cursor)
    if status == INPUT and path.run and _is_function(stream, tables.blocks[path.block].function):
        scalars[RUN_DONE] += 1  # one iteration; the next ones when the kernel comes back to this record
    elif status == INPUT:
        _advance(cursor, np.int64(path.words))
    return status


@inlined
def _has_room(wide: Any, words: Int) -> Int:
    """Whether so many words of values have room, if values were asked for."""
    if wide is not None:
        return wide.filled[0] + words <= len(wide.words)
    return True


@inlined
def _is_function(stream: Stream, function: Int) -> Int:
    """Whether the top frame is one of the function: not, after a path that found none."""
    return stream.scalars[TOP] >= 0 and stream.frames[stream.scalars[TOP]].function == function


@inlined
def _advance(cursor: I8, words: Int) -> None:
    cursor[RECORD] += 1
    cursor[WORD] += words


@inlined
def _give_up(stream: Stream, cursor: I8, records: Int) -> Int:
    """A record that cannot be: without its length it hides those after it in the batch."""
    violate(stream, NO_PATH)
    cursor[RECORD] = records
    return INPUT


@inlined
def _follow(tables: Tables, stream: Stream, out: Columns, path: Any, words: U8, cursor: I8) -> Int:
    """Replay one path record. Returns INPUT, or the status that keeps it from being replayed yet."""
    block = tables.blocks[path.block]
    n = cursor[FILLED]
    word = cursor[WORD]
    top = stream.scalars[TOP]
    if block.flags & ENTRY:
        status = _room_for_entry(tables, stream, block.function)
        if status != INPUT:
            return status
        n = _enter(tables, stream, block, out, n)
    elif (
        top >= 0
        and stream.frames[top].function == block.function
        and stream.frames[top].pending == block.continues
        and not (block.flags & LANDING)
    ):
        frame = stream.frames[top]
        if (block.flags & EFFECTS) and not frame.entered:
            n = emit(out, n, EXTERNAL_CALL, block.continues, 0, 0)
    else:
        n = _arrive(tables, stream, block, words, word, out, cursor, np.int64(path.room))
        if n == WAIT:
            return FULL
        if n == ABSENT:
            return INPUT
    for k in range(np.int64(path.first), np.int64(path.first) + np.int64(path.blocks)):
        row = tables.members[k]
        n = _visit(tables, stream, row, out, n, words, word)
        word += np.int64(tables.blocks[row].words)
    cursor[FILLED] = n
    return INPUT


@inlined
def _visit(tables: Tables, stream: Stream, row: Int, out: Columns, n: Int, words: U8, word: Int) -> Int:
    """Replay one block in the top frame: loop events, operations, and what ends with it."""
    block = tables.blocks[row]
    frame = stream.frames[stream.scalars[TOP]]
    if block.loop != frame.loop:
        n = move_to(tables, stream, frame, block.loop, block.flags & HEADER, block.flags & LANDING, out, n)
    elif block.flags & HEADER:
        stream.iterations[np.int64(frame.loop_base) + np.int64(frame.loops) - 1] += np.uint64(1)
        n = emit_if(out.loops, out, n, LOOP_ITERATION, block.loop, 0, 0)
    n = run_steps(tables, stream, frame, block, out, n, words, word)
    frame.block = row
    frame.pending = block.call
    frame.entered = 0
    if block.flags & ENDS:
        n = _end(stream, frame, block, out, n)
    return n


@inlined
def _end(stream: Stream, frame: Any, block: Any, out: Columns, n: Int) -> Int:
    """A block that returns, or whose tail call will return for it."""
    if block.flags & RETURNS:
        return leave(stream, out, n)
    n = close_loops(stream, frame, out, n, NO)
    n = free_objects(stream, frame, out, n)
    frame.tail = 2 if block.flags & TAIL_LEAVES else 1
    frame.effects = 1 if block.flags & TAIL_EFFECTS else 0
    return n


@inlined
def _room_for_entry(tables: Tables, stream: Stream, function: Int) -> Int:
    top = stream.scalars[TOP]
    if top + 2 > len(stream.frames):
        return FRAMES
    loops, registers = np.int64(0), np.int64(0)
    if top >= 0:
        frame = stream.frames[top]
        loops, registers = np.int64(frame.loop_base), np.int64(frame.register_base)
        if frame.function != NO:
            loops += np.int64(tables.functions[frame.function].depth)
            registers += np.int64(tables.functions[frame.function].slots)
    if loops + np.int64(tables.functions[function].depth) > len(stream.open_loops):
        return LOOPS
    if registers + np.int64(tables.functions[function].slots) + SPARE > len(stream.registers):
        return REGISTERS
    return INPUT


@inlined
def _enter(tables: Tables, stream: Stream, block: Any, out: Columns, n: Int) -> Int:
    """A function is entered from the open call of the top frame, or as a root."""
    scalars = stream.scalars
    if scalars[TOP] >= 0 and stream.frames[scalars[TOP]].tail == 2:
        n = end_tail(stream, out, n)
    call = NO
    if scalars[TOP] >= 0:
        frame = stream.frames[scalars[TOP]]
        call = frame.pending
        if call != NO:
            frame.entered = 1
        elif frame.function != NO:
            violate(stream, NO_CALL)
        # In a chain of tail calls only the first frame is kept, or a loop of them would never stop growing.
        if frame.tail and scalars[TOP] >= 1 and stream.frames[scalars[TOP] - 1].tail:
            n = pop(stream, out, n, 0)
    push(tables, stream, block.function)
    return emit_if(out.functions, out, n, FUNCTION_ENTRY, block.function, 0, call)


@kernel
def _arrive(
    tables: Tables, stream: Stream, block: Any, words: U8, word: Int, out: Columns, cursor: I8, room: Int
) -> Int:
    """Find the activation that a block belongs to when it is not simply the top frame going on, and unwind to it."""
    scalars = stream.scalars
    n = cursor[FILLED]
    landed = (block.flags & LANDING) != 0 and block.landing_word != NO
    target = ABSENT
    if landed:
        target = _find_landing(stream, block.function, words[word + np.int64(block.landing_word)])
        broken = UNKNOWN_LANDING
    elif block.continues != NO:
        target = _find_call(stream, block.function, block.continues)
        broken = NOT_OPEN
    else:
        broken = NOT_CONTINUED
    known = target >= 0
    if not known:
        target = _find_function(stream, block.function)
        if target < 0:
            broken = NO_FRAME
    need = room + room_to_unwind(stream, target)
    if target >= 0 and n + need > len(out.kind):
        cursor[NEED] = need
        return WAIT
    if not known:
        violate(stream, broken)
        if target < 0:
            return ABSENT
    frame = stream.frames[target]
    first_return = landed and scalars[TOP] == target and frame.pending == block.continues
    n = unwind(stream, out, n, target)
    if landed:
        scalars[LOST] = 0
        frame.tail = 0
        if not first_return:
            frame.block = NO
    elif known and (block.flags & EFFECTS) and not frame.entered:
        n = emit(out, n, EXTERNAL_CALL, block.continues, 0, 0)
    return n


@inlined
def _damaged(stream: Stream) -> Int:
    return stream.violations[:WRONG_ADDRESS, 0].sum() > SEARCHES


@kernel
def _find_landing(stream: Stream, function: Int, address: Int) -> Int:
    """The frame that recorded this address, or ABSENT."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        frame = stream.frames[top]
        if frame.address == address and frame.function == function:
            return top
        if _damaged(stream):
            break
        top -= 1
    return ABSENT


@kernel
def _find_call(stream: Stream, function: Int, call: Int) -> Int:
    """The topmost frame of a function in which this call is open, or ABSENT."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        if stream.frames[top].pending == call and stream.frames[top].function == function:
            return top
        if _damaged(stream):
            break
        top -= 1
    return ABSENT


@kernel
def _find_function(stream: Stream, function: Int) -> Int:
    """The topmost frame of a function, or ABSENT."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        if stream.frames[top].function == function:
            return top
        if _damaged(stream):
            break
        top -= 1
    return ABSENT
