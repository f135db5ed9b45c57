"""Enters what is found: dependences with their counts, levels, distances and objects, and exposed reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.jit import inlined, kernel
from tracekit.replay.kernels import contexts as ctx
from tracekit.replay.kernels import objects as obj
from tracekit.replay.kernels.engine import (
    ACCESSES,
    DEPENDENCES,
    LEVEL_ROWS,
    NO_DEPENDENCE_OBJECTS,
    NO_DEPENDENCES,
    NO_EXPOSED,
    NO_LEVEL_ROWS,
    OK,
    RECENT,
    WAR,
)
from tracekit.replay.kernels.hashmap import HashMap, Int, find, is_full, put
from tracekit.replay.kernels.levels import is_apart, iteration_at


@inlined
def relate(engine: Any, stream: Any, kind: Any, source: Any, access: Any, stamp: Any, shared: Any,
            address: Any) -> Any:
    """Enter one dependence on the access `source` made at `stamp`, as shared_levels says; returns a status."""
    destination = np.int64(engine.accesses[access].printed)
    printed = np.int64(engine.accesses[source].printed)
    # A small cache of each destination's dependences: four with readers, as a store meets several at once, else two.
    way = 4 + (printed & 3) if kind == WAR else kind + (printed & 1)
    recent = np.uint32((destination * RECENT + way) * 2)
    if engine.recent[recent] != printed:
        row = _dependence_of(engine.dependences, engine.dependence_index, engine.control, kind, printed, destination)
        if row < 0:
            return NO_DEPENDENCES
        engine.recent[recent] = printed
        engine.recent[recent | 1] = row
    number = np.int64(engine.recent[recent | 1])
    dependence = engine.dependences[number]
    if dependence.execution != stream.control[ctx.EXECUTION]:
        identity = obj.identity_at(engine.objects, address)
        if identity != dependence.identity:
            if not _note_object(engine.dependences, engine.dependence_objects, number, identity):
                return NO_DEPENDENCE_OBJECTS
        dependence.execution = stream.control[ctx.EXECUTION]
        dependence.count += 1
    intra = shared >> 1
    if intra > 0:
        begun = stream.levels[intra - 1].invocation
        if dependence.mark < begun or (dependence.mark ^ begun) >> ctx.STREAM_BITS != 0:
            if not _mark_intra(engine.dependences, engine.level_rows, engine.level_index, engine.control,
                               stream.levels, number, intra):
                return NO_LEVEL_ROWS
    if shared & 1:
        level = stream.levels[intra]
        if dependence.inter_node != level.node:
            row = _level_row(engine.level_rows, engine.level_index, engine.control, number, level.node)
            if row < 0:
                return NO_LEVEL_ROWS
            dependence.inter_node = level.node
            dependence.inter_row = row
        carried = engine.level_rows[dependence.inter_row]
        if intra == stream.control[ctx.LEAF_LEVEL]:
            _note_distance(carried, abs(stream.control[ctx.DEPTH] - engine.accesses[source].depth))
        # Looking up the iteration at `stamp` takes a search. In most cases it is clear without that the distance lies
        # between the least and the greatest so far: `stamp` is not before a clock whose iteration is near enough.
        elif (carried.known > stamp or carried.known_invocation != level.invocation
                or level.iteration - carried.known_iteration > carried.greatest
                or not is_apart(stream, intra, stamp, carried.least)):
            carried.known = stamp
            carried.known_invocation = level.invocation
            carried.known_iteration = iteration_at(stream, intra, stamp)
            _note_distance(carried, level.iteration - carried.known_iteration)
    return OK


@inlined
def _note_distance(carried: Any, distance: Any) -> None:
    if carried.inter == 0:
        carried.inter = 1
        carried.least = distance
        carried.greatest = distance
    else:
        carried.least = min(carried.least, distance)
        carried.greatest = max(carried.greatest, distance)


@kernel
def access_of(nodes: Any, accesses: Any, index: HashMap, control: Any, instruction: Int, context: Int) -> int:
    """The access of an instruction in a context, made if it is new; -1 if there is no room."""
    found = find(index, (instruction << 32) | context)
    if found >= 0:
        return int(found)
    if control[ACCESSES] + 2 > accesses.size or is_full(index):
        return -1
    printed = np.int64(nodes[context].printed)
    if printed != context:
        found = find(index, (instruction << 32) | printed)
        if found < 0:
            found = _new_access(accesses, index, control, instruction, printed, 0)
            accesses[found].printed = found
            if is_full(index):
                return -1
        printed = found
    row = _new_access(accesses, index, control, instruction, context, nodes[context].depth)
    accesses[row].printed = row if nodes[context].printed == context else printed
    return int(row)


@inlined
def _new_access(accesses: Any, index: Any, control: Any, instruction: Any, context: Any, depth: Any) -> Any:
    row = control[ACCESSES]
    control[ACCESSES] += 1
    put(index, (instruction << 32) | context, row)
    accesses[row].instruction = instruction
    accesses[row].context = context
    accesses[row].depth = depth
    return row


@kernel
def _dependence_of(dependences: Any, index: HashMap, control: Any, kind: Int, source: Int, destination: Int) -> int:
    """The row of a dependence, made if it is new; -1 if there is no room."""
    key = (kind << 62) | (source << 31) | destination
    row = find(index, key)
    if row < 0:
        if control[DEPENDENCES] == dependences.size or is_full(index):
            return -1
        row = control[DEPENDENCES]
        control[DEPENDENCES] += 1
        put(index, key, row)
        dependences[row].kind = kind
        dependences[row].source = source
        dependences[row].destination = destination
        dependences[row].identity = -1
        dependences[row].inter_node = -1
    return int(row)


@kernel
def _note_object(dependences: Any, index: HashMap, number: Int, identity: Int) -> bool:
    """A dependence happened in an object; False if there is no room."""
    dependence = dependences[number]
    if find(index, (number << 32) | identity) < 0:
        if is_full(index):
            return False
        put(index, (number << 32) | identity, 0)
        if dependence.objects == 0:
            dependence.object_0 = identity
        elif dependence.objects == 1:
            dependence.object_1 = identity
        elif dependence.objects == 2:
            dependence.object_2 = identity
        elif dependence.objects == 3:
            dependence.object_3 = identity
        dependence.objects += 1
    dependence.identity = identity
    return True


@kernel
def _level_row(rows: Any, index: HashMap, control: Any, dependence: Int, node: Int) -> int:
    """The row of a dependence at a level's node, made if it is new; -1 if there is no room."""
    key = (dependence << 32) | node
    row = find(index, key)
    if row < 0:
        if control[LEVEL_ROWS] == rows.size or is_full(index):
            return -1
        row = control[LEVEL_ROWS]
        control[LEVEL_ROWS] += 1
        put(index, key, row)
        rows[row].dependence = dependence
        rows[row].node = node
    return int(row)


