"""What the workers of a dependence module found, as the tables of one.

The workers saw the same entries, loops and objects, so contexts have the same numbers in all of them. Accesses,
dependences and levels have numbers of each worker's own. What several workers counted in one execution counts once
(kernels/sharding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import maps
from tracekit.containers.grouping import Indices
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import USED, Arena
from tracekit.containers.kernels.shadow import PAGES, WORDS
from tracekit.dependence.kernels.dependence import State
from tracekit.dependence.kernels.dependence_table import DISTANCE_BITS, END_BITS, OBJECT_FIELDS, count_all, settle_all
from tracekit.dependence.kernels.load_history import first_entry
from tracekit.dependence.kernels.loop_sets import STEP_FIELDS, number_sets
from tracekit.dependence.kernels.sharding import NOTHING

Rows = NDArray[Any]
OBJECT = np.dtype([("key", "<u8"), *OBJECT_FIELDS])
DISTANCE = np.dtype([("key", "<u8"), ("times", "<i8")])
"""How often a distance was counted: row of a level << DISTANCE_BITS | distance."""


@dataclass(frozen=True)
class Findings:
    """Rows of kernels/dependence_table.py, each with its `key`, in no order; row 0 of each table is none.

    `loop_sets`, `within`: steps and marks of kernels/loop_sets.py.
    """

    accesses: Rows
    dependences: Rows
    levels: Rows
    loop_sets: Rows
    within: Rows
    distances: Rows
    exposed: Rows
    objects: Rows
    identities: Rows
    shadow_bytes: int


class WorkerPart(NamedTuple):
    """What one worker found, and what it noted of executions that are not its alone."""

    findings: Findings
    dependences: Rows
    levels: Rows
    load_parts: Rows


def part_of(state: State) -> WorkerPart:
    """What a worker found, when it is done: views of its tables."""
    settle_all(state.relations)
    count_all(state.relations, int(state.relations.levels.control[USED]))
    noted = state.shared
    return WorkerPart(_of(state), _noted(noted.dependences), _noted(noted.levels), _noted(noted.load_parts))


def reduce_states(states: Sequence[State]) -> Findings:
    """What the states of all workers come to; of a single one the rows stay in the order in which it made them."""
    parts = [part_of(state) for state in states]
    return settled(parts[0] if len(parts) == 1 else unite_parts(parts))


def kept_part(state: State) -> WorkerPart:
    """What a worker found, when it is done; its tables alone are kept, not the memory that they rest on."""
    findings, *noted = part_of(state)
    kept: dict[str, Any] = {name: rows.copy() for name, rows in vars(findings).items() if isinstance(rows, np.ndarray)}
    return WorkerPart(replace(findings, **kept), *(rows.copy() for rows in noted))


def join_parts(first: WorkerPart, then: WorkerPart) -> WorkerPart:
    """What two found: associative; of two that noted the same at one address the first comes first."""
    return unite_parts([first, then])


def unite_parts(found: Sequence[WorkerPart]) -> WorkerPart:
    """What several found as if one had; what they noted is not settled yet."""
    parts = [part.findings for part in found]
    accesses, access_of = _united([part.accesses for part in parts])
    for rows, access in zip((part.accesses for part in parts), access_of):
        accesses["printed"][access] = np.maximum(accesses["printed"][access], access[rows["printed"]])
        np.add.at(accesses["count"], access, rows["count"])
    identities, identity_of = _united([part.identities for part in parts])
    dependences, dependence_of = _united(
        [_renamed_ends(part.dependences, *each) for part, *each in zip(parts, access_of)]
    )
    levels, level_of = _united([_renamed(part.levels, 32, each) for part, each in zip(parts, dependence_of)])
    loop_sets, set_of = _united_sets([part.loop_sets for part in parts])
    within = [_renamed(part.within, 32, each) for part, each in zip(parts, dependence_of)]
    for rows, numbers in zip(within, set_of):
        rows["key"] = rows["key"] & ~_mask(32) | numbers[rows["key"] & _mask(32)].astype(np.uint64)
    distances, distance_of = _united(
        [_renamed(part.distances, DISTANCE_BITS, each) for part, each in zip(parts, level_of)]
    )
    for part, dependence, level, distance in zip(parts, dependence_of, level_of, distance_of):
        np.add.at(dependences["count"], dependence, part.dependences["count"])
        np.add.at(distances["times"], distance, part.distances["times"])
        _add_levels(levels, level, part.levels)
    objects = [_renamed(part.objects, 32, each) for part, each in zip(parts, dependence_of)]
    for rows, identity in zip(objects, identity_of):
        rows["key"] = rows["key"] & ~_mask(32) | identity[rows["key"] & _mask(32)].astype(np.uint64)
    findings = Findings(
        accesses=accesses,
        dependences=dependences,
        levels=levels,
        loop_sets=loop_sets,
        within=_united(within)[0],
        distances=distances,
        exposed=_united([_renamed(part.exposed, 32, each) for part, each in zip(parts, access_of)])[0],
        objects=_earliest(objects),
        identities=identities,
        shadow_bytes=sum(part.shadow_bytes for part in parts),
    )
    noted = [_renamed_notes(part.dependences, *each) for part, *each in zip(found, dependence_of, identity_of)]
    carried = [_renamed_notes(part.levels, each) for part, each in zip(found, level_of)]
    load_parts = [_renamed_load_parts(part.load_parts, each) for part, each in zip(found, access_of)]
    return WorkerPart(findings, np.concatenate(noted), np.concatenate(carried), np.concatenate(load_parts))


def settled(part: WorkerPart) -> Findings:
    """What was found when all is joined: what several noted of one execution counts once."""
    found = part.findings
    first, again = _first_and_again(part.dependences)
    np.subtract.at(found.dependences["count"], again["row"], 1)
    _, carried_again = _first_and_again(part.levels)
    np.subtract.at(found.levels["carried"], carried_again["row"], 1)
    return replace(
        found,
        distances=_once(found.distances, carried_again),
        exposed=_united([found.exposed, _exposed_by(part.load_parts)])[0],
        objects=_earliest([found.objects, _at(first)]),
    )


def _of(state: State) -> Findings:
    """The rows of one worker."""
    relations = state.relations
    words = int(state.memory.control[PAGES]) * WORDS
    loads = int(state.readers.control[USED]) - first_entry(state.readers)
    return Findings(
        used_rows(relations.accesses),
        used_rows(relations.dependences),
        used_rows(relations.levels),
        used_rows(relations.sets.steps),
        used_rows(relations.sets.within),
        _counted(relations.distances),
        used_rows(relations.exposed),
        used_rows(relations.objects),
        used_rows(state.identities),
        words * (state.memory.rows.itemsize + 1) + loads * state.readers.rows.itemsize,
    )


def _counted(distances: maps.CountTable) -> Rows:
    """The rows of a histogram of distances."""
    counts = maps.rows(distances)
    rows = np.zeros(len(counts) + 1, DISTANCE)
    rows["key"][1:], rows["times"][1:] = counts["key"], counts["value"]
    return rows


def _united(tables: Sequence[Rows]) -> tuple[Rows, list[Indices]]:
    """One row for each key, zero but for it, in the order of the keys; and for each row of each table that row."""
    keys, row_of = np.unique(np.concatenate([table["key"][1:] for table in tables]), return_inverse=True)
    rows = np.zeros(len(keys) + 1, tables[0].dtype)
    rows["key"][1:] = keys
    ends = np.cumsum([len(table) - 1 for table in tables])[:-1]
    return rows, [np.concatenate([[0], part + 1]) for part in np.split(row_of, ends)]


def _united_sets(tables: Sequence[Rows]) -> tuple[Rows, list[Indices]]:
    """The steps to all sets of loops, and for each set of each table that set."""
    united, numbers = hash_table(STEP_FIELDS), []
    for steps in tables:
        numbers.append(np.zeros(len(steps), np.int64))
        number_sets(united, steps, numbers[-1])
    return used_rows(united).copy(), numbers


def _renamed(rows: Rows, bits: int, row_of: Indices) -> Rows:
    """Rows whose key has a row of another table above its lowest `bits`."""
    renamed = rows.copy()
    key = rows["key"]
    renamed["key"] = row_of[key >> np.uint64(bits)].astype(np.uint64) << np.uint64(bits) | key & _mask(bits)
    return renamed


def _renamed_ends(dependences: Rows, access_of: Indices) -> Rows:
    renamed = dependences.copy()
    key = dependences["key"]
    source, destination = (
        access_of[key >> np.uint64(shift) & _mask(END_BITS)].astype(np.uint64) for shift in (END_BITS, 0)
    )
    kind = key >> np.uint64(2 * END_BITS)
    renamed["key"] = kind << np.uint64(2 * END_BITS) | source << np.uint64(END_BITS) | destination
    return renamed


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def _add_levels(levels: Rows, at: Indices, rows: Rows) -> None:
    """Keep the extremes of distances, add what was carried; `at` names each row of `levels` once."""
    carried, at_carried = rows["inter"] != 0, at[rows["inter"] != 0]
    is_first = levels["inter"][at_carried] == 0
    for name, nearer in (("least", np.minimum), ("greatest", np.maximum)):
        before, distance = levels[name][at_carried], rows[name][carried]
        levels[name][at_carried] = np.where(is_first, distance, nearer(before, distance))
    levels["inter"][at_carried] = 1
    levels["carried"][at] += rows["carried"]


# -- what counts once ------------------------------------------------------------------------------


def _noted(notes: Arena) -> Rows:
    """What a worker noted."""
    rows: Rows = notes.rows[1 : notes.control[USED]]
    return rows


def _renamed_notes(notes: Rows, row_of: Indices, identity_of: Indices | None = None) -> Rows:
    """`notes` with the rows, and the identities if they are about them, of the united tables."""
    rows = notes.copy()
    rows["row"] = row_of[rows["row"]]
    if identity_of is not None:
        known = rows["about"] != NOTHING
        rows["about"][known] = identity_of[rows["about"][known]]
    return rows


def _renamed_load_parts(parts: Rows, access_of: Indices) -> Rows:
    renamed = parts.copy()
    renamed["access"] = access_of[parts["access"]]
    return renamed


def _exposed_by(parts: Rows) -> Rows:
    """The exposed reads of loads none of whose parts read a byte with a store."""
    is_stored = parts["node"] == NOTHING
    bare = parts[~is_stored & ~np.isin(parts["time"], parts["time"][is_stored])]
    exposed = np.zeros(len(bare) + 1, [("key", "<u8")])
    exposed["key"][1:] = bare["access"] << 32 | bare["node"]
    return exposed


def _first_and_again(together: Rows) -> tuple[Rows, Rows]:
    """The first finding of each row in each execution, and all others; in no order."""
    together = together[_order(together)]
    is_again = _repeats(together)
    shared = is_again | np.append(is_again[1:], np.zeros(min(len(together), 1), np.bool_))
    several = together[shared]  # few: what most note is found once
    several = several[np.lexsort([several[name] for name in ("address", "time", "execution", "row")])]
    is_again = _repeats(several)
    return np.concatenate([together[~shared], several[~is_again]]), several[is_again]


def _order(findings: Rows) -> Indices:
    """By row and execution, else as they are; in one word, if both fit, which takes less time."""
    row, execution = findings["row"], findings["execution"]
    bits = int(row.max(initial=0)).bit_length()
    if execution.min(initial=0) < 0 or int(execution.max(initial=0)).bit_length() + bits > 63:
        return np.lexsort((execution, row))
    return np.argsort(execution << bits | row, kind="stable")


def _repeats(findings: Rows) -> NDArray[np.bool_]:
    """Whether each is of the row and the execution of the one before."""
    repeats = np.zeros(len(findings), np.bool_)
    repeats[1:] = (findings["row"][1:] == findings["row"][:-1]) & (
        findings["execution"][1:] == findings["execution"][:-1]
    )
    return repeats


def _once(distances: Rows, again: Rows) -> Rows:
    """The distances without those that were counted again."""
    again = again[again["about"] != NOTHING]
    key = again["row"].astype(np.uint64) << np.uint64(DISTANCE_BITS) | again["about"].astype(np.uint64)
    np.subtract.at(distances["times"], 1 + np.searchsorted(distances["key"][1:], key), 1)
    kept: Rows = distances[(distances["times"] != 0) | (distances["key"] == 0)]
    return kept


def _at(first: Rows) -> Rows:
    """The objects of findings, as rows of objects."""
    first = first[first["about"] != NOTHING]
    noted = np.zeros(len(first) + 1, OBJECT)
    noted["key"][1:] = first["row"].astype(np.uint64) << np.uint64(32) | first["about"].astype(np.uint64)
    noted["execution"][1:] = first["execution"]
    return noted


def _earliest(parts: Sequence[Rows]) -> Rows:
    """The objects of dependences, each with the first execution there."""
    objects, row_of = _united(parts)
    objects["execution"] = np.iinfo(np.int64).max
    for part, row in zip(parts, row_of):
        np.minimum.at(objects["execution"], row, part["execution"])
    return objects
