"""What the steps of paths come to before they run: events, dynamic steps, what addresses begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.program.validation import runs
from tracekit.replay.kernels import layouts
from tracekit.replay.path_loops import Crossings

if TYPE_CHECKING:
    from tracekit.program.program import Program

Rows = NDArray[Any]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Parts(NamedTuple):
    """The steps of all paths, one after another: path (a position in `numbers`), block of it, step."""

    path: I8
    member: I8
    steps: Rows
    word: I8
    """The first word of the step, counted from its record's first."""
    slots: I8
    """Registers of each path's function. Behind them stand the record's words; the last but one is always 0."""


def parts_of(blocks: Rows, steps: Rows, members: I8, owner: I8, slots: I8) -> Parts:
    """The steps of the blocks `members`, each of the path `owner`; `slots` of each path are registers."""
    counts = blocks["last_step"][members].astype(np.int64) - blocks["first_step"][members]
    member = np.repeat(np.arange(len(members)), counts)
    own = steps[runs(blocks["first_step"][members], counts)]
    flags = own["flags"]
    words = (flags & layouts.STEP_WORD != 0).astype(np.int64) + (flags & layouts.STEP_DYNAMIC != 0)
    words += own["values"].astype(np.int64) + (flags & layouts.STEP_GROUND_TRUTH != 0)
    path = owner[member]
    before = np.cumsum(words) - words
    first = np.full(int(owner[-1]) + 1 if len(owner) else 0, np.iinfo(np.int64).max)
    np.minimum.at(first, path, before)
    return Parts(path, member, own, before - first[path], slots)


def is_dynamic(steps: Rows) -> Bools:
    """Steps that take a decision when they run, or change something of the frame."""
    access = steps["code"] <= layouts.ACCESS
    unusual = layouts.STEP_DYNAMIC | layouts.STEP_SAME_SIZE | layouts.STEP_GLOBAL | layouts.STEP_STACK
    dynamic: Bools = access & ((steps["flags"] & unusual != 0) | (steps["size"] > NONE))
    return dynamic | np.isin(steps["code"], [layouts.ALLOC, layouts.FREE, layouts.FRAME])


def is_simple(steps: Rows, dynamic: Bools, values: bool) -> Bools:
    """Steps that a template may have: an event at ``base + offset + terms``, a register that is set, dynamic steps."""
    codes = [layouts.RECORDED, layouts.ACCESS, layouts.POINTER, layouts.EXTERNAL, layouts.REGISTER, layouts.UNWANTED]
    simple = np.isin(steps["code"], codes) | dynamic
    simple |= (steps["code"] == layouts.SKIP) & (steps["flags"] & layouts.STEP_WORD == 0)
    simple &= steps["flags"] & layouts.STEP_GROUND_TRUTH == 0
    if values:  # of eight bytes at most, and none of dynamic steps
        words = steps["values"] >> (steps["flags"] & layouts.STEP_LOADS_TOO != 0)
        simple &= (words <= np.where(dynamic, 0, 1)) | (steps["code"] == layouts.UNWANTED)
    return simple


class Terms(NamedTuple):
    """The terms that are left to the kernel: the step of each, its stride, the depth of its loop below the frame's."""

    holder: I8
    stride: NDArray[np.uint64]
    level: I8


def terms_of(
    program: Program, loops: Rows, loop_of: Rows, parts: Parts, crossed: Crossings, most: int
) -> tuple[Terms, Bools]:
    """Terms, and the steps with more than `most` of them, or with such as only the kernel can find.

    A loop that the path itself enters is in iteration 0: its terms are 0.
    """
    counts = parts.steps["terms"].astype(np.int64)
    holder = np.repeat(np.arange(len(counts)), counts)
    rows = program.terms[runs(parts.steps["first_term"], counts)]
    around = loop_of[parts.member[holder]].astype(np.int64)
    depth = loops["depth"]
    while True:
        inner = np.flatnonzero((around != NONE) & (around != rows["loop"]))
        if not len(inner):
            break
        around[inner] = loops["parent"][around[inner]]
    unsure = np.zeros(len(counts), np.bool_)
    unsure[holder[(around == NONE) | (rows["stride_register"] != NONE)]] = True
    unsure[holder[crossed.iterates[parts.path[holder]]]] = True
    left = ~crossed.entered_before(parts.path[holder], rows["loop"].astype(np.int64), parts.member[holder])
    unsure |= np.bincount(holder[left], minlength=len(counts)) > most
    terms = Terms(holder[left], rows["stride"][left].view(np.uint64), depth[rows["loop"][left]].astype(np.int64) - 1)
    return terms, unsure


class Events(NamedTuple):
    """The events and dynamic steps of templates in order: ``dynamic`` says which is which, ``path`` whose it is."""

    dynamic: Bools
    path: I8
    template_events: Rows
    """Beside them; of no meaning for dynamic steps, like ``strides``."""
    strides: Rows
    dynamic_steps: Rows
    """Those of the dynamic steps alone."""


