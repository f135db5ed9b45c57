"""Flattens paths for the derive kernel: what a path does becomes a list of moves that need no decision to be made.

Whatever follows from the path alone is found here: the word or register that an address begins with (a register that
the path itself has defined is the word that defined it), loop events between its blocks, the loops that it leaves
open. What is left for the kernel is ``address = base + offset`` (and two products, if it counts iterations) for each
event. Paths that do something else are not flat, and replayed block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, PathFlag
from tracekit.replay.kernels import state
from tracekit.replay.path_loops import Crossings, crossings
from tracekit.replay.structure import runs

if TYPE_CHECKING:
    from tracekit.replay.program import Program

Rows = NDArray[Any]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 0xFFFF
"""Words, moves, definitions or loop changes of a flat path at most."""


class Parts(NamedTuple):
    """The steps of all paths, one after another: path (a position in `numbers`), block of it, step."""

    path: I8
    member: I8
    steps: Rows
    word: I8
    """The first word of the step, counted from its record's first."""


class Flat(NamedTuple):
    """Flat paths (state.py): ``rows`` beside the record ids asked for, with room NEVER where a path is not flat."""

    rows: Rows
    moves: Rows
    strides: Rows
    defines: Rows
    changes: Rows


def flatten(program: Program, tables: state.Tables, keep: NDArray[np.uint8], numbers: I8, *, values: bool) -> Flat:
    """The flat form of the paths with these record ids.

    keep: (256) u1, 1 for the code of a wanted event; values: those of loads and stores are wanted.
    """
    blocks, loops = tables.blocks, tables.loops
    source = program.paths[program.path_row[numbers]]
    count = len(numbers)
    blocks_of = source["blocks"].astype(np.int64)
    members = program.path_blocks["block"][runs(source["first"], blocks_of)].astype(np.int64)
    owner = np.repeat(np.arange(count), blocks_of)
    starts = np.cumsum(blocks_of) - blocks_of
    crossed = crossings(blocks, loops, members, owner, starts)
    parts = _parts(blocks, tables.steps, members, owner)
    terms, unsure = _terms(program, loops, blocks["loop"][members], parts, crossed)
    good = _may_be_flat(source, blocks, members, owner) & ~crossed.unsure
    good &= ~_any(parts.path, unsure | ~_simple(parts.steps, values), count)
    good &= source["words"] <= MOST
    rows = np.zeros(count, state.FLAT)
    first, last = blocks[members[starts]], blocks[members[starts + blocks_of - 1]]
    moves, strides, moving = _moves(parts, crossed, terms, keep, good)
    defines, defining = _defines(parts, good)
    changes, changing = _changes(crossed, loops, good)
    moves, strides = (_padded(rows, "move", each, moving, state.GROUP) for each in (moves, strides))
    trash = tables.functions["slots"][first["function"]] - 1
    defines = _padded(rows, "define", defines, defining, state.PAIR)
    pairs = np.maximum(-(-rows["defines"].astype(np.int64) // state.PAIR), 1) * state.PAIR
    none = np.flatnonzero(defines["register"] == NONE)
    defines["register"][none], defines["word"][none] = np.repeat(trash, pairs)[none], 0
    changes = _padded(rows, "change", changes, changing, 1)
    for name in ("function", "continues", "loop"):
        rows[name] = first[name]
    rows["call"], rows["block"], rows["last_loop"] = last["call"], members[starts + blocks_of - 1], last["loop"]
    in_loop = last["loop"] != NONE
    rows["last_depth"][in_loop] = loops["depth"][last["loop"][in_loop]]
    rows["words"] = np.minimum(source["words"], MOST)
    too_many = [np.bincount(each, minlength=count) > MOST for each in (moving, defining, changing)]
    good &= ~np.any(too_many, axis=0)
    rows["room"] = np.where(good, tables.paths["room"][numbers], state.NEVER)
    counting = _any(parts.path[terms.holder], np.ones(len(terms.holder), np.bool_), count)
    rows["flags"] = _flags(first, last, crossed.inside, counting)
    return Flat(rows, moves, strides, defines, changes)


def _flags(first: Rows, last: Rows, inside: Bools, counting: Bools) -> NDArray[np.uint16]:
    pairs = (
        (state.FLAT_ENTERS, first["flags"] & BlockFlag.ENTRY != 0),
        (state.FLAT_LEAVES, last["flags"] & BlockFlag.RETURNS != 0),
        (state.FLAT_HEADER, first["flags"] & BlockFlag.LOOP_HEADER != 0),
        (state.FLAT_EFFECTS, first["flags"] & state.BLOCK_EFFECTS != 0),
        (state.FLAT_LOOPS, inside),
        (state.FLAT_TERMS, counting),
    )
    flags = np.zeros(len(first), np.uint16)
    for flag, where in pairs:
        flags |= np.where(where, flag, 0).astype(np.uint16)
    return flags


def _padded(paths: Rows, name: str, rows: Rows, owner: I8, group: int) -> Rows:
    """Lay out `rows` (of the paths `owner`, ascending), those of each path padded to whole groups, at least one.

    With a group of 1 a path may have none. Sets the columns ``first_<name>`` and ``<name>s`` of `paths`.
    """
    counts = np.bincount(owner, minlength=len(paths))
    room = -(-np.maximum(counts, group > 1) // group) * group
    first = np.cumsum(room) - room
    laid = np.zeros(int(room.sum()), rows.dtype)
    if rows.dtype == state.MOVE:
        laid["source"], laid["value"] = state.FROM_NOTHING, state.NO_VALUE
    elif rows.dtype == state.DEFINE:
        laid["register"] = NONE
    laid[first[owner] + np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]] = rows
    paths["first_" + name], paths[name + "s"] = first, np.minimum(counts, MOST)
    return laid


def _any(path: I8, where: Bools, count: int) -> Bools:
    """For each path whether `where` holds of one of its rows."""
    found: Bools = np.bincount(path[where], minlength=count) != 0
    return found


def _parts(blocks: Rows, steps: Rows, members: I8, owner: I8) -> Parts:
    counts = blocks["last_step"][members].astype(np.int64) - blocks["first_step"][members]
    member = np.repeat(np.arange(len(members)), counts)
    own = steps[runs(blocks["first_step"][members], counts)]
    flags = own["flags"]
    words = (flags & state.STEP_WORD != 0).astype(np.int64) + (flags & state.STEP_DYNAMIC != 0)
    words += own["values"].astype(np.int64) + (flags & state.STEP_WITNESS != 0)
    path = owner[member]
    before = np.cumsum(words) - words
    first = np.full(int(owner[-1]) + 1 if len(owner) else 0, np.iinfo(np.int64).max)
    np.minimum.at(first, path, before)
    return Parts(path, member, own, before - first[path])


def _may_be_flat(source: Rows, blocks: Rows, members: I8, owner: I8) -> Bools:
    """Ordinary paths that land nowhere and make no tail call."""
    flags = blocks["flags"][members]
    apart = flags & BlockFlag.LANDING != 0
    apart |= (flags & BlockFlag.TAIL_CALL != 0) & (flags & BlockFlag.RETURNS == 0)
    flat: Bools = (source["flags"] & PathFlag.RUN == 0) & ~_any(owner, apart, len(source))
    return flat


def _simple(steps: Rows, values: bool) -> Bools:
    """Steps that are an event at ``base + offset + terms``, or set a register, and are sure to break no rule."""
    simple = np.isin(steps["code"], [state.RECORDED, state.ACCESS, state.POINTER, state.EXTERNAL, state.REGISTER])
    simple |= (steps["code"] == state.SKIP) & (steps["flags"] & state.STEP_WORD == 0)
    simple |= steps["code"] == state.UNWANTED
    unusual = state.STEP_DYNAMIC | state.STEP_SAME_SIZE | state.STEP_WITNESS
    checked = (steps["code"] <= state.ACCESS) & (steps["flags"] & (state.STEP_GLOBAL | state.STEP_STACK) != 0)
    simple &= (steps["flags"] & unusual == 0) & ~checked & (steps["size"] <= NONE)
    if values:  # of eight bytes at most
        each = steps["values"] >> (steps["flags"] & state.STEP_LOADS_TOO != 0)
        simple &= (each <= 1) | (steps["code"] == state.UNWANTED)
    return simple


class Terms(NamedTuple):
    """The terms that are left to the kernel: the step of each, its stride, the depth of its loop below the frame's."""

    holder: I8
    stride: NDArray[np.uint64]
    level: I8


def _terms(program: Program, loops: Rows, loop_of: Rows, parts: Parts, crossed: Crossings) -> tuple[Terms, Bools]:
    """Terms, and the steps with more than two of them, or with such as only the kernel can find.

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
    unsure |= np.bincount(holder[left], minlength=len(counts)) > 2
    terms = Terms(holder[left], rows["stride"][left].view(np.uint64), depth[rows["loop"][left]].astype(np.int64) - 1)
    return terms, unsure


def _moves(parts: Parts, crossed: Crossings, terms: Terms, keep: NDArray[np.uint8],
           good: Bools) -> tuple[Rows, Rows, I8]:
    """The events of flat paths in their order, their terms beside them, and the path of each."""
    steps = parts.steps
    access = np.isin(steps["code"], [state.RECORDED, state.ACCESS])
    pointer, external = steps["code"] == state.POINTER, steps["code"] == state.EXTERNAL
    wanted = (access & (steps["size"] != 0)) | pointer | external
    made = np.zeros(len(steps), state.MOVE)
    made["kind"] = np.where(access, steps["kind"], np.where(pointer, CODE["pointer_creation"], CODE["external_call"]))
    made["subject"], made["size"] = steps["subject"], np.where(external, 0, steps["size"])
    made["offset"] = np.where(external, 0, steps["offset"])
    _bases(parts, made)
    made["source"][external] = state.FROM_NOTHING
    loads_too = steps["flags"] & state.STEP_LOADS_TOO != 0
    moved = access & (steps["values"] != 0)  # the words of an event's value stand behind that of its address
    value = parts.word + (steps["flags"] & state.STEP_WORD != 0)
    made["value"] = np.where(moved, np.minimum(value + loads_too, state.NO_VALUE), state.NO_VALUE)
    strides = np.zeros(len(steps), state.STRIDES)
    second = np.zeros(len(terms.holder), np.bool_)
    second[1:] = terms.holder[1:] == terms.holder[:-1]
    for which, column in ((~second, "1"), (second, "2")):
        strides["stride" + column][terms.holder[which]] = terms.stride[which]
        strides["level" + column][terms.holder[which]] = terms.level[which]
    as_load = made.copy()
    as_load["kind"] = CODE["load"]
    as_load["value"] = np.where(moved, np.minimum(value, state.NO_VALUE), state.NO_VALUE)
    chosen = [np.flatnonzero(wanted & loads_too), np.flatnonzero(wanted)]
    rows = np.concatenate([as_load[chosen[0]], made[chosen[1]], crossed.moves()])
    beside = np.concatenate([strides[chosen[0]], strides[chosen[1]], np.zeros(len(crossed.kind), state.STRIDES)])
    path = np.concatenate([parts.path[chosen[0]], parts.path[chosen[1]], crossed.path])
    member = np.concatenate([parts.member[chosen[0]], parts.member[chosen[1]], crossed.member])
    place = np.concatenate([2 * chosen[0], 2 * chosen[1] + 1, crossed.place])
    kept = np.flatnonzero(good[path] & (keep[rows["kind"]] != 0))
    kept = kept[np.lexsort((place[kept], member[kept]))]
    return rows[kept], beside[kept], path[kept]


def _bases(parts: Parts, made: Rows) -> None:
    """What each address begins with: a word of the record, a register as it was before the path, or nothing."""
    steps = parts.steps
    word = steps["flags"] & state.STEP_WORD != 0
    register = ~word & (steps["flags"] & state.STEP_REGISTER != 0)
    made["source"] = np.where(word, state.FROM_WORDS, np.where(register, state.FROM_REGISTERS, state.FROM_NOTHING))
    made["base"] = np.where(word, parts.word, np.where(register, steps["base"], 0))
    defines = np.flatnonzero(word & (steps["defines"] != NONE))
    uses = np.flatnonzero(register)
    slots = int(max(steps["defines"][defines].max(initial=0), steps["base"][uses].max(initial=0))) + 1
    rows = len(steps) + 1

    def key(at: I8, slot: Rows) -> I8:
        found: I8 = (parts.path[at] * slots + slot.astype(np.int64)) * rows + at
        return found

    keys = key(defines, steps["defines"][defines])
    order = np.argsort(keys)
    looked_up = key(uses, steps["base"][uses])
    before = np.searchsorted(keys[order], looked_up) - 1
    found = before >= 0
    found[found] = keys[order][before[found]] // rows == looked_up[found] // rows
    made["source"][uses[found]] = state.FROM_WORDS
    made["base"][uses[found]] = parts.word[defines[order][before[found]]]


def _defines(parts: Parts, good: Bools) -> tuple[Rows, I8]:
    """The registers that flat paths set, and the path of each; of several definitions the last one."""
    steps = parts.steps
    at = np.flatnonzero((steps["flags"] & state.STEP_WORD != 0) & (steps["defines"] != NONE) & good[parts.path])
    backwards = at[::-1]
    _, first = np.unique(parts.path[backwards] << 32 | steps["defines"][backwards], return_index=True)
    at = np.sort(backwards[first])
    rows = np.zeros(len(at), state.DEFINE)
    rows["word"], rows["register"] = parts.word[at], steps["defines"][at]
    return rows, parts.path[at]


def _changes(crossed: Crossings, loops: Rows, good: Bools) -> tuple[Rows, I8]:
    """What flat paths do to the counters of loops that are open at their end, and the path of each change."""
    at = np.flatnonzero(good[crossed.path] & crossed.lasts & (crossed.kind != CODE["loop_exit"]))
    at = at[np.argsort(crossed.path[at], kind="stable")]
    rows = np.zeros(len(at), state.CHANGE)
    rows["level"] = loops["depth"][crossed.loop[at]].astype(np.int64) - 1
    rows["loop"] = crossed.loop[at]
    rows["opens"] = crossed.kind[at] == CODE["loop_invocation"]
    return rows, crossed.path[at]
