"""Follows the records of one stream, counts the paths of each step, and knows in which calls a step begins.

Activations are followed as by the walk that counts paths (tracekit/paths/kernels/activations.py); here nothing but
their open calls counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.formats.event_values import TaskStatus
from tracekit.formats.events import CODE
from tracekit.formats.limits import LONGEST_RUN
from tracekit.jit.kernel import inlined, kernel
from tracekit.paths.kernels.activations import NO, activation_of, continues_top, has_landed, has_room, note_call
from tracekit.paths.kernels.layouts import CLOSED, DYNAMIC, ENTERS, EVENT, RETURNS, RUN, SILENT, TAIL, Walked
from tracekit.taskgraph.kernels.layouts import BEGINNING, BROKEN, NUMBER, STEP_NOW, TOP, TOUCHED, Steps, Stream

LIBRARY_LOAD, LIBRARY_STORE = CODE["library_load"], CODE["library_store"]
THREAD_EXIT = CODE["thread_exit"]
TASK_SCHEDULE = CODE["task_schedule"]
SWITCH, YIELD = int(TaskStatus.SWITCH), int(TaskStatus.YIELD)
SIGNAL_ENTER, SIGNAL_LEAVE = CODE["signal_enter"], CODE["signal_leave"]
FOLDED = 64
"""A call that is open in one of so many activations below is recursion: it is the same context."""


@kernel
def walk(walked: Walked, steps: Steps, stream: Stream, ids: Any, words: Any, cursor: Any) -> int:
    """Make steps of the records from ``cursor[0]`` on, whose words begin at ``cursor[1]``, and count what each does.

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
            if steps.orders[identity]:
                _step(steps, stream, identity, path.words, words, word)
            _event(steps, stream, identity, words, word)
        elif path.flags & RUN:
            _run(stream, path, identity, words, word)
        elif _find(stream, path, words, word):
            _count(stream, identity, 1)
            if path.flags & DYNAMIC:
                _sized(walked, steps, stream, path, words, word)
            frame = stream.frames[scalars[TOP]]
            note_call(frame, path, words, word)
            if path.flags & (RETURNS | TAIL):
                _end(stream, frame, path)
        word += np.uint64(path.words)
        record += np.uint64(1)
    cursor[0], cursor[1] = record, word
    return status


# -- steps ---------------------------------------------------------------------------------------------


@kernel
def begin(steps: Steps, stream: Stream) -> None:
    """The stream begins."""
    row = take(steps.steps, 1)
    steps.steps.rows[row].stream = stream.scalars[NUMBER]
    stream.scalars[STEP_NOW] = row


@kernel
def close(steps: Steps, stream: Stream) -> None:
    """The present step is over: what it ran stands in a row for each path."""
    count = stream.scalars[TOUCHED]
    step = steps.steps.rows[stream.scalars[STEP_NOW]]
    step.uses = count
    step.use = steps.uses.control[0]
    for place in range(count):
        identity = stream.touched[place]
        use = steps.uses.rows[take(steps.uses, 1)]
        use.record = identity
        use.count = stream.counts[identity]
        stream.counts[identity] = 0
    stream.scalars[TOUCHED] = 0


@kernel
def _step(steps: Steps, stream: Stream, code: Any, arity: Any, words: Any, word: Any) -> None:
    """An event begins a step."""
    close(steps, stream)
    row = take(steps.steps, 1)
    step = steps.steps.rows[row]
    step.code = code
    step.stream = stream.scalars[NUMBER]
    step.ticket = words[word]
    if arity > 1:
        step.subject = words[word + np.uint64(1)]
    if arity > 2:
        step.other = words[word + np.uint64(2)]
    if arity > 3:
        step.third = words[word + np.uint64(3)]
    step.context = _context(steps, stream)
    stream.scalars[STEP_NOW] = row


@kernel
def _context(steps: Steps, stream: Stream) -> int:
    """The context of the open call of the top frame; recursion is folded. 0 without a frame."""
    frames, top = stream.frames, stream.scalars[TOP]
    place = top
    while place >= 0 and frames[place].context == 0:
        place -= 1
    for new in range(place + 1, top + 1):
        frame = frames[new]
        if frame.function == NO:
            frame.context = NO
        elif new == 0 or frame.root or frames[new - 1].function == NO or frames[new - 1].pending == NO:
            frame.context = row_of(steps.contexts, frame.function)
        else:
            frame.context = _called(steps, stream, new)
    if top < 0 or frames[top].function == NO:
        return 0
    if frames[top].pending == NO:
        return int(frames[top].context)
    return int(row_of(steps.contexts, np.uint64(frames[top].context) << np.uint64(32) | np.uint64(frames[top].pending)))