def events_of(
    parts: Parts, crossed: Crossings, terms: Terms, dynamic: Bools, keep: NDArray[np.uint8], good: Bools
) -> Events:
    """What paths with a template do, step by step and between their blocks."""
    steps, path = parts.steps, parts.path
    nothing = parts.slots - 2
    access = np.isin(steps["code"], [layouts.RECORDED, layouts.ACCESS])
    pointer, external = steps["code"] == layouts.POINTER, steps["code"] == layouts.EXTERNAL
    wanted = (access & (steps["size"] != 0)) | pointer | external | dynamic
    made = np.zeros(len(steps), layouts.TEMPLATE_EVENT)
    made["kind"] = np.where(access, steps["kind"], np.where(pointer, CODE["pointer_creation"], CODE["external_call"]))
    made["subject"], made["size"] = steps["subject"], np.where(external | dynamic, 0, steps["size"])
    made["offset"] = np.where(external, 0, steps["offset"])
    made["base"] = np.where(external, nothing[path], _bases(parts))
    loads_too = ~dynamic & (steps["flags"] & layouts.STEP_LOADS_TOO != 0)
    moved = access & (steps["values"] != 0)  # the words of an event's value stand behind that of its address
    value = parts.slots[path] + parts.word + (steps["flags"] & layouts.STEP_WORD != 0)
    made["value"] = np.where(moved, value + loads_too, nothing[path])
    as_load = made.copy()
    as_load["kind"], as_load["value"] = CODE["load"], np.where(moved, value, nothing[path])
    between = crossed.template_events()
    between["base"] = between["value"] = nothing[crossed.path]
    first, second = np.flatnonzero(wanted & loads_too), np.flatnonzero(wanted)
    rows = np.concatenate([as_load[first], made[second], between])
    step = np.concatenate([first, second, np.full(len(between), len(steps))])
    path = np.concatenate([path[first], path[second], crossed.path])
    member = np.concatenate([parts.member[first], parts.member[second], crossed.member])
    place = np.concatenate([2 * first, 2 * second + 1, crossed.place])
    decides = np.append(dynamic, False)[step]
    kept = np.flatnonzero(good[path] & (decides | (keep[rows["kind"]] != 0)))
    kept = kept[np.lexsort((place[kept], member[kept]))]
    strides = np.append(_strides(terms, len(steps)), np.zeros(1, layouts.STRIDES))
    decides, step = decides[kept], step[kept]
    dynamic_steps = _dynamic_steps(parts, made, strides, step[decides])
    return Events(decides, path[kept], rows[kept], strides[step], dynamic_steps)


def _strides(terms: Terms, steps: int) -> Rows:
    """The terms of each step."""
    strides = np.zeros(steps, layouts.STRIDES)
    place = np.arange(len(terms.holder)) - np.searchsorted(terms.holder, terms.holder)  # among those of its step
    for number in range(layouts.MOST_TERMS):
        which = place == number
        strides[f"stride{number + 1}"][terms.holder[which]] = terms.stride[which]
        strides[f"level{number + 1}"][terms.holder[which]] = terms.level[which]
    return strides


def _dynamic_steps(parts: Parts, made: Rows, strides: Rows, chosen: I8) -> Rows:
    """The `chosen` steps as dynamic steps."""
    rows = np.zeros(len(chosen), layouts.DYNAMIC_STEP)
    for name in ("offset", "subject", "base", "kind"):
        rows[name] = made[name][chosen]
    for name in ("code", "flags", "object", "size"):
        rows[name] = parts.steps[name][chosen]
    for name in strides.dtype.names or ():
        rows[name] = strides[name][chosen]
    slots = parts.slots[parts.path[chosen]]
    rows["size_base"] = slots - 2
    recorded = np.flatnonzero(rows["flags"] & (layouts.STEP_DYNAMIC | layouts.STEP_SAME_SIZE) != 0)
    holder = chosen[recorded] - (rows["flags"][recorded] & layouts.STEP_SAME_SIZE != 0)  # the step before has the word
    word = parts.word[holder] + (parts.steps["flags"][holder] & layouts.STEP_WORD != 0)
    rows["size_base"][recorded], rows["size"][recorded] = slots[recorded] + word, 0
    return rows


def _bases(parts: Parts) -> I8:
    """What each address begins with: a word of the record, a register as it was before the path, or nothing."""
    steps, slots = parts.steps, parts.slots[parts.path]
    word = steps["flags"] & layouts.STEP_WORD != 0
    register = ~word & (steps["flags"] & layouts.STEP_REGISTER != 0)
    base_at = np.where(word, slots + parts.word, np.where(register, steps["base"], slots - 2))
    defines = np.flatnonzero(word & (steps["defines"] != NONE))
    uses = np.flatnonzero(register)
    most = int(max(steps["defines"][defines].max(initial=0), steps["base"][uses].max(initial=0))) + 1
    rows = len(steps) + 1

    def key(at: I8, slot: Rows) -> I8:
        sort_key: I8 = (parts.path[at] * most + slot.astype(np.int64)) * rows + at
        return sort_key

    keys = key(defines, steps["defines"][defines])
    order = np.argsort(keys)
    looked_up = key(uses, steps["base"][uses])
    before = np.searchsorted(keys[order], looked_up) - 1
    defined = before >= 0
    defined[defined] = keys[order][before[defined]] // rows == looked_up[defined] // rows
    base_at[uses[defined]] = (slots + parts.word)[defines[order][before[defined]]]
    return base_at
