"""What is known of a dependence: how often, in which objects, and how far apart its ends were in each open loop.

Rows are found by keys (containers/hash_table.py): an access (instruction, context), a dependence (kind, source,
destination), the dependence at a level, a distance there. A row is a cache line, so that finding it is all the waiting
there is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import maps
from tracekit.containers.kernels.arena import USED, Arena
from tracekit.containers.kernels.hash_table import GOLDEN, HashTable, find_or_make, has_row, row_of
from tracekit.contexts.kernels.activations import activations_since, recursion_of
from tracekit.contexts.kernels.levels import distance_to, is_between, is_from, last_begun, shared_from
from tracekit.contexts.kernels.streams import CHAIN, DEPTH, LEAF_LEVEL, LEVELS, NEVER, NO_LEVEL, STREAM_BITS
from tracekit.dependence.kernels.loop_sets import LoopSets, mark_within, set_of
from tracekit.dependence.kernels.sharding import DEPENDENCES_BEFORE, LEVELS_BEFORE, NOTHING, note_load_part
from tracekit.jit.kernel import inlined, kernel

# Kinds of dependences.
RAW = 0  # a load of what was stored: flow
WAR = 1  # a store after a load: anti
WAW = 2  # a store after a store: output

ACCESS_FIELDS = [
    ("depth", "<i4"),  # of recursion
    ("printed", "<u4"),  # the access that a profile shows
    ("count", "<i8"),
    ("exposed_from", "<i8"),  # its loads are known to be exposed at all levels that are still open
    ("exposed_to", "<i8"),  # and whose invocation began in exposed_from .. exposed_to
    ("reserved", "<i8"),
    ("sources", "<u4", (2,)),  # of its last dependence on a store, with the kind, and on a load
    ("dependences", "<u4", (2,)),  # and the rows of the two, for they come again
]
DEPENDENCE_FIELDS = [
    ("execution", "<i8"),  # the last that had it
    ("count", "<i8"),
    ("chain", "<u4"),  # the stack of telling levels (`CHAIN`) that it was placed in last, 0: none
    ("begun", "<u4"),  # and the place in `Stream.begun` of what its source was in
    ("level", "<u4"),  # the row of the level that carries it if it lies so, 0: none does
    ("identity", "<i4"),  # of the object of the last execution, plus 1
    ("carried", "<i8"),  # for how many executions it lay so, after the first
    ("least", "<i8"),  # distances, if a loop carries it
    ("greatest", "<i8"),
]
LYING = np.dtype(
    [
        ("mark", "<i8"),  # levels whose invocation began until this clock, and that are open still, are marked as intra
        ("node", "<i4"),  # of the level where it was carried last, plus 1, and its row
        ("carrier", "<u4"),
        ("loops", "<u4", (4,)),  # stacks of loops (`LEVEL.loops`) that are marked as intra, by their lowest bits
        ("searched", "<i8"),  # a clock that was looked up for its distance, and the iteration that was then under way
        ("iteration", "<i8"),
        ("reserved", "<i8", (2,)),
    ]
)
"""What is needed when a dependence does not lie as the last time: beside its row, which is a cache line without it."""
LEVEL_FIELDS = [
    ("inter", "<i8"),  # 1: it has carried the dependence, as all rows say once they are filled
    ("least", "<i8"),
    ("greatest", "<i8"),  # distances
    ("execution", "<i8"),  # the last for which the level carried it
    ("carried", "<i8"),  # for how many it did
]
EXPOSED_FIELDS = [("loops", "<u4"), ("nest", "<i4")]
"""The stack of loops (`LEVEL.loops`) whose loops, but the outermost `nest`, were all marked when the level was."""
OBJECT_FIELDS = [("execution", "<i8")]  # the first there
TALLY = np.dtype([("distance", "<i8"), ("times", "<i8")])
"""What was counted `times` in sequence, and is not yet entered in the histogram."""
RELATED = np.dtype("<u4")
"""A dependence that was found lately, by a hash of kind, source and destination; the key of its row says which.

