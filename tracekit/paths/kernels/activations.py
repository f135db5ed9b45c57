"""Which activation a record belongs to, by the rules of formats/SPEC.md ("A path record"), for walks over a stream.

A stream has `scalars`, of which TOP and BROKEN are used here, and `frames`, whose rows have at least these fields:
`function`, NONE at the bottom of a signal handler; `pending`, the open call, NONE without one; `address`, which the
activation recorded; and `tail`. What else a frame has, and what comes of it when it begins and ends, is its walk's
(walk.py here, and that of tracekit/taskgraph/kernels). replay/kernels/derive.py does the same for events.

`path` is the row of a record's id in a walk's table of records, `words` (n) u8 the words of all records, `word` where
the record's begin. A frame is the row of `frames`; -1: there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.limits import SEARCHES
from tracekit.jit.kernel import inlined, kernel
from tracekit.paths.kernels.layouts import BROKEN, LANDS, TOP

NO = np.uint32(NONE)
PUSHED = 3
"""Frames that a record may need room for, at the most."""


@inlined
def has_room(stream: Any) -> Any:
    """Whether there are frames enough for what a record may push."""
    return stream.scalars[TOP] + PUSHED <= len(stream.frames)


@inlined
def continues_top(stream: Any, path: Any) -> Any:
    """Whether a record is simply the top frame going on, at the call that is open there or without one."""
    top = stream.scalars[TOP]
    return (
        top >= 0
        and stream.frames[top].function == path.function
        and stream.frames[top].pending == path.continues
        and not path.flags & LANDS
    )


@inlined
def note_call(frame: Any, path: Any, words: Any, word: Any) -> None:
    """What a frame is at behind a record whose words begin at `word`: its open call, its address."""
    frame.pending = path.call
    if path.frame_word != NO:
        frame.address = words[word + np.uint64(path.frame_word)]


@inlined
def has_landed(path: Any) -> Any:
    """Whether control arrived at a record by unwinding, to an activation that its word tells."""
    return path.flags & LANDS != 0 and path.landing_word != NO


@kernel
def activation_of(stream: Any, path: Any, words: Any, word: Any) -> int:
    """The frame of a record that is not simply the top one going on, or -1; a record that breaks the rules counts."""
    target = -1
    if has_landed(path):
        target = frame_at(stream, path.function, words[word + np.uint64(path.landing_word)])
    elif path.continues != NO:
        target = topmost(stream, path.function, path.continues)
    if target < 0:
        stream.scalars[BROKEN] += 1
        target = topmost(stream, path.function, NO)
    return int(target)


@inlined
def _damaged(stream: Any) -> Any:
    return stream.scalars[BROKEN] > SEARCHES


@kernel
def frame_at(stream: Any, function: Any, address: Any) -> int:
    """The frame that recorded this address, or -1."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        if stream.frames[top].address == address and stream.frames[top].function == function:
            return int(top)
        if _damaged(stream):
            break
        top -= 1
    return -1


@kernel
def resumed_at(stream: Any, address: Any) -> int:
    """The frame that control is back in, one of those that a window found; the top one if there is none."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        if stream.frames[top].address == address:
            return int(top)
        top -= 1
    return int(stream.scalars[TOP])


@kernel
def topmost(stream: Any, function: Any, call: Any) -> int:
    """The topmost frame of a function in which a call is open, or, for NONE, whatever it is at; or -1."""
    top = stream.scalars[TOP]
    while top >= 0 and stream.frames[top].function != NO:
        if stream.frames[top].function == function and (call == NO or stream.frames[top].pending == call):
            return int(top)
        if _damaged(stream):
            break
        top -= 1
    return -1
