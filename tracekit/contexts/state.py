"""Allocates the state that ``kernels/contexts.py`` works on, and makes room in it for the next batch."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.contexts.kernels import streams, tree
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.static_ids import static_tree
from tracekit.formats.errors import TracekitError
from tracekit.program.program import Program

SPILL_BYTES = 256 << 20
"""Starts of iterations beyond this live in an unnamed file, so that the system may write them out."""

MOST_CONTEXTS = 1 << 28
MOST_NODES = 1 << 16
"""So many contexts are told apart before calls inside recursions count where CAMP's rule has its leaf."""


def empty_contexts(program: Program, rule: int, most: int = MOST_NODES) -> Contexts:
    """The context tree before the first event, by one of the rules of ``kernels/tree.py``.

    DYNAMIC: from `most` nodes on a call inside a recursion makes no new one.
    """
    nodes = hash_table(tree.NODE_FIELDS, MOST_CONTEXTS)
    for field in ("parent", "function", "loop", "call", "external", "camp_id"):
        nodes.rows[field][0] = -1
    static = static_tree(program)
    called, named = nothing_at_hand()
    return Contexts(
        nodes,
        hash_table([], MOST_CONTEXTS),
        rule=np.array([rule], np.int64),
        nodes=np.array([0, most], np.int64),
        called=called,
        named=named,
        recursing=static.recursive.copy(),
        **static._asdict(),
    )


def nothing_at_hand() -> tuple[NDArray[Any], NDArray[Any]]:
    """``called`` and ``named`` of Contexts before the first event."""
    called, named = arena.side_by_side((1 << tree.CALLED_BITS, tree.CALLED), (1 << tree.NAMED_BITS, tree.NAMED))
    return called, named


def nodes_of(contexts: Contexts) -> NDArray[Any]:
    """The rows of the tree made so far."""
    return used_rows(contexts.tree)


def empty_stream(number: int, contexts: int) -> Stream:
    """The state of stream `number` before its first event, with room for so many contexts.

    Raises TracekitError if there are too many streams.
    """
    if number >> (63 - streams.STREAM_BITS):
        raise TracekitError("The trace has more streams than one profile can tell apart (524,288).")
    control = np.zeros(streams.CONTROL, np.int64)
    control[streams.CLOCK] = number << streams.STREAM_BITS
    control[streams.LEAF_LEVEL] = -1
    control[streams.CHAIN] = streams.NO_LOOPS
    return Stream(
        control=control,
        frames=np.zeros(1, streams.FRAME),
        levels=np.zeros(1, streams.LEVEL),
        telling=np.zeros(2, streams.TELLING_LEVEL),
        begun=np.array([0, streams.NEVER, 0, 0], np.int64),
        recent=np.zeros(streams.RECENT, np.int64),
        runs=np.zeros(1, streams.RUN),
        dated=np.zeros(streams.DATED, streams.DATE),
        open=arena.reserve("i4", contexts),
    )


def with_room(stream: Stream, events: int) -> Stream:
    """The stream with room for `events` more events, each of which may open a frame, a level and a run."""
    control = stream.control
    if control[streams.FRAMES] + events > len(stream.frames):
        stream = stream._replace(frames=_lengthened(stream.frames, control[streams.FRAMES] + events))
    if control[streams.LEVELS] + events > len(stream.levels):
        stream = stream._replace(levels=_lengthened(stream.levels, control[streams.LEVELS] + events))
        stream = stream._replace(telling=_lengthened(stream.telling, len(stream.levels) + 1))
        stream = stream._replace(begun=_lengthened(stream.begun, 2 * len(stream.levels) + 4))
        stream = stream._replace(recent=_lengthened(stream.recent, streams.RECENT * len(stream.levels)))
    if control[streams.RUNS] + events > len(stream.runs):
        stream = stream._replace(runs=_lengthened(stream.runs, control[streams.RUNS] + events))
    return stream


def _lengthened(rows: NDArray[Any], least: int) -> NDArray[Any]:
    """A copy of `rows` with at least `least` rows, and at least twice the room, zeros behind."""
    room = max(2 * len(rows), int(least))
    if room * rows.itemsize <= SPILL_BYTES:
        longer: NDArray[Any] = np.zeros(room, rows.dtype)
    else:
        with tempfile.TemporaryFile() as file:  # lives on, without a name, as long as it is mapped
            longer = np.memmap(file, rows.dtype, "w+", shape=(room,)).view(np.ndarray)
    longer[: len(rows)] = rows
    return longer