@kernel
def _mark_intra(dependences: Any, rows: Any, index: HashMap, control: Any, levels: Any, number: Int,
                intra: Int) -> bool:
    """A dependence is intra at the outermost `intra` levels; False if there is no room.

    Levels whose invocation began until `mark` and that are open still were marked then: they are skipped.
    """
    mark = dependences[number].mark
    innermost = levels[intra - 1].invocation
    if (mark ^ innermost) >> ctx.STREAM_BITS != 0:
        mark = 0
    for level in range(intra - 1, -1, -1):
        if levels[level].invocation <= mark:
            break
        row = _level_row(rows, index, control, number, levels[level].node)
        if row < 0:
            return False
        rows[row].intra = 1
    dependences[number].mark = innermost
    return True


@inlined
def expose(engine: Any, stream: Any, access: Any, first: Any) -> Any:
    """A load of `access` read what was not stored in the present iterations of the levels from `first` on."""
    count = stream.control[ctx.LEVELS]
    if first == count:
        return OK
    known = engine.accesses[access]
    outermost, innermost = stream.levels[first].invocation, stream.levels[count - 1].invocation
    if known.exposed_from <= outermost and innermost <= known.exposed_to:
        return OK
    if _mark_exposed(engine.accesses, engine.exposed, stream.levels, count, access, first):
        return OK
    return NO_EXPOSED


@kernel
def _mark_exposed(accesses: Any, exposed: HashMap, levels: Any, count: Int, access: Int, first: Int) -> bool:
    known = accesses[access]
    outermost, innermost = levels[first].invocation, levels[count - 1].invocation
    known_from, known_to = known.exposed_from, known.exposed_to
    if (known_to ^ innermost) >> ctx.STREAM_BITS != 0 or outermost > known_to:
        known_from, known_to = outermost, outermost - 1
    for level in range(first, count):
        if known_from <= levels[level].invocation <= known_to:
            continue
        key = (access << 32) | levels[level].node
        if find(exposed, key) < 0:
            if is_full(exposed):
                return False
            put(exposed, key, 0)
    known.exposed_from = min(known_from, outermost)
    known.exposed_to = max(known_to, innermost)
    return True
