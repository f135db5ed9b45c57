"""Allocates and grows the state that ``kernels/dependence.py`` works on."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.image import OpKind
from tracekit.replay.contexts import static_tree
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels import engine as dep
from tracekit.replay.kernels import objects as obj
from tracekit.replay.kernels.contexts import Contexts, Stream
from tracekit.replay.kernels.engine import Engine
from tracekit.replay.kernels.hashmap import grown, hash_map
from tracekit.replay.kernels.objects import Objects
from tracekit.replay.kernels.shadow import CACHED_PAGES, NOT_CACHED
from tracekit.replay.program import Program
from tracekit.replay.shadow import empty_shadow, grow_shadow, lengthened

SPILL_BYTES = 256 << 20
"""Starts of iterations beyond this live in an unnamed file, so that the system may write them out."""

UPDATES = [OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.CALL]
"""Operations of which one execution may both load and store."""


def empty_engine(program: Program, context: bool, capacity: int) -> Engine:
    """The state before the first event; every table has room for `capacity` rows before it first grows."""
    instructions = np.zeros(len(program.ops) + 1, dep.INSTRUCTION)
    instructions["context"] = -1
    instructions["updates"][:-1] = np.isin(program.ops["kind"], UPDATES)
    instructions["updates"][-1] = 1
    control = np.zeros(dep.CONTROL, np.int64)
    control[dep.ACCESSES] = 1
    return Engine(
        contexts=_empty_contexts(program, context, capacity),
        shadow=empty_shadow(capacity),
        objects=empty_objects(capacity),
        instructions=instructions,
        accesses=np.zeros(capacity + 4, dep.ACCESS),
        access_index=hash_map(capacity),
        recent=np.zeros(2 * dep.RECENT * (capacity + 4), np.uint32),
        dependences=np.zeros(capacity, dep.DEPENDENCE),
        dependence_index=hash_map(capacity),
        level_rows=np.zeros(capacity, dep.LEVEL_ROW),
        level_index=hash_map(capacity),
        exposed=hash_map(capacity),
        dependence_objects=hash_map(capacity),
        identities=hash_map(capacity),
        pending=np.zeros(4, dep.PENDING),
        control=control,
    )


def _empty_contexts(program: Program, context: bool, capacity: int) -> Contexts:
    nodes = np.zeros(capacity + 1, ctx.NODE)
    for field in ("parent", "function", "loop", "call", "external", "camp_id"):
        nodes[field][0] = -1
    return Contexts(
        nodes, hash_map(capacity), hash_map(capacity), np.ones(1, np.int64), np.array([context], np.int64),
        *static_tree(program),
    )


def empty_objects(capacity: int) -> Objects:
    """A map without objects."""
    return Objects(
        page_index=hash_map(capacity),
        words=np.zeros(capacity * obj.WORDS, np.int32),
        bytes=np.zeros(8 * capacity, np.int32),
        bigs=np.zeros(capacity + 2, obj.EXTENT),
        cache=np.zeros(2 * obj.CACHED, np.int64),
        control=np.zeros(obj.CONTROL, np.int64),
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


def grow(engine: Engine, stream: Stream, status: int) -> tuple[Engine, Stream]:
    """Give room to what the kernel's `status` says is used up. Raises TracekitError for damaged events."""
    if status == dep.TOO_LARGE:
        raise TracekitError("The trace is damaged: an event claims more bytes than a program can have.")
    if status >= dep.OBJECTS:
        return engine._replace(objects=grow_objects(engine.objects, status - dep.OBJECTS)), stream
    if status >= dep.CONTEXTS:
        return _grow_contexts(engine, stream, status - dep.CONTEXTS)
    if status >= dep.SHADOW:
        return engine._replace(shadow=grow_shadow(engine.shadow, status - dep.SHADOW)), stream
    return _grow_tables(engine, status), stream


def _grow_tables(engine: Engine, status: int) -> Engine:
    if status == dep.NO_ACCESSES:
        return engine._replace(accesses=lengthened(engine.accesses), access_index=grown(engine.access_index),
                               recent=lengthened(engine.recent))
    if status == dep.NO_DEPENDENCES:
        return engine._replace(dependences=lengthened(engine.dependences),
                               dependence_index=grown(engine.dependence_index))
    if status == dep.NO_LEVEL_ROWS:
        return engine._replace(level_rows=lengthened(engine.level_rows), level_index=grown(engine.level_index))
    if status == dep.NO_EXPOSED:
        return engine._replace(exposed=grown(engine.exposed))
    if status == dep.NO_DEPENDENCE_OBJECTS:
        return engine._replace(dependence_objects=grown(engine.dependence_objects))
    if status == dep.NO_IDENTITIES:
        return engine._replace(identities=grown(engine.identities))
    if status == dep.NO_PENDING:
        return engine._replace(pending=lengthened(engine.pending))
    raise AssertionError(f"status {status} is unknown")


def grow_objects(objects: Objects, status: int) -> Objects:
    """The same map with twice the room of what `status` says is used up."""
    if status == obj.NO_PAGES:
        return objects._replace(page_index=grown(objects.page_index), words=lengthened(objects.words))
    if status == obj.NO_BYTES:
        return objects._replace(bytes=lengthened(objects.bytes))
    if status == obj.NO_BIGS:
        return objects._replace(bigs=lengthened(objects.bigs))
    raise AssertionError(f"status {status} is none of the objects'")


def _grow_contexts(engine: Engine, stream: Stream, status: int) -> tuple[Engine, Stream]:
    contexts = engine.contexts
    if status == ctx.NO_NODES:
        contexts = contexts._replace(nodes=lengthened(contexts.nodes), node_index=grown(contexts.node_index),
                                     sites=grown(contexts.sites))
        return engine._replace(contexts=contexts), stream
    if status == ctx.NO_FRAMES:
        return engine, stream._replace(frames=lengthened(stream.frames))
    if status == ctx.NO_LEVELS:
        return engine, stream._replace(levels=lengthened(stream.levels))
    if status == ctx.NO_RUNS:
        return engine, stream._replace(runs=_lengthened_runs(stream.runs))
    if status == ctx.NO_OPEN:
        opened = np.zeros(len(contexts.nodes), np.int32)
        opened[: len(stream.open)] = stream.open
        return engine, stream._replace(open=opened)
    raise AssertionError(f"status {status} is none of the contexts'")


def _lengthened_runs(runs: NDArray[Any]) -> NDArray[Any]:
    if 2 * runs.nbytes <= SPILL_BYTES:
        return lengthened(runs)
    with tempfile.TemporaryFile() as file:  # lives on, without a name, as long as it is mapped
        longer: NDArray[Any] = np.memmap(file, runs.dtype, "w+", shape=(2 * len(runs),))
    longer[: len(runs)] = runs
    return longer.view(np.ndarray)
