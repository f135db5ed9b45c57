"""Allocates and grows the state that ``kernels/dependence.py`` works on."""

from __future__ import annotations

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.formats.image import OpKind
from tracekit.replay.contextstate import empty_contexts, grow_contexts
from tracekit.replay.kernels import engine as dep
from tracekit.replay.kernels import objects as obj
from tracekit.replay.kernels.contexts import Stream
from tracekit.replay.kernels.engine import Engine
from tracekit.replay.kernels.hashmap import grown, hash_map
from tracekit.replay.kernels.objects import Objects
from tracekit.replay.program import Program
from tracekit.replay.shadow import empty_shadow, grow_shadow, lengthened

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
        contexts=empty_contexts(program, context, capacity),
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


def grow(engine: Engine, stream: Stream, status: int) -> tuple[Engine, Stream]:
    """Give room to what the kernel's `status` says is used up. Raises TracekitError for damaged events."""
    if status == dep.TOO_LARGE:
        raise TracekitError("The trace is damaged: an event claims more bytes than a program can have.")
    if status >= dep.OBJECTS:
        return engine._replace(objects=grow_objects(engine.objects, status - dep.OBJECTS)), stream
    if status >= dep.CONTEXTS:
        contexts, stream = grow_contexts(engine.contexts, stream, status - dep.CONTEXTS)
        return engine._replace(contexts=contexts), stream
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
