"""Allocates the state that ``kernels/contexts.py`` works on, and makes room in it for the next batch."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.contexts.kernels import contexts as ctx
from tracekit.contexts.kernels.contexts import Contexts, Stream
from tracekit.contexts.static_ids import static_tree
from tracekit.formats.errors import TracekitError
from tracekit.program.program import Program

SPILL_BYTES = 256 << 20
"""Starts of iterations beyond this live in an unnamed file, so that the system may write them out."""

MOST_CONTEXTS = 1 << 28


def empty_contexts(program: Program, aware: bool) -> Contexts:
    """The context tree before the first event; without `aware` calls are not told apart: all loops have one root."""
    tree = hash_table(ctx.NODE_FIELDS, MOST_CONTEXTS)
    for field in ("parent", "function", "loop", "call", "external", "camp_id"):
        tree.rows[field][0] = -1
    return Contexts(tree, hash_table([], MOST_CONTEXTS), np.array([aware], np.int64), *static_tree(program))


def nodes_of(contexts: Contexts) -> NDArray[Any]:
    """The rows of the tree made so far."""
    return used_rows(contexts.tree)


def empty_stream(number: int, contexts: int) -> Stream:
    """The state of stream `number` before its first event, with room for so many contexts.

    Raises TracekitError if there are too many streams.
    """
    if number >> (63 - ctx.STREAM_BITS):
        raise TracekitError("The trace has more streams than one profile can tell apart (524,288).")
    control = np.zeros(ctx.CONTROL, np.int64)
    control[ctx.CLOCK] = number << ctx.STREAM_BITS
    control[ctx.LEAF_LEVEL] = -1
    return Stream(
        control=control,
        frames=np.zeros(1, ctx.FRAME),
        levels=np.zeros(1, ctx.LEVEL),
        recent=np.zeros(ctx.RECENT, np.int64),
        runs=np.zeros(1, ctx.RUN),
        dated=np.zeros(ctx.DATED, ctx.DATE),
        open=arena.reserve("i4", contexts),
    )


def with_room(stream: Stream, events: int) -> Stream:
    """The same stream with room for `events` more events, each of which may open a frame, a level and a run."""
    control = stream.control
    if control[ctx.FRAMES] + events > len(stream.frames):
        stream = stream._replace(frames=_lengthened(stream.frames, control[ctx.FRAMES] + events))
    if control[ctx.LEVELS] + events > len(stream.levels):
        stream = stream._replace(levels=_lengthened(stream.levels, control[ctx.LEVELS] + events))
        stream = stream._replace(recent=_lengthened(stream.recent, ctx.RECENT * len(stream.levels)))
    if control[ctx.RUNS] + events > len(stream.runs):
        stream = stream._replace(runs=_lengthened(stream.runs, control[ctx.RUNS] + events))
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
