"""Turns of streams, one after another, without a way back to Python: threads that often hand over have many short ones.

A turn is a call of the derive kernel; its events are appended to the columns that all streams have in common. What the
turn of a stream needs beside its records (more of them, larger arrays, templates) is left to the engine, and so are
threads that begin.
"""

from __future__ import annotations

from typing import Any

from tracekit.jit.call_table import ARRAY_ADDRESS, ARRAY_ITEMS, ARRAY_LENGTH, call
from tracekit.jit.kernel import inlined, kernel
from tracekit.replay.kernels.layouts import FILLED, NEXT_EVENT, NEXT_TICKET, TICKET
from tracekit.replay.kernels.recorded import THREAD_START

NO_LIMIT = (1 << 62) + 1

# Elements of the control.
READY = 0  # how many streams stand before an event with a ticket, and may have a turn
RUNNING = 1  # the stream whose turn is not over, or -1
LIMIT = 2  # the ticket up to which it may run
SO_FAR = 3  # events in the columns
TURNS = 4  # turns that they come from
PROBLEM = 5  # what a call has raised
OVER = 6  # turns that are over, with events or without
CONTROL = 7
"""How many there are."""

FAILED = -1
"""Returned where a call has raised something."""

# Columns of a turn.
STREAM = 0  # its row
END = 1  # how many events there are up to its last one


@kernel
def take_turns(
    codes: Any, words: Any, results: Any, limit_at: Any, cursors: Any, ready: Any, turns: Any, control: Any
) -> int:
    """Run streams in the order of their tickets, until one needs the engine, or no more turns fit. Returns a status.

    codes, words, results: the derive kernel's calls (jit/call_table.py), a row for each stream; limit_at: the word for
    the limit. cursors (streams, CURSOR), ready (streams) i8: rows of those that are ready, in any order; turns (n, 2)
    i8.
    """
    while control[TURNS] < len(turns) and control[READY] > 0:
        place = _next_turn(cursors, ready, control)
        stream = ready[place]
        if cursors[stream, NEXT_EVENT] == THREAD_START:
            break
        control[READY] -= 1
        ready[place] = ready[control[READY]]
        words[stream, limit_at] = control[LIMIT]
        cursors[stream, FILLED] = control[SO_FAR]
        control[RUNNING] = stream
        control[PROBLEM] = call(codes[stream], words, stream * words.shape[1], results)
        if control[PROBLEM] != 0:
            return FAILED
        note_turn(turns, control, stream, cursors[stream, FILLED])
        if results[0] != TICKET or cursors[stream, NEXT_EVENT] == THREAD_START:  # which may have to wait
            return int(results[0])
        control[RUNNING] = -1
        control[OVER] += 1
        ready[control[READY]] = stream
        control[READY] += 1
    return TICKET


@inlined
def _next_turn(cursors: Any, ready: Any, control: Any) -> Any:
    """The place of the stream with the lowest ticket (scheduler.py); it may run up to that of the next one."""
    first, second, count = 0, -1, control[READY]
    for place in range(1, count):
        if _is_before(cursors, ready[place], ready[first]):
            first, second = place, first
        elif second < 0 or _is_before(cursors, ready[place], ready[second]):
            second = place
    stream = ready[first]
    control[LIMIT] = cursors[ready[second], NEXT_TICKET] if second >= 0 else NO_LIMIT
    control[LIMIT] = max(control[LIMIT], cursors[stream, NEXT_TICKET])
    return first


@inlined
def _is_before(cursors: Any, stream: Any, other: Any) -> Any:
    """Whether the ticket of one stream is lower than that of another, or the same and its row comes first."""
    ticket, its = cursors[stream, NEXT_TICKET], cursors[other, NEXT_TICKET]
    return ticket < its or (ticket == its and stream < other)


@kernel
def note_turn(turns: Any, control: Any, stream: Any, filled: Any) -> None:
    """The columns are filled up to here, since the last turn by this stream."""
    if filled > control[SO_FAR]:
        last = control[TURNS] - 1
        if last < 0 or turns[last, STREAM] != stream:
            last += 1
            turns[last, STREAM] = stream
            control[TURNS] = last + 1
        turns[last, END] = filled
        control[SO_FAR] = filled


REFUSED = -1
"""Returned where a call has returned something other than 0."""


@kernel
def feed_turns(codes: Any, words: Any, results: Any, rows: Any, ends: Any, columns: Any) -> int:
    """Call a kernel with the events of each turn. Returns 0, REFUSED, or what a call has raised.

    codes, words, results: its calls (jit/call_table.py); rows (n) i8: that of each turn's stream; ends (n) i8: how many
    events there are up to the turn's last one; columns (c, 3) i8: of each array among the arguments that has an element
    for each event, its first word, the size of an element, its address.
    """
    begin = 0
    for turn in range(len(rows)):
        row, events = rows[turn], ends[turn] - begin
        for column in range(len(columns)):
            at = columns[column, 0]
            words[row, at + ARRAY_ITEMS] = events
            words[row, at + ARRAY_ADDRESS] = columns[column, 2] + begin * columns[column, 1]
            words[row, at + ARRAY_LENGTH] = events
        problem = call(codes[row], words, row * words.shape[1], results)
        if problem != 0:
            return int(problem)
        if results[0] != 0:
            return REFUSED
        begin = ends[turn]
    return 0