Of accesses that a profile shows as other ones (inside a recursion leaf) it is another: they are not at hand.
"""
RELATED_BITS = 17
EXPOSED_LOOPS = np.dtype([("key", "<u8"), ("nest", "<i8")])
"""An access << 32 | a stack of loops (`LEVEL.loops`) that its loads were marked as exposed in, but for `nest` loops."""
EXPOSED_BITS = 14
AS_BEFORE = -1
"""In place of what ``shared_levels`` says: the same was entered before, among the same levels."""
DISTANCE_BITS = 36
END_BITS = 30
"""Of an access in the key of a dependence: kind, source, destination."""


class DependenceTable(NamedTuple):
    """All dependences of a module. The key of a row: see ``access_of``, ``relate``, ``_level_row``, ``_count``."""

    accesses: HashTable
    dependences: HashTable
    lying: NDArray[Any]  # LYING, beside `dependences`
    related: NDArray[Any]  # RELATED
    levels: HashTable  # LEVEL_FIELDS, of the levels that carry dependences
    sets: LoopSets  # of the loops in one iteration of which both ends lie
    distances: maps.CountTable  # row of a level << DISTANCE_BITS | distance
    tallies: NDArray[Any]  # TALLY, beside `levels`
    exposed: HashTable  # EXPOSED_FIELDS, by access << 32 | node of a level
    exposed_loops: NDArray[Any]  # EXPOSED_LOOPS, by a hash of the key
    objects: HashTable  # OBJECT_FIELDS, by dependence << 32 | identity


@inlined
def access_of(relations: Any, instruction: Any, context: Any, printed: Any, depth: Any) -> Any:
    """The number of an instruction in a context; `printed` is the context that a profile shows."""
    row = row_of(relations.accesses, ((instruction & 0xFFFFFFFF) << 32) | context)
    access = relations.accesses.rows[row]
    if access.printed == 0:
        access.depth = depth
        access.printed = row_of(relations.accesses, ((instruction & 0xFFFFFFFF) << 32) | printed)
    return np.int64(row)


@inlined
def relate(relations: Any, kind: Any, source: Any, destination: Any, execution: Any) -> Any:
    """The row of a dependence between two accesses, and whether this execution of the destination is new to it."""
    known = relations.accesses.rows[np.uint64(destination)]
    way = np.uint64(kind == WAR)
    tag = np.uint32((source << 1) | (kind == WAW))
    row = np.uint64(known.dependences[way])
    if known.sources[way] != tag:
        key = np.uint64((kind << (2 * END_BITS)) | (source << END_BITS) | destination)
        place = (key * GOLDEN) >> np.uint64(64 - RELATED_BITS)
        row = np.uint64(relations.related[place])
        if relations.dependences.rows[row].key != key:  # row 0 has none
            row = np.uint64(_related(relations.accesses.rows, relations.dependences, kind, source, destination))
            relations.related[place] = row
        known.sources[way] = tag
        known.dependences[way] = row
    dependence = relations.dependences.rows[row]
    is_new = dependence.execution != execution
    if is_new:
        dependence.execution = execution
        dependence.count += 1
    return row, is_new


@kernel
def _related(accesses: Any, dependences: HashTable, kind: Any, source: Any, destination: Any) -> int:
    """The row of a dependence that was not found lately."""
    ends = (np.int64(accesses[source].printed) << END_BITS) | np.int64(accesses[destination].printed)
    return int(row_of(dependences, (kind << (2 * END_BITS)) | ends))


@inlined
def note_object(relations: Any, row: Any, identity: Any, execution: Any) -> None:
    """A dependence happened in an object."""
    if relations.dependences.rows[row].identity != identity + 1:
        _note_object(relations.dependences.rows, relations.objects, row, identity, execution)


@kernel
def _note_object(dependences: Any, objects: HashTable, row: Any, identity: Any, execution: Any) -> None:
    found, is_new = find_or_make(objects, (np.uint64(row) << np.uint64(32)) | np.uint64(identity))
    if is_new:
        objects.rows[found].execution = execution
    dependences[row].identity = identity + 1


@kernel
def keep_alone(relations: Any, shared: Any) -> None:
    """No other worker had pages of the present execution: what it found counts as it is."""
    findings = shared.dependences
    for number in range(shared.control[DEPENDENCES_BEFORE], findings.control[USED]):
        finding = findings.rows[number]
        if finding.about != NOTHING:
            note_object(relations, finding.row, finding.about, finding.execution)
    findings.control[USED] = shared.control[DEPENDENCES_BEFORE]
    shared.levels.control[USED] = shared.control[LEVELS_BEFORE]


@inlined
def lies_as_before(dependence: Any, levels: Any, stamp: Any) -> Any:
    """Whether a source at `stamp` lies where that of the dependence lay last, among the same levels.

    Then the same level carries it, and the same loops are marked as intra, and as exposed.
    """
    begun = np.uint64(dependence.begun)
    return (
        np.int64(dependence.chain) == levels.control[CHAIN]
        and stamp >= levels.begun[begun]
        and stamp < levels.begun[begun + np.uint64(1)]
    )


@inlined
def place_again(relations: Any, levels: Any, row: Any, stamp: Any, is_new: Any) -> None:
    """Enter that a dependence lies as before; `is_new`: for this execution for the first time."""
    dependence = relations.dependences.rows[row]
    if dependence.level != 0:
        dependence.carried += is_new
        begun = np.int64(dependence.begun)
        if begun & 1 != 0:  # a loop, else a recursion, of which the distance is the same
            level = levels.telling[np.uint64(begun >> 1)].level
            if not is_between(levels, level, stamp, dependence.least, dependence.greatest):
                _note_distance_again(dependence, relations.lying[row], levels, level, stamp)


@inlined
def _note_distance_again(dependence: Any, lying: Any, levels: Any, level: Any, stamp: Any) -> None:
    """The distance of a dependence that lies as before, unless a source that is no later had one within the bounds."""
    open_level = levels.levels[np.uint64(level)]
    if (
        stamp < lying.searched
        or lying.searched < open_level.invocation
        or open_level.iteration - lying.iteration > dependence.greatest
        or not is_from(levels, level, stamp, dependence.least)
    ):
        distance = np.int64(distance_to(levels, level, stamp))
        dependence.least = min(dependence.least, distance)
        dependence.greatest = max(dependence.greatest, distance)
        lying.searched = stamp
        lying.iteration = open_level.iteration - distance


@inlined
def count_again(relations: Any, levels: Any, row: Any, stamp: Any) -> Any:
    """Enter that a dependence is carried as before, by an execution that is new to it; the distance is counted."""
    dependence = relations.dependences.rows[row]
    begun = np.int64(dependence.begun)
    if begun & 1 != 0:
        distance = np.int64(distance_to(levels, levels.telling[np.uint64(begun >> 1)].level, stamp))
    else:
        distance = np.int64(activations_since(levels, recursion_of(levels, shared_from(levels, begun))))
    dependence.carried += 1
    dependence.least = min(dependence.least, distance)
    dependence.greatest = max(dependence.greatest, distance)
    tally_of(relations, dependence.level, distance)
    return distance


@inlined
def settle(relations: Any, row: Any) -> None:
    """Enter in the row of its level what was found of a dependence that lay as before."""
    dependence = relations.dependences.rows[row]
    if dependence.level != 0:
        carried = relations.levels.rows[np.uint64(dependence.level)]
        carried.carried += dependence.carried
        carried.least = min(carried.least, dependence.least)
        carried.greatest = max(carried.greatest, dependence.greatest)
        dependence.level = 0
    dependence.chain = 0


@kernel
def settle_all(relations: DependenceTable) -> None:
    """The same for all dependences."""
    for row in range(1, relations.dependences.control[USED]):
        settle(relations, np.uint64(row))


@inlined
def remember_place(relations: Any, levels: Any, row: Any, stamp: Any, shared: Any) -> None:
    """Remember how a dependence lies, which has just been entered."""
    if levels.control[CHAIN] <= 0 or 0 <= levels.control[LEAF_LEVEL] < NO_LEVEL:  # in a leaf depths count as well
        return
    dependence = relations.dependences.rows[row]
    dependence.chain = levels.control[CHAIN]
    dependence.begun = last_begun(levels.begun, levels.control, stamp)
    if _carrier(levels, shared) >= 0:
        carrier = relations.lying[row].carrier
        carried = relations.levels.rows[np.uint64(carrier)]
        dependence.level = carrier
        dependence.carried = 0
        relations.lying[row].searched = NEVER
        dependence.least = carried.least
        dependence.greatest = carried.greatest


@inlined
def place(relations: Any, levels: Any, row: Any, stamp: Any, shared: Any, depth: Any, execution: Any) -> Any:
    """Enter what ``shared_levels`` says of a source at `stamp` and recursion depth `depth`.

    Returns whether the level that carries the dependence has not yet done so for this execution.
    """
    is_new = False
    lying = relations.lying[row]
    intra = shared >> 1
    if intra > 0:
        _note_intra(relations, levels, row, intra)
    carrier = _carrier(levels, shared)
    if carrier >= 0:
        level = levels.levels[np.uint64(carrier)]
        if lying.node != level.node + 1:
            lying.node = level.node + 1
            lying.carrier = _level_row(relations.levels, row, level.node)
        carried = relations.levels.rows[np.uint64(lying.carrier)]
        if level.depth != 0:
            _note_distance(carried, activations_since(levels, carrier))
        elif intra == levels.control[LEAF_LEVEL]:
            _note_distance(carried, abs(levels.control[DEPTH] - depth))
        elif not is_between(levels, intra, stamp, carried.least, carried.greatest):
            _note_distance(carried, distance_to(levels, intra, stamp))
        is_new = carried.execution != execution
        if is_new:
            carried.execution = execution
            carried.carried += 1
    return is_new


@inlined
def carry(relations: Any, row: Any, node: Any, distance: Any, execution: Any) -> Any:
    """Enter that the level of a node carries a dependence over a distance.

    Returns the row of the level there, and whether it has not yet done so for this execution.
    """
    lying = relations.lying[row]
    if lying.node != node + 1:
        lying.node = node + 1
        lying.carrier = _level_row(relations.levels, row, node)
    carried = relations.levels.rows[np.uint64(lying.carrier)]
    _note_distance(carried, distance)
    is_new = carried.execution != execution
    if is_new:
        carried.execution = execution
        carried.carried += 1
    return np.int64(lying.carrier), is_new


@inlined
def _note_intra(relations: Any, levels: Any, row: Any, intra: Any) -> None:
    """The outermost `intra` levels are in one iteration; most often that was marked before."""
    lying, innermost = relations.lying[row], levels.levels[np.uint64(intra - 1)]
    begun = innermost.looped
    if lying.mark < begun or (lying.mark ^ begun) >> STREAM_BITS != 0:
        if innermost.loops != 0 and lying.loops[innermost.loops & 3] == innermost.loops:  # in other invocations
            lying.mark = begun
        else:
            mark_within(relations.sets, row, set_of(relations.sets, levels.levels, intra))
            lying.mark = begun
            lying.loops[innermost.loops & 3] = innermost.loops


@inlined
def _carrier(levels: Any, shared: Any) -> Any:
    """The number of the level that carries a dependence, or -1: a loop, a recursion leaf, or an activation."""
    return np.int64(shared >> 1) if shared & 1 else np.int64(recursion_of(levels, shared))


@inlined
def _note_distance(carried: Any, distance: Any) -> None:
    if carried.inter == 0:
        carried.inter = 1
        carried.least = distance
        carried.greatest = distance
    else:
        carried.least = min(carried.least, distance)
        carried.greatest = max(carried.greatest, distance)


@inlined
def tally(relations: Any, levels: Any, row: Any, stamp: Any, shared: Any, depth: Any) -> Any:
    """Count the distance in the histogram of the level that carries the dependence, as it has just begun to."""
    carrier = _carrier(levels, shared)
    distance = abs(levels.control[DEPTH] - depth)
    if levels.levels[np.uint64(carrier)].depth != 0:
        distance = activations_since(levels, carrier)
    elif carrier != levels.control[LEAF_LEVEL]:
        distance = distance_to(levels, carrier, stamp)
    tally_of(relations, relations.lying[row].carrier, distance)
    return distance


@inlined
def tally_of(relations: Any, carried: Any, distance: Any) -> None:
    """Count a distance in the histogram of the row of a level."""
    level = relations.tallies[carried]
    if level.distance != distance:
        _count(relations.tallies, relations.distances, carried)
        level.distance = distance
    level.times += 1


@inlined
def _level_row(table: Any, dependence: Any, node: Any) -> Any:
    return row_of(table, (np.int64(dependence) << 32) | np.int64(node))


@kernel
def _count(tallies: Any, distances: maps.CountTable, row: Any) -> None:
    """Enter what a level counted of one distance into the histogram."""
    level = tallies[row]
    if level.times > 0:
        maps.add(distances, (np.int64(row) << DISTANCE_BITS) | level.distance, level.times)
        level.times = 0


@kernel
def count_all(relations: DependenceTable, levels: Any) -> None:
    """Enter what all levels have counted so far."""
    for row in range(1, levels):
        _count(relations.tallies, relations.distances, row)


# -- exposed reads ---------------------------------------------------------------------------------


@inlined
def expose(relations: Any, levels: Any, access: Any, first: Any) -> None:
    """A load of `access` read what was not stored in the present iterations of the levels from `first` on."""
    count = levels.control[LEVELS]
    if first < count:
        known = relations.accesses.rows[np.uint64(access)]
        outermost = levels.levels[np.uint64(first)].invocation
        innermost = levels.levels[np.uint64(count - 1)]
        if known.exposed_from > outermost or innermost.looped > known.exposed_to:
            around = np.int64(0)
            if first > 0:
                around = np.int64(levels.levels[np.uint64(first - 1)].nest)
            if around != innermost.nest:  # else there are only activations, of which it is not said
                _note_exposed(relations, levels, access, known, first, around)


@inlined
def _note_exposed(relations: Any, levels: Any, access: Any, known: Any, first: Any, around: Any) -> None:
    """The loops from level `first` on, but the outermost `around`, are not known to be marked for these invocations."""
    count = levels.control[LEVELS]
    outermost, innermost = levels.levels[np.uint64(first)].invocation, levels.levels[np.uint64(count - 1)]
    key = np.uint64((access << 32) | np.int64(innermost.loops))
    marked = relations.exposed_loops[(key * GOLDEN) >> np.uint64(64 - EXPOSED_BITS)]
    if innermost.loops != 0 and marked.key == key and marked.nest <= around:
        if (known.exposed_to ^ outermost) >> STREAM_BITS != 0 or outermost > known.exposed_to:
            known.exposed_from = outermost
        known.exposed_from = min(known.exposed_from, outermost)
        known.exposed_to = innermost.looped
    else:
        _mark_exposed(known, relations.exposed, levels.levels, count, first, around)
        marked.key = key
        marked.nest = around


@kernel
def note_bare_part(relations: DependenceTable, levels: Any, access: Any, parts: Arena, time: Any) -> None:
    """A part of a load read nothing that was stored, so that it is exposed in all loops if the load has no other."""
    printed = np.int64(relations.accesses.rows[access].printed)
    for level in range(levels.control[LEVELS]):
        node = np.int64(levels.levels[level].node)
        if levels.levels[level].depth == 0 and not has_row(relations.exposed, (printed << 32) | node):
            note_load_part(parts, printed, time, node)


@kernel
def _mark_exposed(known: Any, exposed: HashTable, levels: Any, count: Any, first: Any, around: Any) -> None:
    outermost, innermost = levels[first].invocation, levels[count - 1].looped
    known_from, known_to = known.exposed_from, known.exposed_to
    if (known_to ^ innermost) >> STREAM_BITS != 0 or outermost > known_to:
        known_from, known_to = outermost, outermost - 1
    for level in range(count - 1, first - 1, -1):
        if levels[level].depth == 0 and not known_from <= levels[level].invocation <= known_to:
            key, loops = (np.int64(known.printed) << 32) | levels[level].node, levels[level].loops
            row = exposed.rows[row_of(exposed, key)]
            if loops != 0 and row.loops == loops and row.nest <= around:  # nor are the loops around it new
                break
            row.loops, row.nest = loops, around
    known.exposed_from = min(known_from, outermost)
    known.exposed_to = max(known_to, innermost)