@kernel
def _called(steps: Steps, stream: Stream, place: Any) -> int:
    """The context of a frame that was called from the one below it, whose context is known."""
    frames = stream.frames
    call = frames[place - 1].pending
    other = place - 2
    while other >= 0 and other > place - FOLDED and frames[other].function != NO and not frames[other + 1].root:
        if frames[other].pending == call and frames[other].function == frames[place - 1].function:
            return int(frames[other + 1].context)
        other -= 1
    return int(row_of(steps.contexts, np.uint64(frames[place - 1].context) << np.uint64(32) | np.uint64(call)))


# -- what runs -----------------------------------------------------------------------------------------


@inlined
def _count(stream: Stream, identity: Any, times: Any) -> None:
    if stream.counts[identity] == 0:
        stream.touched[stream.scalars[TOUCHED]] = identity
        stream.scalars[TOUCHED] += 1
    stream.counts[identity] += times


@kernel
def _run(stream: Stream, path: Any, identity: Any, words: Any, word: Any) -> None:
    """Many iterations of a loop."""
    iterations = words[word]
    if path.flags & SILENT or iterations == 0:
        return
    if iterations > np.uint64(LONGEST_RUN):
        stream.scalars[BROKEN] += 1
    elif _find(stream, path, words, word):
        _count(stream, identity, np.int64(iterations))
        stream.frames[stream.scalars[TOP]].pending = NO


@kernel
def _sized(walked: Walked, steps: Steps, stream: Stream, path: Any, words: Any, word: Any) -> None:
    """Accesses whose sizes are words."""
    for segment in range(path.segment, path.segment + path.segments):
        own = walked.segments[segment]
        for k in range(own.dynamic, own.dynamic + own.dynamics):
            sized = walked.sized[k]
            size = words[word + np.uint64(sized.word)]
            if size != 0:
                _add(steps, stream, np.int64(sized.loads), np.int64(sized.stores), np.int64(size))


@inlined
def _add(steps: Steps, stream: Stream, loads: Any, stores: Any, size: Any) -> None:
    step = steps.steps.rows[stream.scalars[STEP_NOW]]
    step.loads += loads
    step.stores += stores
    step.bytes += (loads + stores) * size


@kernel
def _event(steps: Steps, stream: Stream, code: Any, words: Any, word: Any) -> None:
    """A recorded event: accesses of the library, what ends activations."""
    scalars = stream.scalars
    if code == LIBRARY_LOAD or code == LIBRARY_STORE:
        size = np.int64(words[word + np.uint64(1)])
        if size != 0:
            loads = np.int64(code == LIBRARY_LOAD)
            _add(steps, stream, loads, 1 - loads, size)
    elif code == SIGNAL_ENTER:
        _push(stream, NO)
    elif code == SIGNAL_LEAVE:
        while scalars[TOP] >= 0 and stream.frames[scalars[TOP]].function != NO:
            scalars[TOP] -= 1
        if scalars[TOP] >= 0:
            scalars[TOP] -= 1
    elif code == THREAD_EXIT:
        scalars[TOP] = -1
    elif code == TASK_SCHEDULE:
        status = words[word + np.uint64(1)]
        scalars[BEGINNING] = np.int64(status == SWITCH or status == YIELD)


# -- activations ---------------------------------------------------------------------------------------


@inlined
def _push(stream: Stream, function: Any) -> None:
    stream.scalars[TOP] += 1
    frame = stream.frames[stream.scalars[TOP]]
    frame.function = function
    frame.pending = NO
    frame.tail = 0
    frame.context = 0
    frame.root = stream.scalars[BEGINNING]
    frame.address = 0
    stream.scalars[BEGINNING] = 0


@inlined
def _find(stream: Stream, path: Any, words: Any, word: Any) -> Any:
    """Make the activation that a record belongs to the top frame; whether there is one."""
    if path.flags & ENTERS:
        _enter(stream, path)
        return True
    return continues_top(stream, path) or _arrive(stream, path, words, word)


@inlined
def _enter(stream: Stream, path: Any) -> None:
    """A function is entered from the open call of the top frame, or as a root."""
    scalars = stream.scalars
    if scalars[TOP] >= 0 and stream.frames[scalars[TOP]].tail == 2:
        scalars[TOP] -= 1
    if scalars[TOP] >= 1 and stream.frames[scalars[TOP]].tail and stream.frames[scalars[TOP] - 1].tail:
        scalars[TOP] -= 1
    _push(stream, path.function)


@inlined
def _end(stream: Stream, frame: Any, path: Any) -> None:
    """A record that returns, or whose tail call will return for it."""
    scalars = stream.scalars
    if path.flags & RETURNS:
        scalars[TOP] -= 1
        while scalars[TOP] >= 0 and stream.frames[scalars[TOP]].tail:
            scalars[TOP] -= 1
    else:
        frame.tail = 2 if path.flags & CLOSED else 1


@kernel
def _arrive(stream: Stream, path: Any, words: Any, word: Any) -> int:
    """Find the activation of a record that is not simply the top frame going on, and unwind to it."""
    target = activation_of(stream, path, words, word)
    if target < 0:
        return 0
    stream.scalars[TOP] = target
    if has_landed(path):
        stream.frames[target].tail = 0
    return 1
