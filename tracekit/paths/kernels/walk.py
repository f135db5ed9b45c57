"""Follows the records of one stream from activation to activation, and counts the paths of each.

A record costs one look into a table; its words are looked at only where they are sizes, numbers of iterations, or
names of activations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.limits import LONGEST_RUN
from tracekit.jit.kernel import inlined, kernel
from tracekit.paths.kernels.activations import (
    NO,
    activation_of,
    continues_top,
    has_landed,
    has_room,
    note_call,
    resumed_at,
)
from tracekit.paths.kernels.layouts import (
    ACCESSES,
    BROKEN,
    BYTES,
    CLOSED,
    DYNAMIC,
    ENTERS,
    EVENT,
    LOADS,
    PASSED,
    RETURNS,
    RUN,
    SILENT,
    STORES,
    TAIL,
    TOP,
    Counted,
    Stream,
    Walked,
)
from tracekit.paths.kernels.rows import begin, flush, step

LIBRARY_LOAD = CODE["library_load"]
LIBRARY_STORE = CODE["library_store"]
RESUMED_FRAME, RESUMED_RETURN = CODE["resumed_frame"], CODE["resumed_return"]
THREAD_EXIT = CODE["thread_exit"]
WINDOW_BEGIN, WINDOW_END = CODE["window_begin"], CODE["window_end"]
SIGNAL_ENTER = CODE["signal_enter"]
SIGNAL_LEAVE = CODE["signal_leave"]


@kernel
def walk(walked: Walked, counted: Counted, stream: Stream, ids: Any, words: Any, cursor: Any) -> int:
    """Count records from ``cursor[0]`` on, whose words begin at ``cursor[1]``.

    Returns 0 when all are done, 1 if the frames have to grow first.
    """
    scalars = stream.scalars
    record, word = np.uint64(cursor[0]), np.uint64(cursor[1])
    status = 0
    while record < np.uint64(len(ids)):
        identity = ids[record]
        path = walked.records[identity]
        if path.flags & (ENTERS | EVENT) and not has_room(stream):
            status = 1
            break
        if path.flags & EVENT:
            _event(counted, stream, identity, words, word)
        else:
            if path.flags & RUN:
                _run(walked, counted, stream, path, words, word)
            elif _find(walked, counted, stream, path, words, word):
                frame = stream.frames[scalars[TOP]]
                if not path.flags & ENTERS:
                    step(walked, counted, frame, path.segment, 1)
                if path.flags & DYNAMIC or path.segments > 1:
                    _others(walked, counted, stream, frame, path, words, word)
                scalars[ACCESSES] += path.accesses
                note_call(frame, path, words, word)
                if path.flags & (RETURNS | TAIL):
                    _end(counted, stream, frame, path)
        word += np.uint64(path.words)
        record += np.uint64(1)
    cursor[0], cursor[1] = record, word
    return status


@kernel
def end_all(counted: Counted, stream: Stream) -> None:
    """The stream is over: what is still open ends."""
    while stream.scalars[TOP] >= 0:
        _pop(counted, stream)


@inlined
def _find(walked: Walked, counted: Counted, stream: Stream, path: Any, words: Any, word: Any) -> Any:
    """Make the activation that a record belongs to the top frame; whether there is one.

    Of a record that begins one, the path has its first segment.
    """
    if path.flags & ENTERS:
        _enter(walked, counted, stream, path)
        return True
    return continues_top(stream, path) or _arrive(counted, stream, path, words, word)


@inlined
def _enter(walked: Walked, counted: Counted, stream: Stream, path: Any) -> None:
    """A function is entered from the open call of the top frame, or as a root."""
    scalars = stream.scalars
    site = np.uint32(0)
    if scalars[TOP] >= 0:
        if stream.frames[scalars[TOP]].tail == 2:
            _pop(counted, stream)
        if scalars[TOP] >= 0:
            frame = stream.frames[scalars[TOP]]
            if frame.pending != NO:
                site = frame.site if frame.tail else frame.row
            if frame.tail and scalars[TOP] >= 1 and stream.frames[scalars[TOP] - 1].tail:
                _pop(counted, stream)
    row = begin(walked, counted, site, path.segment)
    stream.active[path.function] += 1
    scalars[TOP] += 1
    frame = stream.frames[scalars[TOP]]
    frame.function = path.function
    frame.pending = NO
    frame.row = counted.rows.rows[row].next
    frame.site = 0
    frame.entry = row
    frame.tail = 0
    frame.address = 0
    frame.begun = scalars[ACCESSES]
    frame.inner = 0
    frame.loads = 0
    frame.stores = 0
    frame.bytes = 0


@inlined
def _end(counted: Counted, stream: Stream, frame: Any, path: Any) -> None:
    """A record that returns, or whose tail call will return for it."""
    if path.flags & RETURNS:
        _pop(counted, stream)
        while stream.scalars[TOP] >= 0 and stream.frames[stream.scalars[TOP]].tail:
            _pop(counted, stream)
    else:
        flush(counted.rows.rows, frame, frame.row)
        frame.site = frame.row
        frame.row = 0
        frame.tail = 2 if path.flags & CLOSED else 1


@inlined
def _pop(counted: Counted, stream: Stream) -> None:
    """End the top frame."""
    scalars = stream.scalars
    rows = counted.rows.rows
    frame = stream.frames[scalars[TOP]]
    scalars[TOP] -= 1
    if frame.function == NO:
        return
    flush(rows, frame, frame.row if frame.row != 0 else frame.site)
    below = scalars[ACCESSES] - frame.begun
    stream.active[frame.function] -= 1
    if stream.active[frame.function] == 0:  # of a recursion the outermost activation counts
        rows[frame.entry].below += below
    if scalars[TOP] >= 0:
        stream.frames[scalars[TOP]].inner += below


@inlined
def _others(walked: Walked, counted: Counted, stream: Stream, frame: Any, path: Any, words: Any, word: Any) -> None:
    """What is not in every record: accesses whose sizes are words, segments behind the first."""
    for segment in range(path.segment, path.segment + path.segments):
        own = walked.segments[segment]
        if segment != path.segment:
            step(walked, counted, frame, segment, 1)
            stream.scalars[ACCESSES] += own.accesses
        for k in range(own.dynamic, own.dynamic + own.dynamics):
            sized = walked.sized[k]
            size = words[word + np.uint64(sized.word)]
            if size != 0:
                _add(stream, frame, np.int64(sized.loads), np.int64(sized.stores), np.int64(size))


@inlined
def _add(stream: Stream, frame: Any, loads: Any, stores: Any, size: Any) -> None:
    frame.loads += loads
    frame.stores += stores
    frame.bytes += (loads + stores) * size
    stream.scalars[ACCESSES] += loads + stores


@kernel
def _run(walked: Walked, counted: Counted, stream: Stream, path: Any, words: Any, word: Any) -> None:
    """Many iterations of a loop: the first two are steps by themselves, and those after them repeat the second."""
    iterations = words[word]
    if path.flags & SILENT or iterations == 0:
        return
    if iterations > np.uint64(LONGEST_RUN):
        stream.scalars[BROKEN] += 1
        return
    if not _find(walked, counted, stream, path, words, word):
        return
    frame = stream.frames[stream.scalars[TOP]]
    left = np.int64(iterations)
    accesses = np.int64(0)
    for segment in range(path.segment, path.segment + path.segments):
        accesses += walked.segments[segment].accesses
    for times in (1, 1, left - 2):
        if left > 0:
            for segment in range(path.segment, path.segment + path.segments):
                step(walked, counted, frame, segment, times)
            stream.scalars[ACCESSES] += accesses * times
            left -= times
    frame.pending = NO


@kernel
def _event(counted: Counted, stream: Stream, code: Any, words: Any, word: Any) -> None:
    """A recorded event: accesses of the library, what ends activations."""
    scalars = stream.scalars
    if code == LIBRARY_LOAD or code == LIBRARY_STORE:
        size = np.int64(words[word + np.uint64(1)])
        loads = np.int64(code == LIBRARY_LOAD)
        if size != 0 and scalars[TOP] >= 0 and stream.frames[scalars[TOP]].function != NO:
            _add(stream, stream.frames[scalars[TOP]], loads, 1 - loads, size)
        elif size != 0:
            scalars[LOADS] += loads
            scalars[STORES] += 1 - loads
            scalars[BYTES] += size
    elif code == SIGNAL_ENTER:
        scalars[TOP] += 1
        bottom = stream.frames[scalars[TOP]]
        bottom.function = NO
        bottom.pending = NO
        bottom.row = 0
        bottom.site = 0
        bottom.tail = 0
    elif code == SIGNAL_LEAVE:
        while scalars[TOP] >= 0 and stream.frames[scalars[TOP]].function != NO:
            _pop(counted, stream)
        if scalars[TOP] >= 0:
            scalars[TOP] -= 1
    elif code == THREAD_EXIT or code == WINDOW_BEGIN or code == WINDOW_END:
        while scalars[TOP] >= 0:
            _pop(counted, stream)
    elif code == RESUMED_FRAME:
        if scalars[TOP] >= 0 and stream.frames[scalars[TOP]].function != NO:
            stream.frames[scalars[TOP]].address = words[word]
    elif code == RESUMED_RETURN:
        target = resumed_at(stream, words[word])
        while scalars[TOP] > target:
            _pop(counted, stream)


@kernel
def _arrive(counted: Counted, stream: Stream, path: Any, words: Any, word: Any) -> int:
    """Find the activation of a record that is not simply the top frame going on, and unwind to it."""
    scalars = stream.scalars
    target = activation_of(stream, path, words, word)
    if target < 0:
        scalars[PASSED] += 1
        return 0
    frame = stream.frames[target]
    first_return = scalars[TOP] == target and frame.pending == path.continues
    while scalars[TOP] > target:
        _pop(counted, stream)
    if has_landed(path):
        frame.tail = 0
        # A landing pad is where its invoke leads to. The second return of setjmp comes from anywhere.
        if path.continues != NO and not first_return and frame.row != 0:
            flush(counted.rows.rows, frame, frame.row)
            frame.row = 0
    return 1
