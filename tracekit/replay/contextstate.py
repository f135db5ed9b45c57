"""Allocates and grows the state that ``kernels/contexts.py`` works on."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.replay.contexts import static_tree
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels.contexts import Contexts, Stream
from tracekit.replay.kernels.hashmap import grown, hash_map
from tracekit.replay.kernels.shadow import CACHED_PAGES, NOT_CACHED
from tracekit.replay.program import Program
from tracekit.replay.shadow import lengthened

SPILL_BYTES = 256 << 20
"""Starts of iterations beyond this live in an unnamed file, so that the system may write them out."""


def empty_contexts(program: Program, aware: bool, capacity: int) -> Contexts:
    """The context tree before the first event; without `aware` calls are not told apart: all loops have one root."""
    nodes = np.zeros(capacity + 1, ctx.NODE)
    for field in ("parent", "function", "loop", "call", "external", "camp_id"):
        nodes[field][0] = -1
    return Contexts(
        nodes, hash_map(capacity), hash_map(capacity), np.ones(1, np.int64), np.array([aware], np.int64),
        *static_tree(program),
    )


def empty_stream(number: int, capacity: int) -> Stream:
    """The state of stream `number` before its first event. Raises TracekitError if there are too many streams."""
    if number >> (63 - ctx.STREAM_BITS):
        raise TracekitError("The trace has more streams than one profile can tell apart (524,288).")
    control = np.zeros(ctx.CONTROL, np.int64)
    control[ctx.CLOCK] = number << ctx.STREAM_BITS
    control[ctx.LEAF_LEVEL] = control[ctx.RUN_INSTRUCTION] = -1
    control[ctx.STREAM] = number
    return Stream(
        control=control,
        frames=np.zeros(capacity, ctx.FRAME),
        levels=np.zeros(capacity, ctx.LEVEL),
        runs=np.zeros(capacity, ctx.RUN),
        open=np.zeros(capacity, np.int32),
        pages=np.full(2 * CACHED_PAGES, NOT_CACHED, np.int64),
    )


def grow_contexts(contexts: Contexts, stream: Stream, status: int) -> tuple[Contexts, Stream]:
    """Give room to what a status of kernels/contexts.py says is used up."""
    if status == ctx.NO_NODES:
        contexts = contexts._replace(nodes=lengthened(contexts.nodes), node_index=grown(contexts.node_index),
                                     sites=grown(contexts.sites))
        return contexts, stream
    if status == ctx.NO_FRAMES:
        return contexts, stream._replace(frames=lengthened(stream.frames))
    if status == ctx.NO_LEVELS:
        return contexts, stream._replace(levels=lengthened(stream.levels))
    if status == ctx.NO_RUNS:
        return contexts, stream._replace(runs=_lengthened_runs(stream.runs))
    if status == ctx.NO_OPEN:
        opened = np.zeros(len(contexts.nodes), np.int32)
        opened[: len(stream.open)] = stream.open
        return contexts, stream._replace(open=opened)
    raise AssertionError(f"status {status} is none of the contexts'")


def _lengthened_runs(runs: NDArray[Any]) -> NDArray[Any]:
    if 2 * runs.nbytes <= SPILL_BYTES:
        return lengthened(runs)
    with tempfile.TemporaryFile() as file:  # lives on, without a name, as long as it is mapped
        longer: NDArray[Any] = np.memmap(file, runs.dtype, "w+", shape=(2 * len(runs),))
    longer[: len(runs)] = runs
    return longer.view(np.ndarray)
